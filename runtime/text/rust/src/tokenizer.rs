// Wraps the tokenizers crate, without truncation, padding or threads. Immutable once loaded, so any
// number of threads may share it. Holds the vocabulary and a bounded cache.
use tokenizers::{PaddingParams, TruncationParams};

use crate::ffi::Error;
use crate::growth::{Growth, Head, TokenizerLimits};

pub struct Tokenizer {
    inner: tokenizers::Tokenizer,
    growth: Growth,
    id_limit: usize,
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
        head.check(&limits)?;
        let mut inner = tokenizers::Tokenizer::from_bytes(json).map_err(|e| not_one(&e))?;
        let growth = Growth::of(&head, &inner, limits)?;
        inner
            .with_truncation(None::<TruncationParams>)
            .map_err(|e| Error::invalid(format!("tokenizer.json: {e}")))?;
        inner.with_padding(None::<PaddingParams>);
        let id_limit = inner.get_vocab(true).values().max().map_or(0, |id| *id as usize + 1);
        Ok(Tokenizer { inner, growth, id_limit })
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

    pub fn token_to_id(&self, token: &str) -> Option<u32> {
        self.inner.token_to_id(token)
    }

    pub fn is_special(&self, id: u32) -> bool {
        self.added().get(&id).is_some_and(|token| token.special)
    }

    pub fn vocab_size(&self) -> usize {
        self.inner.get_vocab_size(true)
    }

    pub fn id_limit(&self) -> usize {
        self.id_limit
    }

    fn added(&self) -> &ahash::AHashMap<u32, tokenizers::AddedToken> {
        self.inner.get_added_vocabulary().get_added_tokens_decoder()
    }
}
