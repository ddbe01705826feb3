// Hugging Face tokenizers and chat templates behind the C header ../troupe_text.h.
//
// `ffi_*` is the C edge and the only unsafe code: it checks pointers and UTF-8, catches panics and
// turns errors into a status and a sentence. `tokenizer` and `stream` wrap the tokenizers crate;
// `template` evaluates Jinja templates that minijinja parsed, with every step and byte counted.
// Nothing here starts a thread, reads a file or keeps state between calls.
mod ffi;
mod ffi_template;
mod ffi_tokenizer;
mod stream;
mod template;
mod tokenizer;
