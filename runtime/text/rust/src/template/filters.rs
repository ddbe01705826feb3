// Jinja's filters on single values: text, numbers, JSON. filters_seq.rs has those on sequences.
use std::rc::Rc;

use super::args::{at_most, flag, given, int, size, string, Args};
use super::filters_seq;
use super::format::percent;
use super::interp::Interp;
use super::json::{dump, Dump};
use super::meter::{failed, Meter, R};
use super::methods;
use super::ops;
use super::pystr::to_str;
use super::pytext::{capitalize, listed, replace, split_lines, strip, words};
use super::value::Value;

const NAMES: &str = "\
    abs attr capitalize center d default e escape float format indent int lower replace round \
    safe string title tojson trim truncate upper wordcount";

pub fn exists(name: &str) -> bool {
    listed(NAMES, name) || filters_seq::exists(name)
}

pub fn apply(interp: &mut Interp, name: &str, value: &Value, args: &Args) -> R<Value> {
    let meter = interp.meter();
    meter.work(1)?;
    if let Value::Str(text) = value {
        meter.scan(text.len())?;
    }
    match name {
        "default" | "d" => {
            let [other, boolean] = args.bind(name, ["default_value", "boolean"])?;
            if value.is_undefined() || (flag(boolean, false) && !value.truthy()) {
                return Ok(other.cloned().unwrap_or_else(|| Value::text("")));
            }
            Ok(value.clone())
        }
        "tojson" => to_json(value, args, meter),
        "abs" => {
            args.none(name)?;
            match (value.as_int(), value) {
                (Some(i), _) if i < 0 => ops::neg(value),
                (Some(i), _) => Ok(Value::Int(i)),
                (None, Value::Float(f)) => Ok(Value::Float(f.abs())),
                _ => failed(format!("abs needs a number, not {}", value.kind())),
            }
        }
        "attr" => {
            let [field] = args.bind(name, ["name"])?;
            let field = string(field, "", meter)?;
            match value {
                Value::Dict(_) if !methods::exists(value, &field) => Ok(Value::undefined(&field)),
                _ => super::access::attribute(value, &field),
            }
        }
        "int" | "float" if value.is_undefined() => ops::undefined(value.missing_name()),
        "int" => to_int(value, args),
        "float" => {
            let [default] = args.bind(name, ["default"])?;
            let parsed = match value {
                Value::Str(text) => python_float(text),
                _ => value.as_float(),
            };
            let default = || default.cloned().unwrap_or(Value::Float(0.0));
            Ok(parsed.map_or_else(default, Value::Float))
        }
        "round" => round(value, args),
        "format" => {
            let format = to_str(value, meter)?;
            if args.named.is_empty() {
                let all = meter.tuple(args.list.clone())?;
                return percent(&format, &args.list, &all, meter);
            }
            let named = meter.dict(args.entries().collect())?;
            percent(&format, &[], &named, meter)
        }
        "indent" if value.as_str().is_none() => {
            failed(format!("indent needs a string, not {}", value.kind()))
        }
        _ if filters_seq::exists(name) => filters_seq::apply(interp, name, value, args),
        _ if listed(NAMES, name) => text_filter(name, &to_str(value, meter)?, args, meter),
        _ => failed(format!("no filter named '{name}'")),
    }
}

fn text_filter(name: &str, s: &Rc<str>, args: &Args, meter: &Meter) -> R<Value> {
    match name {
        "replace" => {
            let [old, new, count] = args.bind(name, ["old", "new", "count"])?;
            let count = at_most(name, count)?;
            let (old, new) = (string(old, "", meter)?, string(new, "", meter)?);
            return replace(s, &old, &new, count, meter);
        }
        "trim" => {
            let [chars] = args.bind(name, ["chars"])?;
            let set = given(chars).map(|chars| to_str(chars, meter)).transpose()?;
            meter.work(set.as_ref().map_or(0, |set| set.len() as u64))?;
            return meter.str(strip(s, set.as_deref(), true, true));
        }
        "indent" => return indent(s, args, meter),
        "center" => {
            let [width] = args.bind(name, ["width"])?;
            let width = Value::Int(int(name, width, 80)?);
            return methods::pad(s, name, &Args { list: vec![width], named: vec![] }, meter);
        }
        "truncate" => return truncate(s, args, meter),
        _ => args.none(name)?,
    }
    match name {
        "upper" => meter.string(s.to_uppercase()),
        "lower" => meter.string(s.to_lowercase()),
        "capitalize" => meter.string(capitalize(s)),
        "title" => meter.string(jinja_title(s)),
        "escape" | "e" => escape(s, meter),
        "wordcount" => Ok(Value::Int(words(s) as i128)),
        _ => Ok(Value::Str(s.clone())), // string, safe
    }
}

fn escape(s: &str, meter: &Meter) -> R<Value> {
    let mut out = meter.builder();
    for c in s.chars() {
        match c {
            '&' => out.push("&amp;")?,
            '<' => out.push("&lt;")?,
            '>' => out.push("&gt;")?,
            '\'' => out.push("&#39;")?,
            '"' => out.push("&#34;")?,
            c => out.push_char(c)?,
        }
    }
    Ok(out.value())
}

// The filter `title`: a word begins after white space or one of -({[<.
fn jinja_title(s: &str) -> String {
    let breaks = |c: char| super::pytext::is_space(c) || "-({[<".contains(c);
    let mut out = String::with_capacity(s.len());
    let mut inside = false;
    for c in s.chars() {
        if breaks(c) || inside {
            out.extend(c.to_lowercase());
        } else {
            out.extend(c.to_uppercase());
        }
        inside = !breaks(c);
    }
    out
}

