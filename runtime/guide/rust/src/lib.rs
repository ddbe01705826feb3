// Grammars over the tokens of a vocabulary, behind the C header ../troupe_guide.h.
//
// `edge` has the unsafe code that views, strings and panics need, and is that of the text library;
// `ffi` has the status codes; `vocabulary` reads tokens from a tokenizer.json; `matcher` wraps
// llguidance. This file is the table of functions by which the program calls them. Nothing here
// opens a file; compiling a grammar runs on a thread of its own, for its stack.
#[path = "../../../text/rust/src/edge.rs"]
mod edge;
mod ffi;
mod matcher;
mod vocabulary;

use ffi::{answer, free_array, free_boxed, OwnedString, Status, View};
use matcher::{Kind, Matcher};
use vocabulary::{Limits, Vocabulary};

const ABI: u32 = 1;

#[repr(C)]
pub struct Table {
    abi: u32,
    vocabulary_new: unsafe extern "C" fn(
        View,
        u32,
        *const Limits,
        *mut *mut Vocabulary,
        *mut OwnedString,
    ) -> Status,
    vocabulary_free: unsafe extern "C" fn(*mut Vocabulary),
    matcher_new: unsafe extern "C" fn(
        *const Vocabulary,
        i32,
        View,
        View,
        *mut *mut Matcher,
        *mut OwnedString,
    ) -> Status,
    matcher_clone:
        unsafe extern "C" fn(*const Matcher, *mut *mut Matcher, *mut OwnedString) -> Status,
    matcher_free: unsafe extern "C" fn(*mut Matcher),
    matcher_mask:
        unsafe extern "C" fn(*mut Matcher, *mut u32, usize, *mut i32, *mut OwnedString) -> Status,
    matcher_take: unsafe extern "C" fn(*mut Matcher, u32, *mut OwnedString) -> Status,
    string_free: unsafe extern "C" fn(*mut OwnedString),
}

#[no_mangle]
pub static troupe_guide_entry: Table = Table {
    abi: ABI,
    vocabulary_new,
    vocabulary_free,
    matcher_new,
    matcher_clone,
    matcher_free,
    matcher_mask,
    matcher_take,
    string_free,
};

// The contracts of the pointers are those of the header.

unsafe extern "C" fn vocabulary_new(
    tokenizer_json: View,
    size: u32,
    limits: *const Limits,
    out: *mut *mut Vocabulary,
    error: *mut OwnedString,
) -> Status {
    answer("reading the tokens of a tokenizer", out, error, || {
        let vocabulary = Vocabulary::new(tokenizer_json.text("tokenizer.json")?, size, *limits)?;
        Ok(Box::into_raw(Box::new(vocabulary)))
    })
}

unsafe extern "C" fn vocabulary_free(vocabulary: *mut Vocabulary) {
    free_boxed(vocabulary);
}

unsafe extern "C" fn matcher_new(
    vocabulary: *const Vocabulary,
    kind: i32,
    text: View,
    whitespace: View,
    out: *mut *mut Matcher,
    error: *mut OwnedString,
) -> Status {
    answer("compiling a grammar", out, error, || {
        let text = text.text("the grammar")?;
        let whitespace = whitespace.text("the pattern of whitespace")?;
        let matcher = Matcher::new(&*vocabulary, Kind::of(kind)?, text, whitespace)?;
        Ok(Box::into_raw(Box::new(matcher)))
    })
}

unsafe extern "C" fn matcher_clone(
    matcher: *const Matcher,
    out: *mut *mut Matcher,
    error: *mut OwnedString,
) -> Status {
    answer("copying the state of a grammar", out, error, || {
        Ok(Box::into_raw(Box::new((*matcher).copy())))
    })
}

unsafe extern "C" fn matcher_free(matcher: *mut Matcher) {
    free_boxed(matcher);
}

unsafe extern "C" fn matcher_mask(
    matcher: *mut Matcher,
    words: *mut u32,
    count: usize,
    may_end: *mut i32,
    error: *mut OwnedString,
) -> Status {
    answer("computing a mask", may_end, error, || {
        let words = std::slice::from_raw_parts_mut(words, count);
        (*matcher).mask(words).map(i32::from)
    })
}

unsafe extern "C" fn matcher_take(
    matcher: *mut Matcher,
    token: u32,
    error: *mut OwnedString,
) -> Status {
    let mut nothing = ();
    answer("taking a token", &mut nothing, error, || (*matcher).take(token))
}

unsafe extern "C" fn string_free(string: *mut OwnedString) {
    if let Some(string) = string.as_mut() {
        free_array(string.data, string.size);
        *string = OwnedString { data: std::ptr::null_mut(), size: 0 };
    }
}
