// What the steps of a tokenizer.json can make of a text. A downloaded file may hold steps that
// double a text forty times over, or a template of a million ids, so each step's worst case is
// known before a text is seen, and a text that could grow too far is measured step by step before
// it is encoded. Immutable; any thread.
use serde::Deserialize;
use serde_json::Value;
use tokenizers::{DecoderWrapper, NormalizedString, Normalizer, NormalizerWrapper};

use crate::ffi::{Error, Status};

// What a text may always become: so many times its own size. The steps of real tokenizers write
// at most three bytes for one, and some of them twice.
const NATURAL_TIMES: usize = 16;
const CHUNK_BYTES: usize = 64 * 1024;

/// See troupe_text_tokenizer_limits in ../../troupe_text.h.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct TokenizerLimits {
    pub growth: u64,
    pub text_bytes: u64,
    pub decoded_bytes: u64,
    pub literal_bytes: u64,
    pub steps: u64,
    pub special_ids: u64,
}

/// What tokenizer.json says before anything is made of it.
#[derive(Deserialize)]
pub struct Head {
    #[serde(default)]
    normalizer: Option<NormalizerWrapper>,
    #[serde(default)]
    added_tokens: Vec<AddedHead>,
    #[serde(default)]
    model: Option<ModelHead>,
}

#[derive(Deserialize)]
struct AddedHead {
    content: String,
    normalized: bool,
}

#[derive(Deserialize)]
struct ModelHead {
    continuing_subword_prefix: Option<String>,
    end_of_word_suffix: Option<String>,
    max_input_chars_per_word: Option<u64>,
}

// A text of n bytes becomes one of at most `times` * n + `more` bytes.
#[derive(Clone, Copy)]
struct Worst {
    times: f64,
    more: f64,
}

impl Worst {
    fn same() -> Worst {
        Worst { times: 1.0, more: 0.0 }
    }
    fn times(times: f64) -> Worst {
        Worst { times: times.max(1.0), more: 0.0 }
    }
    fn then(self, next: Worst) -> Worst {
        Worst { times: self.times * next.times, more: next.times * self.more + next.more }
    }
    fn of(self, bytes: usize) -> f64 {
        self.times * bytes as f64 + self.more
    }
}

enum Step {
    Prepend(String),
    Other(NormalizerWrapper, Worst),
}

/// What is known of the normalizers before the tokenizer is made.
pub struct Normalizers {
    steps: Vec<Step>,
    worst: Worst,
    added_bytes: usize, // of the shortest added token: a text has at most size / this + 1 parts
}

pub struct Growth {
    limits: TokenizerLimits,
    normalizers: Normalizers,
    split: Worst,
    decoded: Worst,
    token_bytes: usize, // of the longest token
}

fn over<T>(what: String) -> Result<T, Error> {
    Err(Error::new(Status::Limit, format!("tokenizer.json: {what}")))
}

fn number(times: f64) -> String {
    if times < 1e15 {
        format!("{times:.0}")
    } else {
        format!("{times:.0e}")
    }
}

impl Head {
    /// Refuses what would already be too much while the tokenizer is made.
    pub fn check(&self, limits: &TokenizerLimits) -> Result<Normalizers, Error> {
        let added_bytes = self.added_bytes();
        let steps = normalizer_steps(self.normalizer.as_ref(), limits)?;
        let all = steps.iter().fold(Worst::same(), |all, step| all.then(step.worst(added_bytes)));
        limits.growth("normalizers", all)?;
        let mut sum = 0.0;
        for token in &self.added_tokens {
            limits.literal("an added token", token.content.len())?;
            if token.normalized {
                sum += all.of(token.content.len());
            }
        }
        if sum > 16.0 * limits.text_bytes as f64 {
            return over(format!("its normalizers make {} bytes of its added tokens", number(sum)));
        }
        if let Some(model) = &self.model {
            model.check(limits)?;
        }
        Ok(Normalizers { steps, worst: all, added_bytes })
    }

    fn added_bytes(&self) -> usize {
        self.added_tokens.iter().map(|token| token.content.len()).min().unwrap_or(usize::MAX).max(1)
    }
}

