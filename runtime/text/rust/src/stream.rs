// Decodes one sequence id by id: text is returned as soon as no later id can change it.
//
// The stream keeps a short window of ids, and the part of the window's text that was already
// returned. The new text is what the window decodes to beyond that part. U+FFFD at the end may
// still become a character, so up to three of them are held back (a character has at most four
// bytes). Owned by one sequence, one thread at a time. Bounds: WINDOW + 1 ids and their text.
use crate::ffi::Error;
use crate::tokenizer::Tokenizer;

const WINDOW: usize = 16;
const TAIL_MAX: usize = 8;
const HELD_MAX: usize = 3;
const REPLACEMENT: char = '\u{FFFD}';

pub struct Stream<'t> {
    tokenizer: &'t Tokenizer,
    skip_special: bool,
    window: Vec<u32>,
    sent: String, // the part of the window's text that was returned
}

impl<'t> Stream<'t> {
    pub fn new(tokenizer: &'t Tokenizer, skip_special: bool) -> Stream<'t> {
        Stream { tokenizer, skip_special, window: Vec::new(), sent: String::new() }
    }

    pub fn push(&mut self, id: u32) -> Result<String, Error> {
        // Ids that decode() drops must not be in the window. Otherwise a decoder that treats the
        // first token differently would treat the next one as the first.
        let dropped = self.skip_special && self.tokenizer.is_special(id);
        if dropped || self.tokenizer.id_to_token(id).is_none() {
            return Ok(String::new());
        }
        self.window.push(id);
        let mut text = self.decode(&self.window)?;
        if !text.starts_with(&self.sent) {
            // The new id changed text that was already returned (a byte-fallback run became
            // invalid). That text stands; the id starts a new window.
            self.window = vec![id];
            self.sent.clear();
            text = self.decode(&self.window)?;
        }
        let waiting = held(&text);
        let keep = text.len() - waiting;
        let fresh = text.get(self.sent.len()..keep).unwrap_or("").to_owned();
        if !fresh.is_empty() {
            self.sent = text[..keep].to_owned();
        }
        if (waiting == 0 && self.window.len() > 1) || self.window.len() > WINDOW {
            self.shrink(waiting)?;
        }
        Ok(fresh)
    }

    pub fn finish(&mut self) -> Result<String, Error> {
        let text = self.decode(&self.window)?;
        let rest = text.get(self.sent.len()..).unwrap_or("").to_owned();
        self.window.clear();
        self.sent.clear();
        Ok(rest)
    }

    // Drops old ids. Keeps the shortest tail that begins at a character boundary, as context for
    // the next id.
    fn shrink(&mut self, waiting: usize) -> Result<(), Error> {
        let longest = TAIL_MAX.min(self.window.len());
        if waiting == 0 {
            for size in 1..=longest {
                let tail = self.decode(&self.window[self.window.len() - size..])?;
                if !tail.contains(REPLACEMENT) {
                    self.window.drain(..self.window.len() - size);
                    self.sent = tail;
                    return Ok(());
                }
            }
        }
        if self.window.len() > WINDOW {
            // The bytes never became characters, so any tail will do.
            self.window.drain(..self.window.len() - longest);
            let mut tail = self.decode(&self.window)?;
            tail.truncate(tail.len() - held(&tail).min(waiting));
            self.sent = tail;
        }
        Ok(())
    }

    fn decode(&self, ids: &[u32]) -> Result<String, Error> {
        self.tokenizer.decode(ids, self.skip_special)
    }
}

// Bytes at the end of `text` that a later id may still turn into a character.
fn held(text: &str) -> usize {
    let run = text.chars().rev().take(HELD_MAX).take_while(|c| *c == REPLACEMENT).count();
    run * REPLACEMENT.len_utf8()
}
