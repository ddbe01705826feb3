// Prepares a template's source for parsing: normalises line ends as jinja2 does, rewrites the
// `generation` tags of transformers, and checks bounds that keep parsing cheap and the tree
// shallow.
use minijinja::machinery::{tokenize, Token};
use minijinja::syntax::SyntaxConfig;

use super::meter::R;
use crate::ffi::{Error, Status};

const SOURCE_BYTES_MAX: usize = 1 << 20;
const TAG_TOKENS_MAX: usize = 2048; // a chain of operators nests as deep as it is long
const TAG_BYTES_MAX: usize = 256; // longest tag that is rewritten
const ELIF_MAX: usize = 512; // each nests one level deeper

/// The syntax options of transformers: trim_blocks and lstrip_blocks.
pub fn syntax() -> R<SyntaxConfig> {
    SyntaxConfig::builder().trim_blocks(true).lstrip_blocks(true).build().map_err(error)
}

pub fn error(e: minijinja::Error) -> Error {
    let line = e.line().map_or(String::new(), |line| format!(", line {line}"));
    let detail = e.detail().map_or_else(|| e.kind().to_string(), str::to_owned);
    Error::new(Status::Syntax, format!("chat template{line}: {detail}"))
}

pub fn prepare(source: &str) -> R<String> {
    let too_large = |what: String| Err(Error::new(Status::Limit, format!("chat template: {what}")));
    if source.len() > SOURCE_BYTES_MAX {
        return too_large(format!("the source has more than {SOURCE_BYTES_MAX} bytes"));
    }
    let source = source.replace("\r\n", "\n").replace('\r', "\n");
    let source = plain_tags(&source);
    let (mut in_tag, mut elifs) = (0, 0);
    for token in tokenize(&source, false, syntax()?) {
        match token.map_err(error)?.0 {
            Token::VariableStart | Token::BlockStart => in_tag = 0,
            Token::Ident("elif") => elifs += 1,
            _ => in_tag += 1,
        }
        if in_tag > TAG_TOKENS_MAX {
            return too_large(format!("more than {TAG_TOKENS_MAX} tokens in one tag"));
        }
        if elifs > ELIF_MAX {
            return too_large(format!("more than {ELIF_MAX} elif"));
        }
    }
    Ok(source)
}

// `{% generation %} ... {% endgeneration %}` marks what an assistant wrote, and prints its body. It
// becomes a `with` block, which has the same scoping; dashes stay. `{% raw %}` gets a plus, because
// minijinja would drop the line end after it and jinja2 does not.
fn plain_tags(source: &str) -> String {
    let mut out = String::with_capacity(source.len() + 64);
    let mut rest = source;
    while let Some(at) = rest.find("{%") {
        let (before, tag) = rest.split_at(at + 2);
        out.push_str(before);
        rest = tag;
        // Only short tags matter; the bounded search keeps this linear.
        let near = &tag.as_bytes()[..tag.len().min(TAG_BYTES_MAX)];
        let Some(end) = near.windows(2).position(|pair| pair == b"%}") else { continue };
        let inner = &tag[..end];
        let name = inner.trim_matches(|c: char| c.is_whitespace() || "+-".contains(c));
        match name {
            "generation" => out.push_str(&inner.replacen(name, "with", 1)),
            "endgeneration" => out.push_str(&inner.replacen(name, "endwith", 1)),
            "raw" => {
                out.push_str(inner.trim_end());
                if !inner.ends_with(['-', '+']) {
                    out.push_str(" +");
                }
                // Nothing before `{% endraw %}` is a tag.
                let body = end_of_raw(&tag[end..]).unwrap_or(tag.len() - end);
                out.push_str(&tag[end..end + body]);
                rest = &tag[end + body..];
                continue;
            }
            _ => continue,
        }
        rest = &tag[end..];
    }
    out + rest
}

// The offset of the next `{% endraw %}`.
fn end_of_raw(text: &str) -> Option<usize> {
    let mut from = 0;
    while let Some(at) = text[from..].find("{%") {
        let start = from + at;
        let inner = text[start + 2..].trim_start_matches(['-', '+']).trim_start();
        if inner.starts_with("endraw") {
            return Some(start);
        }
        from = start + 2;
    }
    None
}