fn indent(s: &str, args: &Args, meter: &Meter) -> R<Value> {
    let [width, first, blank] = args.bind("indent", ["width", "first", "blank"])?;
    let margin: Rc<str> = match width {
        Some(Value::Str(text)) => text.clone(),
        other => {
            let width = size(int("indent", other, 4)?);
            meter.text(width)?;
            Rc::from(" ".repeat(width))
        }
    };
    let with_end = format!("{s}\n");
    let mut out = meter.builder();
    for (i, line) in split_lines(&with_end, false).into_iter().enumerate() {
        if i > 0 {
            out.push("\n")?;
        }
        let wanted =
            if i == 0 { flag(first, false) } else { flag(blank, false) || !line.is_empty() };
        if wanted {
            out.push(&margin)?;
        }
        out.push(line)?;
    }
    Ok(out.value())
}

fn truncate(s: &str, args: &Args, meter: &Meter) -> R<Value> {
    let [length, kill, end, leeway] =
        args.bind("truncate", ["length", "killwords", "end", "leeway"])?;
    let length = size(int("truncate", length, 255)?);
    let leeway = size(int("truncate", leeway, 5)?);
    let end = string(end, "...", meter)?;
    let end_size = end.chars().count();
    if length < end_size {
        return failed(format!("truncate: expected a length of at least {end_size}"));
    }
    if s.chars().count() <= length.saturating_add(leeway) {
        return meter.str(s);
    }
    let cut: String = s.chars().take(length - end_size).collect();
    let kept = if flag(kill, false) { &cut } else { cut.rsplit_once(' ').map_or(&*cut, |p| p.0) };
    meter.string(format!("{kept}{end}"))
}

fn to_json(value: &Value, args: &Args, meter: &Meter) -> R<Value> {
    let [ensure_ascii, indent, separators, sort_keys] =
        args.bind("tojson", ["ensure_ascii", "indent", "separators", "sort_keys"])?;
    let indent = match given(indent) {
        None => None,
        Some(Value::Str(text)) => Some(text.to_string()),
        Some(width) => {
            let width = size(int("tojson", Some(width), 0)?);
            meter.text(width)?;
            Some(" ".repeat(width))
        }
    };
    let (items, keys) = match given(separators) {
        None => (if indent.is_some() { "," } else { ", " }, ": "),
        Some(pair) => match pair.items() {
            Some([Value::Str(items), Value::Str(keys)]) => (&**items, &**keys),
            _ => return failed("tojson: separators must be two strings"),
        },
    };
    let style = Dump {
        ensure_ascii: flag(ensure_ascii, false),
        indent,
        item_separator: items.to_owned(),
        key_separator: keys.to_owned(),
        sort_keys: flag(sort_keys, false),
    };
    dump(value, &style, meter)
}

fn python_float(text: &str) -> Option<f64> {
    let text = strip(text, None, true, true);
    let digits = text.trim_start_matches(['+', '-']).to_ascii_lowercase();
    let word = matches!(&*digits, "inf" | "infinity" | "nan");
    let plausible = digits.starts_with(|c: char| c.is_ascii_digit() || c == '.');
    if word || plausible {
        text.replace('_', "").parse().ok()
    } else {
        None
    }
}

fn to_int(value: &Value, args: &Args) -> R<Value> {
    let [default, base] = args.bind("int", ["default", "base"])?;
    let base = int("int", base, 10)?;
    let parsed = match value {
        Value::Str(text) => {
            let text = strip(text, None, true, true);
            let digits = match base {
                16 => text.trim_start_matches("0x").trim_start_matches("0X"),
                8 => text.trim_start_matches("0o"),
                2 => text.trim_start_matches("0b"),
                _ => text,
            };
            let base = u32::try_from(base).ok().filter(|base| (2..=36).contains(base));
            let whole = base.and_then(|base| i128::from_str_radix(digits, base).ok());
            whole.or_else(|| python_float(text).filter(|f| f.is_finite()).map(|f| f as i128))
        }
        Value::Float(f) if f.is_finite() => Some(*f as i128),
        _ => value.as_int(),
    };
    Ok(parsed.map_or_else(|| default.cloned().unwrap_or(Value::Int(0)), Value::Int))
}

fn round(value: &Value, args: &Args) -> R<Value> {
    let [precision, method] = args.bind("round", ["precision", "method"])?;
    let precision = int("round", precision, 0)?;
    let method = method.and_then(Value::as_str).unwrap_or("common");
    let Some(f) = value.as_float() else {
        return failed(format!("round needs a number, not {}", value.kind()));
    };
    if !(-300..=300).contains(&precision) {
        return failed("round: the precision must lie between -300 and 300");
    }
    let scale = 10f64.powi(precision as i32);
    match method {
        "ceil" => Ok(Value::Float((f * scale).ceil() / scale)),
        "floor" => Ok(Value::Float((f * scale).floor() / scale)),
        "common" if value.as_int().is_some() && precision >= 0 => {
            Ok(Value::Int(value.as_int().unwrap_or(0)))
        }
        // Formatting rounds the exact decimal value half to even, as Python's round does.
        "common" if precision >= 0 => {
            let text = format!("{f:.*}", precision as usize);
            Ok(Value::Float(text.parse().unwrap_or(f)))
        }
        "common" => Ok(Value::Float((f * scale).round_ties_even() / scale)),
        _ => failed("round: the method must be common, ceil or floor"),
    }
}
