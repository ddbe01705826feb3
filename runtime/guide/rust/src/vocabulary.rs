// The tokens of a model's vocabulary as bytes, in the trie that masks are computed over. Immutable
// once made; any number of threads may share it.
//
// Besides the model's tokens the trie has one of our own, `end`, which stands for the end of the
// text: which of the model's tokens end a sample is the engine's business.
use std::sync::Arc;

use llguidance::{token_bytes_from_tokenizer_json, ParserFactory};
use serde_json::{json, Value};
use toktrie::{
    ApproximateTokEnv, InferenceCapabilities, TokEnv, TokRxInfo, TokTrie, TokenId,
};

use crate::ffi::Error;

#[repr(C)]
#[derive(Clone, Copy)]
pub struct Limits {
    pub grammar_symbols: u64,
    pub compile_fuel: u64,
    pub mask_fuel: u64,
    pub mask_items: u64,
    pub row_items: u64,
    pub lexer_states: u64,
}

pub struct Vocabulary {
    pub factory: ParserFactory,
    pub end: TokenId,
}

impl Vocabulary {
    pub fn new(tokenizer_json: &str, size: u32, limits: Limits) -> Result<Vocabulary, Error> {
        let bad = |why: String| Error::invalid(format!("tokenizer.json: {why}"));
        let mut json: Value =
            serde_json::from_str(tokenizer_json).map_err(|e| bad(e.to_string()))?;
        plain_decoder(&mut json);
        let mut words =
            token_bytes_from_tokenizer_json(&json).map_err(|e| bad(e.to_string()))?;
        words.resize(size as usize, Vec::new());
        let end = size;
        let mut mark = vec![TokTrie::SPECIAL_TOKEN_MARKER];
        mark.extend_from_slice(b"<the end of the text>");
        words.push(mark);
        let trie = TokTrie::from(&TokRxInfo::new(words.len() as u32, end), &words);
        let env: TokEnv = Arc::new(ApproximateTokEnv::new(trie));
        let mut factory = ParserFactory::new(
            &env,
            InferenceCapabilities::default(),
            &llguidance::earley::SlicedBiasComputer::general_slices(),
        )
        .map_err(|e| bad(e.to_string()))?;
        factory.quiet();
        let bounds = factory.limits_mut();
        bounds.max_grammar_size = limits.grammar_symbols as usize;
        bounds.initial_lexer_fuel = limits.compile_fuel;
        bounds.step_lexer_fuel = limits.mask_fuel;
        bounds.step_max_items = limits.mask_items as usize;
        bounds.max_items_in_row = limits.row_items as usize;
        bounds.max_lexer_states = limits.lexer_states as usize;
        bounds.verbose_errors = false;
        Ok(Vocabulary { factory, end })
    }
}

// llguidance knows a byte-level decoder only where it stands alone.
fn plain_decoder(json: &mut Value) {
    let is_byte_level = |one: &Value| one["type"] == "ByteLevel";
    let decoder = &json["decoder"];
    let within = decoder["decoders"].as_array().is_some_and(|all| all.iter().any(is_byte_level));
    if within {
        json["decoder"] = json!({"type": "ByteLevel"});
    }
}