impl ModelHead {
    fn check(&self, limits: &TokenizerLimits) -> Result<(), Error> {
        for part in [&self.continuing_subword_prefix, &self.end_of_word_suffix] {
            limits.affix(part.as_ref().map_or(0, String::len))?;
        }
        match self.max_input_chars_per_word {
            Some(most) if most > 1000 => over(format!(
                "max_input_chars_per_word is {most}; at most 1000 letters of a word are looked up"
            )),
            _ => Ok(()),
        }
    }
}

impl TokenizerLimits {
    fn growth(&self, which: &str, worst: Worst) -> Result<(), Error> {
        if worst.times <= self.growth as f64 && worst.more <= self.text_bytes as f64 {
            return Ok(());
        }
        over(format!(
            "its {which} may make a text {} times as long and add {} bytes; at most {} times and \
             {} bytes are taken",
            number(worst.times),
            number(worst.more),
            self.growth,
            self.text_bytes
        ))
    }
    fn literal(&self, which: &str, bytes: usize) -> Result<(), Error> {
        if bytes as u64 <= self.literal_bytes {
            return Ok(());
        }
        over(format!("{which} has {bytes} bytes; at most {} are taken", self.literal_bytes))
    }
    fn affix(&self, bytes: usize) -> Result<(), Error> {
        if bytes <= 1024 {
            return Ok(());
        }
        over(format!("a prefix or suffix of the model has {bytes} bytes; at most 1024 are taken"))
    }
    // `kind`: the key under which a sequence keeps its members.
    fn flat<'a>(&self, step: &'a Value, kind: &str, out: &mut Vec<&'a Value>) -> Result<(), Error> {
        match step.get(kind).and_then(Value::as_array) {
            Some(members) => {
                members.iter().try_for_each(|member| self.flat(member, kind, out))?;
            }
            None => out.push(step),
        }
        if out.len() as u64 <= self.steps {
            return Ok(());
        }
        over(format!("it has more than {} {kind}", self.steps))
    }
}

fn json<T: serde::Serialize>(part: &T) -> Result<Value, Error> {
    serde_json::to_value(part).map_err(|e| Error::invalid(format!("tokenizer.json: {e}")))
}

fn text<'a>(step: &'a Value, key: &str) -> &'a str {
    step.get(key).and_then(Value::as_str).unwrap_or("")
}

fn kind_of(step: &Value) -> &str {
    text(step, "type")
}

// Every match becomes `content`. A pattern of letters matches at least its own length; one of
// other kind may match nothing, so before every byte and at the end.
fn replaced(step: &Value, limits: &TokenizerLimits) -> Result<Worst, Error> {
    let content = text(step, "content").len();
    limits.literal("a replacement", content)?;
    let letters = step.get("pattern").map_or("", |pattern| text(pattern, "String")).len();
    let content = content as f64;
    if letters > 0 {
        return Ok(Worst::times(content / letters as f64));
    }
    Ok(Worst { times: 1.0 + content, more: content })
}

// The replacements of a charsmap lie behind one another, each ended by a zero: a character becomes
// at most the longest.
fn charsmap(step: &Value) -> Worst {
    let blob = base64::decode(text(step, "precompiled_charsmap")).unwrap_or_default();
    let trie = blob.first_chunk::<4>().map_or(0, |size| u32::from_le_bytes(*size) as usize);
    let texts = blob.get(4usize.saturating_add(trie)..).unwrap_or(&blob);
    let longest = texts.split(|byte| *byte == 0).map(<[u8]>::len).max().unwrap_or(0);
    Worst::times(longest as f64)
}

