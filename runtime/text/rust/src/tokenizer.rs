// Wraps the tokenizers crate, without truncation, padding or threads. Immutable once loaded, so any
// number of threads may share it. Holds the vocabulary and a bounded cache.
use tokenizers::{PaddingParams, TruncationParams};

use crate::ffi::Error;
use crate::growth::{Growth, Head, TokenizerLimits};

pub struct Tokenizer {
    inner: tokenizers::Tokenizer,
    growth: Growth,
    id_limit: usize,
    spelling: Spelling,
}

/// How pieces of the vocabulary spell bytes.
#[derive(Clone, Copy)]
struct Spelling {
    byte_level: bool, // every byte as one printable character
    fallback: bool,   // single bytes as `<0xF0>`
}

impl Spelling {
    fn of(inner: &tokenizers::Tokenizer) -> Spelling {
        let decoder = serde_json::to_value(inner.get_decoder()).unwrap_or_default();
        let has = |kind: &str| {
            let is = |one: &serde_json::Value| one["type"] == kind;
            is(&decoder) || decoder["decoders"].as_array().is_some_and(|all| all.iter().any(is))
        };
        Spelling { byte_level: has("ByteLevel"), fallback: has("ByteFallback") }
    }
}

/// The byte that a character of the byte-level alphabet stands for: printable characters of Latin-1
/// for themselves, the others by their order from U+0100 on.
fn byte_of(c: char) -> Option<u8> {
    let plain = |n: u32| matches!(n, 0x21..=0x7e | 0xa1..=0xac | 0xae..=0xff);
    match c as u32 {
        n if plain(n) => u8::try_from(n).ok(),
        n if n >= 0x100 => {
            (0..=0xffu32).filter(|b| !plain(*b)).nth(n as usize - 0x100).map(|b| b as u8)
        }
        _ => None,
    }
}

/// The byte of a piece like `<0xF0>`.
fn fallback_byte(piece: &str) -> Option<u8> {
    let digits = piece.strip_prefix("<0x")?.strip_suffix('>')?;
    (digits.len() == 2).then(|| u8::from_str_radix(digits, 16).ok())?
}

pub struct Encoding {
    pub ids: Vec<u32>,
    pub offsets: Vec<u64>,
}

impl Tokenizer {
    pub fn from_json(json: &[u8], limits: TokenizerLimits) -> Result<Tokenizer, Error> {
        // Callers split batches themselves. A hidden thread pool would upset the assignment of
        // cores.
        tokenizers::utils::parallelism::set_parallelism(false);
        if json.is_empty() {
            return Err(Error::invalid("tokenizer.json is empty"));
        }
        let not_one = |e: &dyn std::fmt::Display| {
            Error::invalid(format!("tokenizer.json is not a tokenizer: {e}"))
        };
        let head: Head = serde_json::from_slice(json).map_err(|e| not_one(&e))?;
        let checked = head.check(&limits)?;
        let mut inner = tokenizers::Tokenizer::from_bytes(json).map_err(|e| not_one(&e))?;
        inner
            .with_truncation(None::<TruncationParams>)
            .map_err(|e| Error::invalid(format!("tokenizer.json: {e}")))?;
        inner.with_padding(None::<PaddingParams>);
        let vocab = inner.get_vocab(true);
        let id_limit = vocab.values().max().map_or(0, |id| *id as usize + 1);
        let longest = vocab.keys().map(String::len).max().unwrap_or(0);
        let growth = Growth::of(checked, &inner, longest, limits)?;
        let spelling = Spelling::of(&inner);
        Ok(Tokenizer { inner, growth, id_limit, spelling })
    }

    pub fn encode(&self, text: &str, add_special: bool) -> Result<Encoding, Error> {
        self.growth.check(text)?;
        let encoding = self
            .inner
            .encode(text, add_special)
            .map_err(|e| Error::invalid(format!("cannot encode the text: {e}")))?;
        let offsets = encoding.get_offsets().iter().flat_map(|(b, e)| [*b as u64, *e as u64]);
        Ok(Encoding { ids: encoding.get_ids().to_vec(), offsets: offsets.collect() })
    }

    pub fn decode(&self, ids: &[u32], skip_special: bool) -> Result<String, Error> {
        let bytes_of = |id| self.inner.id_to_token(id).map_or(0, |token| token.len());
        self.growth.check_ids(ids, bytes_of)?;
        self.inner
            .decode(ids, skip_special)
            .map_err(|e| Error::invalid(format!("cannot decode the ids: {e}")))
    }

    pub fn id_to_token(&self, id: u32) -> Option<String> {
        // The added token's text, not the byte-level spelling that decoding uses.
        let added = self.added().get(&id).map(|token| token.content.clone());
        added.or_else(|| self.inner.id_to_token(id))
    }

    /// The bytes that the token adds to a text, which may be a part of a character. None for an
    /// unknown id.
    pub fn token_bytes(&self, id: u32) -> Result<Option<Vec<u8>>, Error> {
        if let Some(token) = self.added().get(&id) {
            return Ok(Some(token.content.clone().into_bytes()));
        }
        let Some(piece) = self.inner.id_to_token(id) else { return Ok(None) };
        if self.spelling.byte_level {
            if let Some(bytes) = piece.chars().map(byte_of).collect::<Option<Vec<u8>>>() {
                return Ok(Some(bytes));
            }
        }
        if self.spelling.fallback {
            if let Some(byte) = fallback_byte(&piece) {
                return Ok(Some(vec![byte]));
            }
        }
        Ok(Some(self.decode(&[id], false)?.into_bytes()))
    }

    pub fn token_to_id(&self, token: &str) -> Option<u32> {
        self.inner.token_to_id(token)
    }

    pub fn is_special(&self, id: u32) -> bool {
        self.added().get(&id).is_some_and(|token| token.special)
    }

    pub fn id_limit(&self) -> usize {
        self.id_limit
    }

    fn added(&self) -> &ahash::AHashMap<u32, tokenizers::AddedToken> {
        self.inner.get_added_vocabulary().get_added_tokens_decoder()
    }
}
