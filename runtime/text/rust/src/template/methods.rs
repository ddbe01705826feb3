// The methods of Python's str, dict, list and tuple that templates may call. None changes its
// object, as in transformers' immutable sandbox.
use std::rc::Rc;

use super::args::{at_most, flag, given, int, size, text, Args};
use super::format::braces;
use super::meter::{failed, Meter, R};
use super::ops;
use super::pytext::{
    capitalize, is_space, listed, replace, split, split_lines, split_space, strip, swap_case,
    title_case,
};
use super::value::Value;

const STR: &str = "\
    capitalize casefold center count endswith find format index isalnum isalpha isascii \
    isdecimal isdigit islower isnumeric isspace isupper join ljust lower lstrip partition \
    removeprefix removesuffix replace rfind rindex rjust rpartition rsplit rstrip split \
    splitlines startswith strip swapcase title upper zfill";
const DICT: &[&str] = &["copy", "get", "items", "keys", "values"];
const DICT_FORBIDDEN: &[&str] = &["clear", "pop", "popitem", "setdefault", "update"];
const SEQ: &[&str] = &["copy", "count", "index"];
const SEQ_FORBIDDEN: &[&str] =
    &["append", "clear", "extend", "insert", "pop", "remove", "reverse", "sort"];

/// Whether `call` knows this method of the value's Python type, forbidden ones included.
pub fn exists(value: &Value, name: &str) -> bool {
    match value {
        Value::Str(_) => listed(STR, name),
        Value::Dict(_) => DICT.contains(&name) || DICT_FORBIDDEN.contains(&name),
        Value::List(_) => SEQ.contains(&name) || SEQ_FORBIDDEN.contains(&name),
        Value::Tuple(_) => ["count", "index"].contains(&name),
        _ => false,
    }
}

pub fn call(value: &Value, name: &str, args: &Args, meter: &Meter) -> R<Value> {
    match value {
        Value::Str(subject) => {
            meter.scan(subject.len())?;
            string_method(subject, name, args, meter)
        }
        Value::Dict(_) if DICT_FORBIDDEN.contains(&name) => forbidden(name),
        Value::List(_) if SEQ_FORBIDDEN.contains(&name) => forbidden(name),
        Value::Dict(_) => dict_method(value, name, args, meter),
        _ => seq_method(value, name, args, meter),
    }
}

fn forbidden(name: &str) -> R<Value> {
    failed(format!("a chat template may not change its input: .{name}() is not allowed"))
}

fn string_method(s: &Rc<str>, name: &str, args: &Args, meter: &Meter) -> R<Value> {
    match name {
        "strip" | "lstrip" | "rstrip" => stripped(s, name, args, meter),
        "split" | "rsplit" => parts(s, name, args, meter),
        "splitlines" => {
            let [keep] = args.bind(name, ["keepends"])?;
            texts(split_lines(s, flag(keep, false)).into_iter(), meter)
        }
        "startswith" | "endswith" => {
            let [affix, start, end] = args.bind(name, ["prefix", "start", "end"])?;
            if start.is_some() || end.is_some() {
                return failed(format!("{name} with start or end is not supported"));
            }
            affixed(s, name, affix)
        }
        "replace" => {
            let [old, new, count] = args.bind(name, ["old", "new", "count"])?;
            replace(s, text(name, old)?, text(name, new)?, at_most(name, count)?, meter)
        }
        "join" => {
            let [parts] = args.bind(name, ["iterable"])?;
            let parts = ops::iterate(parts.unwrap_or(&Value::None), meter)?;
            let mut out = meter.builder();
            for (i, part) in parts.iter().enumerate() {
                out.push(if i > 0 { s } else { "" })?;
                out.push(text("join", Some(part))?)?;
            }
            Ok(out.value())
        }
        "format" => braces(s, &args.list, &args.named, meter),
        "find" | "rfind" | "index" | "rindex" | "count" => {
            let [part] = args.bind(name, ["sub"])?;
            search(s, name, text(name, part)?)
        }
        "partition" | "rpartition" => {
            let [sep] = args.bind(name, ["sep"])?;
            partition(s, name, text(name, sep)?, meter)
        }
        "removeprefix" => {
            let [affix] = args.bind(name, ["prefix"])?;
            meter.str(s.strip_prefix(text(name, affix)?).unwrap_or(s))
        }
        "removesuffix" => {
            let [affix] = args.bind(name, ["suffix"])?;
            meter.str(s.strip_suffix(text(name, affix)?).unwrap_or(s))
        }
        "center" | "ljust" | "rjust" | "zfill" => pad(s, name, args, meter),
        _ => {
            args.none(name)?;
            plain_method(s, name, meter)
        }
    }
}

