// Hugging Face tokenizers and chat templates behind the C header ../../troupe_text.h.
//
// `edge`, `ffi` and `ffi_*` are the C interface and have nearly all unsafe code: they check UTF-8, catch
// panics, and turn errors into a status and a message. `tokenizer` and `stream` wrap the tokenizers
// crate; `growth` bounds what a tokenizer.json can make of a text. `template` evaluates Jinja templates that minijinja parsed, and counts every step and
// byte. Nothing here starts a thread or opens a file.
mod edge;
mod ffi;
mod ffi_template;
mod ffi_tokenizer;
mod growth;
mod stream;
mod template;
mod tokenizer;
