// Python's str() and repr(), byte for byte: what `{{ value }}` prints.
use std::rc::Rc;

use super::meter::{Meter, Text, R};
use super::value::Value;

/// str(value); a string is returned unchanged.
pub fn to_str(value: &Value, meter: &Meter) -> R<Rc<str>> {
    if let Value::Str(text) = value {
        return Ok(text.clone());
    }
    let mut out = meter.builder();
    write_str(&mut out, value)?;
    Ok(Rc::from(out.finish()))
}

pub fn write_str(out: &mut Text, value: &Value) -> R<()> {
    match value {
        Value::Undefined(_) => Ok(()),
        Value::Str(text) => out.push(text),
        other => write_repr(out, other),
    }
}

pub fn write_repr(out: &mut Text, value: &Value) -> R<()> {
    match value {
        Value::Undefined(_) => out.push("Undefined"),
        Value::None => out.push("None"),
        Value::Bool(true) => out.push("True"),
        Value::Bool(false) => out.push("False"),
        Value::Int(i) => out.push(&i.to_string()),
        Value::Big(digits) => out.push(digits),
        Value::Float(f) => out.push(&float_repr(*f)),
        Value::Str(text) => write_quoted(out, text),
        Value::List(seq) => {
            out.push("[")?;
            write_items(out, &seq.items)?;
            out.push("]")
        }
        Value::Tuple(seq) => {
            out.push("(")?;
            write_items(out, &seq.items)?;
            out.push(if seq.items.len() == 1 { ",)" } else { ")" })
        }
        Value::Dict(dict) => {
            out.push("{")?;
            for (i, (key, item)) in dict.map.iter().enumerate() {
                out.push(if i > 0 { ", " } else { "" })?;
                write_repr(out, key.value())?;
                out.push(": ")?;
                write_repr(out, item)?;
            }
            out.push("}")
        }
        handle => out.push(&format!("<{}>", handle.kind())),
    }
}

fn write_items(out: &mut Text, items: &[Value]) -> R<()> {
    for (i, item) in items.iter().enumerate() {
        out.meter().work(1)?;
        out.push(if i > 0 { ", " } else { "" })?;
        write_repr(out, item)?;
    }
    Ok(())
}

fn write_quoted(out: &mut Text, text: &str) -> R<()> {
    let quote = if text.contains('\'') && !text.contains('"') { '"' } else { '\'' };
    out.push_char(quote)?;
    for c in text.chars() {
        match c {
            '\n' => out.push("\\n")?,
            '\r' => out.push("\\r")?,
            '\t' => out.push("\\t")?,
            '\\' => out.push("\\\\")?,
            c if c == quote => {
                out.push("\\")?;
                out.push_char(c)?;
            }
            c if printable(c) => out.push_char(c)?,
            c => {
                let code = c as u32;
                out.push(&match code {
                    0..=0xff => format!("\\x{code:02x}"),
                    0x100..=0xffff => format!("\\u{code:04x}"),
                    _ => format!("\\U{code:08x}"),
                })?;
            }
        }
    }
    out.push_char(quote)
}

// Rust's escape_debug leaves the same characters unescaped as Python's isprintable accepts, except
// that it also escapes combining marks at the start of a text. Hence the letter in front.
fn printable(c: char) -> bool {
    if c.is_ascii() {
        return !c.is_ascii_control();
    }
    let mut buffer = String::from("a");
    buffer.push(c);
    buffer.escape_debug().nth(1) == Some(c)
}

/// repr(float): the shortest digits that read back as the same number, with an exponent below 1e-4
/// and from 1e16.
pub fn float_repr(f: f64) -> String {
    if !f.is_finite() {
        return if f.is_nan() { "nan".into() } else { f.to_string() }; // "inf", "-inf"
    }
    let scientific = format!("{f:e}");
    let (mantissa, exponent) = scientific.split_once('e').unwrap_or((&scientific, "0"));
    let exponent: i32 = exponent.parse().unwrap_or(0);
    if (-4..16).contains(&exponent) || f == 0.0 {
        let plain = format!("{f}");
        return if plain.contains('.') { plain } else { format!("{plain}.0") };
    }
    let sign = if exponent < 0 { '-' } else { '+' };
    format!("{mantissa}e{sign}{:02}", exponent.abs())
}