fn stripped(s: &str, name: &str, args: &Args, meter: &Meter) -> R<Value> {
    let [chars] = args.bind(name, ["chars"])?;
    let chars = given(chars).map(|chars| text(name, Some(chars))).transpose()?;
    meter.work(chars.map_or(0, |set| set.len() as u64))?;
    meter.str(strip(s, chars, name != "rstrip", name != "lstrip"))
}

fn parts(s: &str, name: &str, args: &Args, meter: &Meter) -> R<Value> {
    let [sep, max] = args.bind(name, ["sep", "maxsplit"])?;
    let max = at_most(name, max)?;
    let parts = match given(sep) {
        None => split_space(s, max, name == "rsplit"),
        sep => {
            let sep = text(name, sep)?;
            if sep.is_empty() {
                return failed("empty separator");
            }
            split(s, sep, max, name == "rsplit")
        }
    };
    texts(parts.into_iter(), meter)
}

fn plain_method(s: &str, name: &str, meter: &Meter) -> R<Value> {
    let any_cased = || s.chars().any(|c| c.is_lowercase() || c.is_uppercase());
    let all = |test: fn(char) -> bool| Value::Bool(!s.is_empty() && s.chars().all(test));
    match name {
        "upper" => meter.string(s.to_uppercase()),
        "lower" | "casefold" => meter.string(s.to_lowercase()),
        "title" => meter.string(title_case(s)),
        "capitalize" => meter.string(capitalize(s)),
        "swapcase" => meter.string(swap_case(s)),
        "isdigit" | "isdecimal" | "isnumeric" => Ok(all(char::is_numeric)),
        "isalpha" => Ok(all(char::is_alphabetic)),
        "isalnum" => Ok(all(char::is_alphanumeric)),
        "isspace" => Ok(all(is_space)),
        "isascii" => Ok(Value::Bool(s.is_ascii())),
        "islower" => Ok(Value::Bool(any_cased() && !s.chars().any(char::is_uppercase))),
        "isupper" => Ok(Value::Bool(any_cased() && !s.chars().any(char::is_lowercase))),
        _ => failed(format!("a str has no method '{name}'")),
    }
}

fn texts<'a>(parts: impl Iterator<Item = &'a str>, meter: &Meter) -> R<Value> {
    let parts = parts.map(|part| meter.str(part)).collect::<R<Vec<Value>>>()?;
    meter.list(parts)
}

fn affixed(s: &str, name: &str, affix: Option<&Value>) -> R<Value> {
    let one = |value: &Value| -> R<bool> {
        let affix = text(name, Some(value))?;
        Ok(if name == "startswith" { s.starts_with(affix) } else { s.ends_with(affix) })
    };
    match affix {
        Some(Value::Tuple(seq)) => {
            for value in &seq.items {
                if one(value)? {
                    return Ok(Value::Bool(true));
                }
            }
            Ok(Value::Bool(false))
        }
        Some(value) => Ok(Value::Bool(one(value)?)),
        None => failed(format!("{name} is missing an argument")),
    }
}