fn normalizer_steps(
    normalizer: Option<&NormalizerWrapper>,
    limits: &TokenizerLimits,
) -> Result<Vec<Step>, Error> {
    let Some(normalizer) = normalizer else { return Ok(Vec::new()) };
    let tree = json(normalizer)?;
    let mut flat = Vec::new();
    limits.flat(&tree, "normalizers", &mut flat)?;
    let mut steps = Vec::new();
    for step in flat {
        let worst = match kind_of(step) {
            "Prepend" => {
                let prefix = text(step, "prepend");
                limits.literal("a prefix", prefix.len())?;
                steps.push(Step::Prepend(prefix.to_string()));
                continue;
            }
            "Replace" => replaced(step, limits)?,
            "Precompiled" => charsmap(step),
            "BertNormalizer" => Worst::times(8.0), // spaces about Chinese, NFD, small letters
            "NFC" | "NFD" => Worst::times(3.0),
            "NFKC" | "NFKD" => Worst::times(11.0),
            "Lowercase" | "ByteLevel" => Worst::times(2.0),
            "Strip" | "StripAccents" | "Nmt" => Worst::same(),
            other => return Err(Error::invalid(format!("tokenizer.json: normalizer '{other}'"))),
        };
        let step = serde_json::from_value(step.clone())
            .map_err(|e| Error::invalid(format!("tokenizer.json: {e}")))?;
        steps.push(Step::Other(step, worst));
    }
    Ok(steps)
}

impl Step {
    // A prefix is put before each part of a text between two added tokens.
    fn worst(&self, added_bytes: usize) -> Worst {
        match self {
            Step::Prepend(prefix) => {
                let prefix = prefix.len() as f64;
                Worst { times: 1.0 + prefix / added_bytes as f64, more: prefix }
            }
            Step::Other(_, worst) => *worst,
        }
    }
}

fn pre_tokenizer_growth(
    part: &impl serde::Serialize,
    limits: &TokenizerLimits,
) -> Result<Worst, Error> {
    let tree = json(part)?;
    let mut flat = Vec::new();
    limits.flat(&tree, "pretokenizers", &mut flat)?;
    Ok(flat.into_iter().fold(Worst::same(), |all, step| {
        all.then(match kind_of(step) {
            "ByteLevel" => Worst::times(3.0), // two bytes for one, and a space before a piece
            "Metaspace" => Worst::times(text(step, "replacement").len() as f64 + 1.0),
            _ => Worst::same(),
        })
    }))
}

// How often the ids of the text come, and how many ids are added, at most.
fn check_post_processor(
    part: &impl serde::Serialize,
    limits: &TokenizerLimits,
) -> Result<(), Error> {
    let tree = json(part)?;
    let mut flat = Vec::new();
    limits.flat(&tree, "processors", &mut flat)?;
    let mut all = Worst::same();
    for step in flat {
        if kind_of(step) != "TemplateProcessing" {
            all = all.then(Worst { times: 1.0, more: 4.0 });
            continue;
        }
        let mut here = Worst { times: 0.0, more: 0.0 };
        let pieces = step.get("single").and_then(Value::as_array).map_or(&[][..], Vec::as_slice);
        for piece in pieces {
            if let Some(special) = piece.get("SpecialToken") {
                let ids =
                    step.pointer("/special_tokens").and_then(|all| all.get(text(special, "id")));
                let ids = ids.and_then(|token| token.get("ids")).and_then(Value::as_array);
                here.more += ids.map_or(0, Vec::len) as f64;
            } else {
                here.times += 1.0;
            }
        }
        all = all.then(here);
    }
    if all.times <= 4.0 && all.more <= limits.special_ids as f64 {
        return Ok(());
    }
    over(format!(
        "its post-processors repeat a text {} times and add {} ids; at most 4 times and {} ids are \
         taken",
        number(all.times),
        number(all.more),
        limits.special_ids
    ))
}

fn decoder_growth(decoder: &DecoderWrapper, limits: &TokenizerLimits) -> Result<Worst, Error> {
    let tree = json(decoder)?;
    let mut flat = Vec::new();
    limits.flat(&tree, "decoders", &mut flat)?;
    let mut all = Worst::same();
    for step in flat {
        all = all.then(match kind_of(step) {
            "Replace" => replaced(step, limits)?,
            "WordPiece" | "BPEDecoder" | "CTC" => Worst::times(2.0), // spaces between tokens
            "ByteLevel" => Worst::times(3.0),                        // U+FFFD for a byte
            _ => Worst::same(),
        });
    }
    if all.times > 64.0 {
        return over(format!(
            "its decoders may make a text {} times as long; at most 64 times are taken",
            number(all.times)
        ));
    }
    Ok(all)
}

