// Access to parts of values, as in Jinja's sandbox: `value.name`, `value[key]`, `value[a:b:c]`.
use std::rc::Rc;

use super::meter::{failed, Meter, R};
use super::methods;
use super::ops::undefined;
use super::value::{Loop, Value};

/// `value.name`: looks for a method first, then for an item, as in jinja2.
pub fn attribute(value: &Value, name: &str) -> R<Value> {
    match value {
        Value::Undefined(what) => undefined(what.as_deref()),
        Value::Loop(state) => Ok(loop_attribute(state, name)),
        Value::Namespace(space) => {
            let fields = space.fields.borrow();
            let found = fields.iter().find(|(field, _)| **field == *name);
            Ok(found.map_or_else(|| Value::undefined(name), |(_, value)| value.clone()))
        }
        _ if methods::exists(value, name) => {
            Ok(Value::Method(Rc::new((value.clone(), Rc::from(name)))))
        }
        Value::Dict(dict) => {
            Ok(dict.map.get(name).cloned().unwrap_or_else(|| Value::undefined(name)))
        }
        _ => Ok(Value::undefined(name)),
    }
}

/// `value[key]`: looks for an item first, then for an attribute.
pub fn item(value: &Value, key: &Value, meter: &Meter) -> R<Value> {
    match value {
        Value::Undefined(what) => undefined(what.as_deref()),
        Value::Dict(dict) => {
            let Some(hashed) = key.to_key() else { return Ok(Value::Undefined(None)) };
            if let Some(found) = dict.map.get(&hashed) {
                return Ok(found.clone());
            }
            by_name(value, key)
        }
        Value::List(seq) | Value::Tuple(seq) => match key.as_int() {
            Some(index) => Ok(at(index, seq.items.len())
                .map_or(Value::Undefined(None), |place| seq.items[place].clone())),
            None => by_name(value, key),
        },
        Value::Str(text) => match key.as_int() {
            Some(index) => {
                meter.scan(text.len())?;
                let Some(place) = at(index, text.chars().count()) else {
                    return Ok(Value::Undefined(None));
                };
                let c = text.chars().nth(place).unwrap_or_default();
                Ok(Value::text(c.encode_utf8(&mut [0; 4])))
            }
            None => by_name(value, key),
        },
        _ => by_name(value, key),
    }
}

fn by_name(value: &Value, key: &Value) -> R<Value> {
    match key {
        Value::Str(name) => match value {
            Value::Dict(_) if !methods::exists(value, name) => Ok(Value::undefined(name)),
            _ => attribute(value, name),
        },
        _ => Ok(Value::Undefined(None)),
    }
}

fn at(index: i128, len: usize) -> Option<usize> {
    let place = if index < 0 { index + len as i128 } else { index };
    usize::try_from(place).ok().filter(|place| *place < len)
}

fn loop_attribute(state: &Loop, name: &str) -> Value {
    let (index0, length) = (state.index0.get(), state.items.len());
    let int = |n: usize| Value::Int(n as i128);
    match name {
        "index" => int(index0 + 1),
        "index0" => int(index0),
        "revindex" => int(length - index0),
        "revindex0" => int(length - index0 - 1),
        "first" => Value::Bool(index0 == 0),
        "last" => Value::Bool(index0 + 1 == length),
        "length" => int(length),
        "depth" => int(state.depth0 + 1),
        "depth0" => int(state.depth0),
        "previtem" if index0 > 0 => state.items[index0 - 1].clone(),
        "nextitem" if index0 + 1 < length => state.items[index0 + 1].clone(),
        _ => Value::undefined(name),
    }
}

/// Start, stop and step of `[start:stop:step]` over `len` items, by Python's rules.
fn indices(len: usize, bounds: [Option<i128>; 3]) -> R<(i128, i128, i128)> {
    let len = len as i128;
    let step = bounds[2].unwrap_or(1);
    if step == 0 {
        return failed("slice step cannot be zero");
    }
    let (low, high) = if step > 0 { (0, len) } else { (-1, len - 1) };
    let clamp = |bound: Option<i128>, default: i128| match bound {
        None => default,
        Some(at) if at < 0 => at.saturating_add(len).max(low),
        Some(at) => at.min(high),
    };
    let (first, last) = if step > 0 { (low, high) } else { (high, low) };
    Ok((clamp(bounds[0], first), clamp(bounds[1], last), step))
}

fn pick<T: Clone>(all: &[T], (start, stop, step): (i128, i128, i128)) -> Vec<T> {
    let mut picked = Vec::new();
    let mut at = start;
    while (step > 0 && at < stop) || (step < 0 && at > stop) {
        picked.push(all[at as usize].clone());
        at = at.saturating_add(step);
    }
    picked
}

pub fn slice(value: &Value, bounds: [Value; 3], meter: &Meter) -> R<Value> {
    let mut numbers = [None; 3];
    for (number, bound) in numbers.iter_mut().zip(&bounds) {
        *number = match bound {
            Value::None => None,
            Value::Undefined(name) => return undefined(name.as_deref()),
            other => match other.as_int() {
                Some(i) => Some(i),
                None => return failed(format!("a slice index cannot be a {}", other.kind())),
            },
        };
    }
    match value {
        Value::List(seq) | Value::Tuple(seq) => {
            meter.items(seq.items.len())?;
            let picked = pick(&seq.items, indices(seq.items.len(), numbers)?);
            meter.like(value, picked)
        }
        Value::Str(text) => {
            meter.text(text.len())?;
            let chars: Vec<char> = text.chars().collect();
            meter.string(pick(&chars, indices(chars.len(), numbers)?).into_iter().collect())
        }
        Value::Undefined(name) => undefined(name.as_deref()),
        other => failed(format!("a {} cannot be sliced", other.kind())),
    }
}
