// Reads JSON, keeping the order of keys, and writes it like json.dumps, as transformers' `tojson`
// does.
use std::fmt;

use indexmap::IndexMap;
use serde::de::{DeserializeSeed, Deserializer, Error as _, MapAccess, SeqAccess, Visitor};

use super::meter::{failed, Meter, Text, R};
use super::pystr::{float_repr, write_str};
use super::value::{Key, Value};
use crate::ffi::{Error, Status};

/// Reads one JSON document, its integers at any size, as Python does. `what` names it in errors.
pub fn parse(text: &str, what: &str, meter: &Meter) -> R<Value> {
    let limit = std::cell::RefCell::new(None);
    let numbers = std::cell::Cell::new(text);
    let mut reader = serde_json::Deserializer::from_str(text);
    let parsed = Seed { meter, limit: &limit, numbers: &numbers }
        .deserialize(&mut reader)
        .and_then(|value| reader.end().map(|()| value));
    parsed.map_err(|e| {
        limit
            .into_inner()
            .unwrap_or_else(|| Error::new(Status::Invalid, format!("{what} is not JSON: {e}")))
    })
}

#[derive(Clone, Copy)]
struct Seed<'m> {
    meter: &'m Meter,
    limit: &'m std::cell::RefCell<Option<Error>>, // the meter's own error, which serde would lose
    numbers: &'m std::cell::Cell<&'m str>,        // the text behind the last number visited
}

/// The next number of a JSON text as it is written, and the text behind it.
fn next_number(text: &str) -> (&str, &str) {
    let bytes = text.as_bytes();
    let mut at = 0;
    while at < bytes.len() {
        match bytes[at] {
            b'"' => {
                at += 1;
                while at < bytes.len() && bytes[at] != b'"' {
                    at += if bytes[at] == b'\\' { 2 } else { 1 };
                }
            }
            b'-' | b'0'..=b'9' => {
                let in_number = |b: &u8| b"+-.eE0123456789".contains(b);
                let size = bytes[at..].iter().take_while(|b| in_number(b)).count();
                return (&text[at..at + size], &text[at + size..]);
            }
            _ => {}
        }
        at += 1;
    }
    ("", "")
}

impl Seed<'_> {
    // serde visits numbers in the order of the text, and gives an integer beyond 64 bits as a float.
    fn number(self, value: Value) -> Value {
        let (written, rest) = next_number(self.numbers.get());
        self.numbers.set(rest);
        match value {
            Value::Float(_) if !written.contains(['.', 'e', 'E']) => Value::whole(written),
            other => other,
        }
    }

    fn metered<T, E: serde::de::Error>(self, result: R<T>) -> Result<T, E> {
        result.map_err(|e| {
            let message = e.message.clone();
            *self.limit.borrow_mut() = Some(e);
            E::custom(message)
        })
    }
}

impl<'de> DeserializeSeed<'de> for Seed<'_> {
    type Value = Value;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Value, D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Seed<'_> {
    type Value = Value;

    fn expecting(&self, f: &mut fmt::Formatter) -> fmt::Result {
        f.write_str("a JSON value")
    }

    fn visit_bool<E>(self, value: bool) -> Result<Value, E> {
        Ok(Value::Bool(value))
    }

    fn visit_i64<E>(self, value: i64) -> Result<Value, E> {
        Ok(self.number(Value::Int(value.into())))
    }

    fn visit_u64<E>(self, value: u64) -> Result<Value, E> {
        Ok(self.number(Value::Int(value.into())))
    }

    fn visit_f64<E>(self, value: f64) -> Result<Value, E> {
        Ok(self.number(Value::Float(value)))
    }

    fn visit_str<E: serde::de::Error>(self, value: &str) -> Result<Value, E> {
        // Input comes from the caller, so only reading it is charged.
        self.metered(self.meter.scan(value.len()))?;
        Ok(Value::text(value))
    }

    fn visit_unit<E>(self) -> Result<Value, E> {
        Ok(Value::None)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<Value, A::Error> {
        let mut items = Vec::new();
        while let Some(item) = seq.next_element_seed(self)? {
            items.push(item);
        }
        self.metered(self.meter.list(items))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut access: A) -> Result<Value, A::Error> {
        let mut map = IndexMap::new();
        while let Some(key) = access.next_key_seed(self)? {
            let Some(key) = key.to_key() else {
                return Err(A::Error::custom("a key is not a string"));
            };
            map.insert(key, access.next_value_seed(self)?);
        }
        self.metered(self.meter.dict(map))
    }
}

pub struct Dump {
    pub ensure_ascii: bool,
    pub indent: Option<String>,
    pub item_separator: String,
    pub key_separator: String,
    pub sort_keys: bool,
}

