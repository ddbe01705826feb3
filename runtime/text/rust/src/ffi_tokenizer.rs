// The C functions for tokenizers and streaming decoders. Contract: ../../troupe_text.h.
use crate::ffi::{
    answer, free_array, free_boxed, guard, leak_array, Error, OwnedString, Status, View,
};
use crate::growth::TokenizerLimits;
use crate::stream::Stream;
use crate::tokenizer::Tokenizer;

#[repr(C)]
pub struct EncodingOut {
    ids: *mut u32,
    offsets: *mut u64,
    size: usize,
}

/// # Safety See the header; this holds for every function below.
#[no_mangle]
pub unsafe extern "C" fn troupe_text_tokenizer_new(
    json: View,
    limits: *const TokenizerLimits,
    out: *mut *mut Tokenizer,
    error: *mut OwnedString,
) -> Status {
    answer("reading tokenizer.json", out, error, || {
        Ok(Box::into_raw(Box::new(Tokenizer::from_json(json.bytes(), *limits)?)))
    })
}

#[no_mangle]
pub unsafe extern "C" fn troupe_text_tokenizer_free(tokenizer: *mut Tokenizer) {
    free_boxed(tokenizer);
}

#[no_mangle]
pub unsafe extern "C" fn troupe_text_encode(
    tokenizer: *const Tokenizer,
    text: View,
    add_special: i32,
    out: *mut EncodingOut,
    error: *mut OwnedString,
) -> Status {
    answer("encoding", out, error, || {
        let encoding = (*tokenizer).encode(text.text("the text to encode")?, add_special != 0)?;
        let size = encoding.ids.len();
        let (ids, offsets) = (leak_array(encoding.ids), leak_array(encoding.offsets));
        Ok(EncodingOut { ids, offsets, size })
    })
}

#[no_mangle]
pub unsafe extern "C" fn troupe_text_encoding_free(encoding: *mut EncodingOut) {
    if let Some(EncodingOut { ids, offsets, size }) = encoding.as_mut() {
        free_array(std::mem::replace(ids, std::ptr::null_mut()), *size);
        free_array(std::mem::replace(offsets, std::ptr::null_mut()), *size * 2);
        *size = 0;
    }
}

#[no_mangle]
pub unsafe extern "C" fn troupe_text_decode(
    tokenizer: *const Tokenizer,
    ids: *const u32,
    count: usize,
    skip_special: i32,
    out: *mut OwnedString,
    error: *mut OwnedString,
) -> Status {
    let ids = if count == 0 { &[] } else { std::slice::from_raw_parts(ids, count) };
    answer("decoding", out, error, || {
        (*tokenizer).decode(ids, skip_special != 0).map(OwnedString::new)
    })
}

// Returns 1 and writes what `find` found to *out; else returns 0.
unsafe fn tell<T>(what: &str, out: *mut T, find: impl FnOnce() -> Result<Option<T>, Error>) -> i32 {
    let found = guard(what, find).unwrap_or(None);
    let told = i32::from(found.is_some());
    if let Some(value) = found {
        out.write(value);
    }
    told
}

#[no_mangle]
pub unsafe extern "C" fn troupe_text_id_to_token(
    tokenizer: *const Tokenizer,
    id: u32,
    out: *mut OwnedString,
) -> i32 {
    tell("looking up an id", out, || Ok((*tokenizer).id_to_token(id).map(OwnedString::new)))
}

#[no_mangle]
pub unsafe extern "C" fn troupe_text_token_bytes(
    tokenizer: *const Tokenizer,
    id: u32,
    out: *mut OwnedString,
) -> i32 {
    tell("looking up an id", out, || {
        let bytes = (*tokenizer).token_bytes(id)?;
        Ok(bytes.map(|all| OwnedString { size: all.len(), data: leak_array(all) }))
    })
}

#[no_mangle]
pub unsafe extern "C" fn troupe_text_token_to_id(
    tokenizer: *const Tokenizer,
    token: View,
    id: *mut u32,
) -> i32 {
    tell("looking up a token", id, || Ok((*tokenizer).token_to_id(token.text("the token")?)))
}

#[no_mangle]
pub unsafe extern "C" fn troupe_text_is_special(tokenizer: *const Tokenizer, id: u32) -> i32 {
    i32::from((*tokenizer).is_special(id))
}

#[no_mangle]
pub unsafe extern "C" fn troupe_text_id_limit(tokenizer: *const Tokenizer) -> usize {
    (*tokenizer).id_limit()
}

#[no_mangle]
pub unsafe extern "C" fn troupe_text_stream_new(
    tokenizer: *const Tokenizer,
    skip_special: i32,
) -> *mut Stream<'static> {
    // The caller must keep the tokenizer alive as long as the stream.
    let tokenizer: &'static Tokenizer = &*tokenizer;
    Box::into_raw(Box::new(Stream::new(tokenizer, skip_special != 0)))
}

#[no_mangle]
pub unsafe extern "C" fn troupe_text_stream_free(stream: *mut Stream<'static>) {
    free_boxed(stream);
}

#[no_mangle]
pub unsafe extern "C" fn troupe_text_stream_push(
    stream: *mut Stream<'static>,
    id: u32,
    out: *mut OwnedString,
    error: *mut OwnedString,
) -> Status {
    answer("decoding a stream", out, error, || (*stream).push(id).map(OwnedString::new))
}

#[no_mangle]
pub unsafe extern "C" fn troupe_text_stream_finish(
    stream: *mut Stream<'static>,
    out: *mut OwnedString,
    error: *mut OwnedString,
) -> Status {
    answer("ending a stream", out, error, || (*stream).finish().map(OwnedString::new))
}