impl Growth {
    /// `token_bytes`: of the longest token of the vocabulary.
    pub fn of(
        normalizers: Normalizers,
        made: &tokenizers::Tokenizer,
        token_bytes: usize,
        limits: TokenizerLimits,
    ) -> Result<Growth, Error> {
        let split = match made.get_pre_tokenizer() {
            Some(part) => pre_tokenizer_growth(part, &limits)?,
            None => Worst::same(),
        };
        limits.growth("normalizers and pre-tokenizers", normalizers.worst.then(split))?;
        if let Some(part) = made.get_post_processor() {
            check_post_processor(part, &limits)?;
        }
        let decoded = match made.get_decoder() {
            Some(part) => decoder_growth(part, &limits)?,
            None => Worst::same(),
        };
        limits.literal("a token", token_bytes)?;
        Ok(Growth { limits, normalizers, split, decoded, token_bytes })
    }

    /// Refuses a text that the steps would make too long.
    pub fn check(&self, given: &str) -> Result<(), Error> {
        let most = (self.limits.text_bytes as usize).max(given.len().saturating_mul(NATURAL_TIMES));
        if self.normalizers.worst.then(self.split).of(given.len()) <= most as f64 {
            return Ok(());
        }
        let mut now = given.to_string();
        for step in &self.normalizers.steps {
            now = match step {
                Step::Prepend(prefix) => self.prepended(prefix, &now, given.len(), most)?,
                Step::Other(step, worst) => self.applied(step, *worst, &now, most)?,
            };
        }
        if self.split.of(now.len()) > most as f64 {
            return self.too_long(given.len(), most);
        }
        Ok(())
    }

    fn prepended(
        &self,
        prefix: &str,
        now: &str,
        given: usize,
        most: usize,
    ) -> Result<String, Error> {
        let parts = given / self.normalizers.added_bytes + 1;
        if prefix.len().saturating_mul(parts).saturating_add(now.len()) > most {
            return self.too_long(given, most);
        }
        Ok(prefix.repeat(parts) + now)
    }

    // The step over one piece of the text after the other, so small that none can be too long.
    fn applied(
        &self,
        step: &NormalizerWrapper,
        worst: Worst,
        now: &str,
        most: usize,
    ) -> Result<String, Error> {
        let piece_bytes = ((most as f64 / worst.times) as usize).clamp(4, CHUNK_BYTES);
        let (mut out, mut rest) = (String::new(), now);
        while !rest.is_empty() {
            let mut cut = piece_bytes.min(rest.len());
            while !rest.is_char_boundary(cut) {
                cut -= 1;
            }
            let (piece, behind) = rest.split_at(cut);
            let mut piece = NormalizedString::from(piece);
            step.normalize(&mut piece)
                .map_err(|e| Error::invalid(format!("cannot encode the text: {e}")))?;
            out.push_str(piece.get());
            if out.len() > most {
                return self.too_long(now.len(), most);
            }
            rest = behind;
        }
        Ok(out)
    }

    fn too_long<T>(&self, given: usize, most: usize) -> Result<T, Error> {
        over(format!("its steps would make more than {most} bytes of a text of {given}"))
    }

    /// Refuses ids whose text would be too long. `bytes_of`: the spelling's size of an id.
    pub fn check_ids(&self, ids: &[u32], bytes_of: impl Fn(u32) -> usize) -> Result<(), Error> {
        let most = self.limits.decoded_bytes as f64;
        if self.decoded.of(ids.len().saturating_mul(self.token_bytes)) <= most {
            return Ok(());
        }
        let bytes = ids.iter().map(|id| bytes_of(*id)).sum();
        if self.decoded.of(bytes) <= most {
            return Ok(());
        }
        over(format!("its decoders would make more than {most:.0} bytes of {} ids", ids.len()))
    }
}