pub fn dump(value: &Value, style: &Dump, meter: &Meter) -> R<Value> {
    let mut out = meter.builder();
    write(&mut out, value, style, 0)?;
    Ok(out.value())
}

fn write(out: &mut Text, value: &Value, style: &Dump, level: usize) -> R<()> {
    out.meter().work(1)?;
    match value {
        Value::None => out.push("null"),
        Value::Bool(b) => out.push(if *b { "true" } else { "false" }),
        Value::Int(i) => out.push(&i.to_string()),
        Value::Big(digits) => out.push(digits),
        Value::Float(f) => out.push(&number(*f)),
        Value::Str(text) => write_text(out, text, style.ensure_ascii),
        Value::List(seq) | Value::Tuple(seq) => {
            if seq.items.is_empty() {
                return out.push("[]");
            }
            out.push("[")?;
            for (i, item) in seq.items.iter().enumerate() {
                separate(out, style, level + 1, i > 0)?;
                write(out, item, style, level + 1)?;
            }
            close(out, style, level, "]")
        }
        Value::Dict(dict) => {
            if dict.map.is_empty() {
                return out.push("{}");
            }
            let mut entries: Vec<(&Key, &Value)> = dict.map.iter().collect();
            if style.sort_keys {
                sort(&mut entries)?;
            }
            out.push("{")?;
            for (i, (key, item)) in entries.into_iter().enumerate() {
                separate(out, style, level + 1, i > 0)?;
                write_key(out, key.value(), style)?;
                out.push(&style.key_separator)?;
                write(out, item, style, level + 1)?;
            }
            close(out, style, level, "}")
        }
        other => failed(format!("tojson: a {} is not JSON serializable", other.kind())),
    }
}

fn number(f: f64) -> String {
    match f {
        f64::INFINITY => "Infinity".into(),
        f64::NEG_INFINITY => "-Infinity".into(),
        _ if f.is_nan() => "NaN".into(),
        _ => float_repr(f),
    }
}

fn sort(entries: &mut [(&Key, &Value)]) -> R<()> {
    if entries.iter().any(|(key, _)| key.value().as_str().is_none()) {
        return failed("tojson: sort_keys needs keys that are strings");
    }
    entries.sort_by_key(|(key, _)| key.value().as_str());
    Ok(())
}

fn separate(out: &mut Text, style: &Dump, level: usize, between: bool) -> R<()> {
    if between {
        out.push(&style.item_separator)?;
    }
    newline(out, style, level)
}

fn newline(out: &mut Text, style: &Dump, level: usize) -> R<()> {
    if let Some(indent) = &style.indent {
        out.push("\n")?;
        for _ in 0..level {
            out.push(indent)?;
        }
    }
    Ok(())
}

fn close(out: &mut Text, style: &Dump, level: usize, bracket: &str) -> R<()> {
    newline(out, style, level)?;
    out.push(bracket)
}

fn write_key(out: &mut Text, key: &Value, style: &Dump) -> R<()> {
    match key {
        Value::Str(text) => write_text(out, text, style.ensure_ascii),
        Value::None => out.push("\"null\""),
        Value::Bool(b) => out.push(if *b { "\"true\"" } else { "\"false\"" }),
        number => {
            out.push("\"")?;
            write_str(out, number)?;
            out.push("\"")
        }
    }
}

fn write_text(out: &mut Text, text: &str, ensure_ascii: bool) -> R<()> {
    out.push("\"")?;
    let mut plain = 0; // start of the run that needs no escape
    for (at, c) in text.char_indices() {
        let escape = match c {
            '"' => "\\\"".to_owned(),
            '\\' => "\\\\".to_owned(),
            '\n' => "\\n".to_owned(),
            '\r' => "\\r".to_owned(),
            '\t' => "\\t".to_owned(),
            '\u{8}' => "\\b".to_owned(),
            '\u{c}' => "\\f".to_owned(),
            c if (c as u32) < 0x20 => format!("\\u{:04x}", c as u32),
            c if ensure_ascii && (c as u32) >= 0x7f => escaped_units(c),
            _ => continue,
        };
        out.push(&text[plain..at])?;
        out.push(&escape)?;
        plain = at + c.len_utf8();
    }
    out.push(&text[plain..])?;
    out.push("\"")
}

fn escaped_units(c: char) -> String {
    if c == '\u{7f}' {
        return c.to_string(); // json.dumps leaves DEL alone
    }
    c.encode_utf16(&mut [0; 2]).iter().map(|unit| format!("\\u{unit:04x}")).collect()
}