fn search(s: &str, name: &str, part: &str) -> R<Value> {
    if name == "count" {
        let count = if part.is_empty() { s.chars().count() + 1 } else { s.matches(part).count() };
        return Ok(Value::Int(count as i128));
    }
    let at = if name.starts_with('r') { s.rfind(part) } else { s.find(part) };
    match at {
        Some(at) => Ok(Value::Int(s[..at].chars().count() as i128)),
        None if name.ends_with("index") => failed("substring not found"),
        None => Ok(Value::Int(-1)),
    }
}

fn partition(s: &str, name: &str, sep: &str, meter: &Meter) -> R<Value> {
    if sep.is_empty() {
        return failed("empty separator");
    }
    let last = name == "rpartition";
    let parts = match if last { s.rsplit_once(sep) } else { s.split_once(sep) } {
        Some((before, after)) => [before, sep, after],
        None if last => ["", "", s],
        None => [s, "", ""],
    };
    meter.tuple(parts.iter().map(|part| meter.str(part)).collect::<R<Vec<_>>>()?)
}

pub fn pad(s: &str, name: &str, args: &Args, meter: &Meter) -> R<Value> {
    let [width, fill] = args.bind(name, ["width", "fillchar"])?;
    let width = size(int(name, width, 0)?);
    let mut fill = fill.map_or(Ok(" "), |fill| text(name, Some(fill)))?.chars();
    let (Some(fill), None) = (fill.next(), fill.next()) else {
        return failed(format!("{name}: the fill character must be one character"));
    };
    let missing = width.saturating_sub(s.chars().count());
    let mut out = meter.builder();
    if name == "zfill" {
        let signed = s.starts_with(['+', '-']);
        let (sign, digits) = s.split_at(usize::from(signed));
        out.push(sign)?;
        out.pad('0', missing)?;
        out.push(digits)?;
        return Ok(out.value());
    }
    let before = match name {
        "ljust" => 0,
        "rjust" => missing,
        _ => missing / 2 + (missing & width & 1), // rounds like CPython's str.center
    };
    out.pad(fill, before)?;
    out.push(s)?;
    out.pad(fill, missing - before)?;
    Ok(out.value())
}

fn dict_method(value: &Value, name: &str, args: &Args, meter: &Meter) -> R<Value> {
    let Value::Dict(dict) = value else { return failed("not a dict") };
    if name == "get" {
        let [key, default] = args.bind(name, ["key", "default"])?;
        let Some(key) = key.unwrap_or(&Value::None).to_key() else {
            return failed("get: unhashable key");
        };
        let found = dict.map.get(&key);
        return Ok(found.or(default).cloned().unwrap_or(Value::None));
    }
    args.none(name)?;
    meter.items(dict.map.len())?;
    match name {
        "keys" => meter.list(dict.map.keys().map(|key| key.value().clone()).collect()),
        "values" => meter.list(dict.map.values().cloned().collect()),
        "items" => items(value, meter),
        "copy" => Ok(value.clone()),
        _ => failed(format!("a dict has no method '{name}'")),
    }
}

/// The (key, value) tuples of a dict.
pub fn items(value: &Value, meter: &Meter) -> R<Value> {
    let Value::Dict(dict) = value else {
        return failed(format!("a {} has no items", value.kind()));
    };
    let pairs =
        dict.map.iter().map(|(key, item)| meter.tuple(vec![key.value().clone(), item.clone()]));
    meter.list(pairs.collect::<R<Vec<_>>>()?)
}

fn seq_method(value: &Value, name: &str, args: &Args, meter: &Meter) -> R<Value> {
    let Some(items) = value.items() else {
        return failed(format!("a {} has no method '{name}'", value.kind()));
    };
    if name == "copy" {
        args.none(name)?;
        return Ok(value.clone());
    }
    let [wanted] = args.bind(name, ["value"])?;
    let wanted = wanted.unwrap_or(&Value::None);
    let mut count = 0;
    for (at, item) in items.iter().enumerate() {
        if ops::equal(item, wanted, meter)? {
            if name == "index" {
                return Ok(Value::Int(at as i128));
            }
            count += 1;
        }
    }
    if name == "index" {
        return failed("the value is not in the list");
    }
    Ok(Value::Int(count))
}
