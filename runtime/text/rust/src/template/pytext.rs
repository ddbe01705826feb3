// Python's text functions that differ from Rust's: white space, splitting, case, replacing.
use super::meter::{Meter, R};
use super::value::Value;

/// Whether `name` is a word of `list`, whose words are separated by spaces.
pub fn listed(list: &str, name: &str) -> bool {
    list.split(' ').any(|word| word == name)
}

/// str.isspace for one character: Unicode white space and the four separators U+001C to U+001F.
pub fn is_space(c: char) -> bool {
    c.is_whitespace() || ('\u{1c}'..='\u{1f}').contains(&c)
}

pub fn strip<'a>(s: &'a str, chars: Option<&str>, left: bool, right: bool) -> &'a str {
    let strips = |c: char| chars.map_or_else(|| is_space(c), |set| set.contains(c));
    let s = if left { s.trim_start_matches(strips) } else { s };
    if right {
        s.trim_end_matches(strips)
    } else {
        s
    }
}

/// str.split(sep, max) and rsplit.
pub fn split<'a>(s: &'a str, sep: &str, max: usize, from_right: bool) -> Vec<&'a str> {
    let limit = max.saturating_add(1);
    if from_right {
        let mut parts: Vec<&str> = s.rsplitn(limit, sep).collect();
        parts.reverse();
        return parts;
    }
    s.splitn(limit, sep).collect()
}

/// str.split() and rsplit() at runs of white space; no part is empty. After `max` splits the rest
/// is one part, and keeps the white space at its far end.
pub fn split_space(s: &str, max: usize, from_right: bool) -> Vec<&str> {
    let mut parts = Vec::new();
    let mut rest = strip(s, None, !from_right, from_right);
    while !rest.is_empty() {
        let cut = if from_right { rest.rfind(is_space) } else { rest.find(is_space) };
        let Some(at) = cut.filter(|_| parts.len() < max) else {
            parts.push(rest);
            break;
        };
        let after = at + rest[at..].chars().next().map_or(1, char::len_utf8);
        if from_right {
            parts.push(&rest[after..]);
            rest = strip(&rest[..at], None, false, true);
        } else {
            parts.push(&rest[..at]);
            rest = strip(&rest[after..], None, true, false);
        }
    }
    if from_right {
        parts.reverse();
    }
    parts
}

/// str.splitlines, with all of Python's line ends.
pub fn split_lines(s: &str, keep_ends: bool) -> Vec<&str> {
    let ends = |c: char| {
        matches!(c, '\n' | '\r' | '\u{b}' | '\u{c}' | '\u{1c}'..='\u{1e}' | '\u{85}')
            || matches!(c, '\u{2028}' | '\u{2029}')
    };
    let mut lines = Vec::new();
    let mut rest = s;
    while !rest.is_empty() {
        let Some(at) = rest.find(ends) else {
            lines.push(rest);
            break;
        };
        let first = rest[at..].chars().next().map_or(1, char::len_utf8);
        let width = if rest[at..].starts_with("\r\n") { 2 } else { first };
        lines.push(&rest[..if keep_ends { at + width } else { at }]);
        rest = &rest[at + width..];
    }
    lines
}

pub fn capitalize(s: &str) -> String {
    let mut chars = s.chars();
    match chars.next() {
        Some(first) => title_char(first) + &chars.as_str().to_lowercase(),
        None => String::new(),
    }
}

// Title case differs from upper case for some digraphs; these are the ones of Latin script.
fn title_char(c: char) -> String {
    match c {
        '\u{1c4}'..='\u{1c6}' => "\u{1c5}".into(),
        '\u{1c7}'..='\u{1c9}' => "\u{1c8}".into(),
        '\u{1ca}'..='\u{1cc}' => "\u{1cb}".into(),
        '\u{1f1}'..='\u{1f3}' => "\u{1f2}".into(),
        'ß' => "Ss".into(),
        _ => c.to_uppercase().collect(),
    }
}

/// str.title: a letter after a non-letter becomes upper case, every other letter lower case.
pub fn title_case(s: &str) -> String {
    let mut out = String::with_capacity(s.len());
    let mut inside = false;
    for c in s.chars() {
        let cased = c.is_lowercase() || c.is_uppercase();
        if cased && !inside {
            out.push_str(&title_char(c));
        } else {
            out.extend(c.to_lowercase());
        }
        inside = cased;
    }
    out
}

pub fn swap_case(s: &str) -> String {
    let mut out = String::with_capacity(s.len());
    for c in s.chars() {
        if c.is_uppercase() {
            out.extend(c.to_lowercase());
        } else {
            out.extend(c.to_uppercase());
        }
    }
    out
}

/// str.replace; charges the size of the result before building it.
pub fn replace(s: &str, old: &str, new: &str, count: usize, meter: &Meter) -> R<Value> {
    meter.scan(s.len())?;
    let found = if old.is_empty() { s.chars().count() + 1 } else { s.matches(old).count() };
    let found = found.min(count);
    meter.items(found)?;
    let grown = s.len().saturating_add(found.saturating_mul(new.len()));
    meter.text(grown.saturating_sub(found * old.len()))?;
    Ok(Value::text(&s.replacen(old, new, found)))
}

/// The number of runs of word characters.
pub fn words(s: &str) -> usize {
    let word = |c: char| c.is_alphanumeric() || c == '_';
    s.split(|c| !word(c)).filter(|part| !part.is_empty()).count()
}
