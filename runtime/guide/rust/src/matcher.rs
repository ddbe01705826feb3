// A grammar and how far a text has gone through it. One thread at a time. Copies are deep, so that
// what one text needs of a limit never depends on another text.
use llguidance::api::TopLevelGrammar;
use llguidance::ParserFactory;
use serde_json::{json, Map, Value};
use toktrie::TokenId;

use crate::ffi::{Error, Status};
use crate::vocabulary::Vocabulary;

// Room for schemas whose references form a chain as long as the limit on their bytes allows.
const STACK_BYTES: usize = 256 << 20;

#[derive(Clone, Copy)]
pub enum Kind {
    JsonSchema,
    Regex,
    Lark,
}

impl Kind {
    pub fn of(code: i32) -> Result<Kind, Error> {
        match code {
            0 => Ok(Kind::JsonSchema),
            1 => Ok(Kind::Regex),
            2 => Ok(Kind::Lark),
            _ => Err(Error::invalid(format!("there is no kind {code} of grammar"))),
        }
    }
}

pub struct Matcher {
    inner: llguidance::Matcher,
    end: TokenId,
}

impl Matcher {
    pub fn new(
        vocabulary: &Vocabulary,
        kind: Kind,
        text: &str,
        whitespace: &str,
    ) -> Result<Matcher, Error> {
        let grammar = match kind {
            Kind::JsonSchema => TopLevelGrammar::from_json_schema(schema_of(text, whitespace)?),
            Kind::Regex => TopLevelGrammar::from_regex(text),
            Kind::Lark => TopLevelGrammar::from_lark(text.to_owned()),
        };
        let parser = on_big_stack(&vocabulary.factory, grammar)?;
        Ok(Matcher { inner: llguidance::Matcher::new(Ok(parser)), end: vocabulary.end })
    }

    pub fn copy(&self) -> Matcher {
        Matcher { inner: self.inner.deep_clone(), end: self.end }
    }

    // Whether the text may end here.
    pub fn mask(&mut self, words: &mut [u32]) -> Result<bool, Error> {
        words.fill(0);
        let mask = match self.inner.compute_mask_or_eos() {
            Ok(mask) => mask,
            // The parser reports a state from which nothing goes on as an error.
            Err(why) if why.to_string().starts_with("NoExtensionBias") => return Ok(false),
            Err(why) => return Err(self.failure(why.to_string())),
        };
        let may_end = mask.is_allowed(self.end);
        for (to, from) in words.iter_mut().zip(mask.as_slice()) {
            *to = *from;
        }
        let (word, bit) = (self.end as usize / 32, self.end % 32);
        if let Some(last) = words.get_mut(word) {
            *last &= (1u32 << bit) - 1;
        }
        Ok(may_end)
    }

    pub fn take(&mut self, token: u32) -> Result<(), Error> {
        self.inner.consume_token(token).map_err(|why| self.failure(why.to_string()))
    }

    fn failure(&self, why: String) -> Error {
        refusal(why.split("\n<").next().unwrap_or_default())
    }
}

// The schema with our options where it has none of its own.
fn schema_of(text: &str, whitespace: &str) -> Result<Value, Error> {
    let mut schema: Value = serde_json::from_str(text)
        .map_err(|e| Error::invalid(format!("the schema is not JSON: {e}")))?;
    if schema == Value::Bool(true) {
        schema = json!({});
    }
    let Some(members) = schema.as_object_mut() else {
        return Err(Error::invalid("the schema allows no value, or is no JSON object"));
    };
    let mut options = Map::new();
    if !whitespace.is_empty() {
        options.insert("whitespace_pattern".to_owned(), whitespace.into());
    }
    if let Some(own) = members.get("x-guidance") {
        let Some(own) = own.as_object() else {
            return Err(Error::invalid("\"x-guidance\" of the schema must be an object"));
        };
        options.extend(own.clone());
    }
    members.insert("x-guidance".to_owned(), Value::Object(options));
    Ok(schema)
}

fn on_big_stack(
    factory: &ParserFactory,
    grammar: TopLevelGrammar,
) -> Result<llguidance::TokenParser, Error> {
    let compile = || factory.create_parser(grammar);
    let compiled = std::thread::scope(|scope| {
        let spawned =
            std::thread::Builder::new().stack_size(STACK_BYTES).spawn_scoped(scope, compile);
        spawned.map(|thread| thread.join())
    });
    let failed = |why: &str| Error::new(Status::Internal, format!("compiling a grammar: {why}"));
    match compiled {
        Ok(Ok(parser)) => parser.map_err(|e| refusal(&e.to_string())),
        Ok(Err(_)) => Err(failed("the library failed")),
        Err(why) => Err(failed(&why.to_string())),
    }
}

// llguidance tells limits from other errors by words alone.
fn refusal(why: &str) -> Error {
    if why.starts_with("panic:") {
        let first = why.lines().next().unwrap_or_default();
        return Error::new(Status::Internal, format!("the library failed: {first}"));
    }
    let over = ["too large", "too many", "too complex", "too big", "fuel", "limit", "max is"];
    let is_limit = over.iter().any(|word| why.contains(word)) || why.contains("TooComplex");
    Error::new(if is_limit { Status::Limit } else { Status::Invalid }, why.trim_end())
}
