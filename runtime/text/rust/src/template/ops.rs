// Python's operators on template values: arithmetic, comparison, containment, iteration.
use std::cmp::Ordering;
use std::rc::Rc;

use super::format::percent;
use super::meter::{failed, Meter, R};
use super::pystr::to_str;
use super::value::Value;

fn unsupported<T>(op: &str, a: &Value, b: &Value) -> R<T> {
    for side in [a, b] {
        if let Value::Undefined(name) = side {
            return undefined(name.as_deref());
        }
    }
    failed(format!("unsupported operand types for {op}: {} and {}", a.kind(), b.kind()))
}

pub fn undefined<T>(name: Option<&str>) -> R<T> {
    failed(format!("'{}' is undefined", name.unwrap_or("value")))
}

fn checked(result: Option<i128>, op: &str) -> R<Value> {
    match result {
        Some(value) => Ok(Value::Int(value)),
        None => failed(format!("the result of {op} does not fit in 128 bits")),
    }
}

pub fn add(a: &Value, b: &Value, meter: &Meter) -> R<Value> {
    match (a, b) {
        (Value::Str(x), Value::Str(y)) => join_two(x, y, meter),
        (Value::List(x), Value::List(y)) | (Value::Tuple(x), Value::Tuple(y)) => {
            meter.items(x.items.len() + y.items.len())?;
            meter.like(a, x.items.iter().chain(&y.items).cloned().collect())
        }
        _ => numeric("+", a, b, i128::checked_add, |x, y| x + y),
    }
}

fn join_two(a: &str, b: &str, meter: &Meter) -> R<Value> {
    meter.text(a.len().saturating_add(b.len()))?;
    Ok(Value::Str(Rc::from([a, b].concat())))
}

fn numeric(
    op: &str,
    a: &Value,
    b: &Value,
    ints: fn(i128, i128) -> Option<i128>,
    floats: fn(f64, f64) -> f64,
) -> R<Value> {
    if let (Some(x), Some(y)) = (a.as_int(), b.as_int()) {
        return checked(ints(x, y), op);
    }
    match (a.as_float(), b.as_float()) {
        (Some(x), Some(y)) => Ok(Value::Float(floats(x, y))),
        _ => unsupported(op, a, b),
    }
}

pub fn sub(a: &Value, b: &Value) -> R<Value> {
    numeric("-", a, b, i128::checked_sub, |x, y| x - y)
}

pub fn mul(a: &Value, b: &Value, meter: &Meter) -> R<Value> {
    let (repeated, count) = match (a.as_int(), b.as_int()) {
        (Some(count), None) => (b, count),
        (None, Some(count)) => (a, count),
        _ => return numeric("*", a, b, i128::checked_mul, |x, y| x * y),
    };
    let times = usize::try_from(count.max(0)).unwrap_or(usize::MAX);
    match repeated {
        Value::Str(text) => {
            meter.text_times(text.len(), times)?;
            Ok(Value::Str(Rc::from(text.repeat(if text.is_empty() { 0 } else { times }))))
        }
        Value::List(seq) | Value::Tuple(seq) => {
            meter.items(seq.items.len().saturating_mul(times))?;
            let times = if seq.items.is_empty() { 0 } else { times };
            let mut items = Vec::with_capacity(seq.items.len() * times);
            for _ in 0..times {
                items.extend_from_slice(&seq.items);
            }
            meter.like(repeated, items)
        }
        _ => numeric("*", a, b, i128::checked_mul, |x, y| x * y),
    }
}

pub fn div(a: &Value, b: &Value) -> R<Value> {
    match (a.as_float(), b.as_float()) {
        (Some(_), Some(0.0)) => failed("division by zero"),
        (Some(x), Some(y)) => Ok(Value::Float(x / y)),
        _ => unsupported("/", a, b),
    }
}

// Python's integer division rounds towards minus infinity.
fn floor_parts(a: i128, b: i128) -> Option<(i128, i128)> {
    let (quotient, rest) = (a.checked_div(b)?, a.checked_rem(b)?);
    if rest != 0 && (rest < 0) != (b < 0) {
        return Some((quotient - 1, rest + b));
    }
    Some((quotient, rest))
}

fn floor_rest(a: f64, b: f64) -> f64 {
    let rest = a % b;
    if rest != 0.0 && (rest < 0.0) != (b < 0.0) {
        rest + b
    } else if rest == 0.0 {
        0.0f64.copysign(b)
    } else {
        rest
    }
}

pub fn floor_div(a: &Value, b: &Value) -> R<Value> {
    if b.as_float() == Some(0.0) && a.as_float().is_some() {
        return failed("integer division or modulo by zero");
    }
    numeric(
        "//",
        a,
        b,
        |x, y| floor_parts(x, y).map(|p| p.0),
        |x, y| ((x - floor_rest(x, y)) / y).round(),
    )
}

pub fn rem(a: &Value, b: &Value, meter: &Meter) -> R<Value> {
    if let Value::Str(format) = a {
        let args = match b {
            Value::Tuple(seq) => seq.items.as_slice(),
            single => std::slice::from_ref(single),
        };
        return percent(format, args, b, meter);
    }
    if b.as_float() == Some(0.0) && a.as_float().is_some() {
        return failed("integer division or modulo by zero");
    }
    numeric("%", a, b, |x, y| floor_parts(x, y).map(|p| p.1), floor_rest)
}

pub fn pow(a: &Value, b: &Value) -> R<Value> {
    if let (Some(base), Some(power)) = (a.as_int(), b.as_int()) {
        if power >= 0 {
            // For larger powers only the bases 0, 1 and -1 fit, and their results depend only on
            // parity.
            let small = u32::try_from(power).unwrap_or(1000 + (power % 2) as u32);
            return checked(base.checked_pow(small), "**");
        }
        if base == 0 {
            return failed("0 cannot be raised to a negative power");
        }
    }
    match (a.as_float(), b.as_float()) {
        (Some(x), Some(y)) => Ok(Value::Float(x.powf(y))),
        _ => unsupported("**", a, b),
    }
}

pub fn neg(a: &Value) -> R<Value> {
    match (a.as_int(), a) {
        (Some(i), _) => checked(i.checked_neg(), "-"),
        (None, Value::Float(f)) => Ok(Value::Float(-f)),
        (None, Value::Undefined(name)) => undefined(name.as_deref()),
        _ => failed(format!("bad operand type for unary -: {}", a.kind())),
    }
}

pub fn concat(a: &Value, b: &Value, meter: &Meter) -> R<Value> {
    join_two(&to_str(a, meter)?, &to_str(b, meter)?, meter)
}

pub fn equal(a: &Value, b: &Value, meter: &Meter) -> R<bool> {
    meter.work(1)?;
    Ok(match (a, b) {
        (Value::Undefined(_), Value::Undefined(_)) | (Value::None, Value::None) => true,
        (Value::Str(x), Value::Str(y)) => {
            if x.len() != y.len() {
                return Ok(false);
            }
            meter.scan(x.len())?;
            x == y
        }
        (Value::List(x), Value::List(y)) | (Value::Tuple(x), Value::Tuple(y)) => {
            if x.items.len() != y.items.len() {
                return Ok(false);
            }
            for (one, other) in x.items.iter().zip(&y.items) {
                if !equal(one, other, meter)? {
                    return Ok(false);
                }
            }
            true
        }
        (Value::Dict(x), Value::Dict(y)) => {
            if x.map.len() != y.map.len() {
                return Ok(false);
            }
            for (key, one) in &x.map {
                match y.map.get(key) {
                    Some(other) if equal(one, other, meter)? => {}
                    _ => return Ok(false),
                }
            }
            true
        }
        (Value::Big(x), Value::Big(y)) => x == y,
        (Value::Namespace(x), Value::Namespace(y)) => Rc::ptr_eq(x, y),
        (Value::Loop(x), Value::Loop(y)) => Rc::ptr_eq(x, y),
        (Value::Macro(x), Value::Macro(y)) => x == y,
        (Value::Function(x), Value::Function(y)) => x == y,
        _ => match (a.as_int(), b.as_int()) {
            (Some(x), Some(y)) => x == y,
            _ => matches!((a.as_float(), b.as_float()), (Some(x), Some(y)) if x == y),
        },
    })
}

fn order_of_bigs(a: &str, b: &str) -> Ordering {
    let negative = a.starts_with('-');
    if negative != b.starts_with('-') {
        return if negative { Ordering::Less } else { Ordering::Greater };
    }
    let sizes = (a.len(), a).cmp(&(b.len(), b));
    if negative {
        sizes.reverse()
    } else {
        sizes
    }
}

/// The order of two values; None if a NaN is involved.
pub fn order(a: &Value, b: &Value, op: &str, meter: &Meter) -> R<Option<Ordering>> {
    meter.work(1)?;
    match (a, b) {
        (Value::Str(x), Value::Str(y)) => {
            meter.scan(x.len().min(y.len()))?;
            Ok(Some(x.cmp(y)))
        }
        (Value::List(x), Value::List(y)) | (Value::Tuple(x), Value::Tuple(y)) => {
            for (one, other) in x.items.iter().zip(&y.items) {
                if !equal(one, other, meter)? {
                    return order(one, other, op, meter);
                }
            }
            Ok(Some(x.items.len().cmp(&y.items.len())))
        }
        (Value::Big(x), Value::Big(y)) => Ok(Some(order_of_bigs(x, y))),
        // No other number but a float is as far from zero.
        (Value::Big(x), _) if b.as_float().is_some() => {
            Ok(x.parse().unwrap_or(f64::NAN).partial_cmp(&b.as_float().unwrap_or(f64::NAN)))
        }
        (_, Value::Big(_)) if a.as_float().is_some() => {
            Ok(order(b, a, op, meter)?.map(Ordering::reverse))
        }
        _ => match (a.as_int(), b.as_int()) {
            (Some(x), Some(y)) => Ok(Some(x.cmp(&y))),
            _ => match (a.as_float(), b.as_float()) {
                (Some(x), Some(y)) => Ok(x.partial_cmp(&y)),
                _ => unsupported(op, a, b),
            },
        },
    }
}

/// `needle in hay`.
pub fn contains(hay: &Value, needle: &Value, meter: &Meter) -> R<bool> {
    match hay {
        Value::Str(text) => match needle {
            Value::Str(part) => {
                meter.scan(text.len())?;
                Ok(text.contains(&**part))
            }
            Value::Undefined(name) => undefined(name.as_deref()),
            other => failed(format!("'in <string>' requires a string, not {}", other.kind())),
        },
        Value::List(seq) | Value::Tuple(seq) => {
            for item in &seq.items {
                if equal(item, needle, meter)? {
                    return Ok(true);
                }
            }
            Ok(false)
        }
        Value::Dict(dict) => match needle {
            Value::Undefined(_) | Value::Tuple(_) => Ok(false), // never a key here
            other => match other.to_key() {
                Some(key) => Ok(dict.map.contains_key(&key)),
                None => failed(format!("unhashable type: {}", other.kind())),
            },
        },
        Value::Undefined(_) => Ok(false),
        other => failed(format!("argument of type {} is not iterable", other.kind())),
    }
}

/// What `for` iterates over: items, keys or characters.
pub fn iterate(value: &Value, meter: &Meter) -> R<Vec<Value>> {
    match value {
        Value::List(seq) | Value::Tuple(seq) => {
            meter.items(seq.items.len())?;
            Ok(seq.items.clone())
        }
        Value::Dict(dict) => {
            meter.items(dict.map.len())?;
            Ok(dict.map.keys().map(|key| key.value().clone()).collect())
        }
        Value::Str(text) => {
            meter.items(text.len())?;
            Ok(text.chars().map(|c| Value::text(c.encode_utf8(&mut [0; 4]))).collect())
        }
        Value::Undefined(_) => Ok(Vec::new()),
        other => failed(format!("a {} is not iterable", other.kind())),
    }
}

pub fn length(value: &Value, meter: &Meter) -> R<usize> {
    match value {
        Value::Str(text) => {
            meter.scan(text.len())?;
            Ok(text.chars().count())
        }
        Value::List(seq) | Value::Tuple(seq) => Ok(seq.items.len()),
        Value::Dict(dict) => Ok(dict.map.len()),
        Value::Undefined(_) => Ok(0),
        other => failed(format!("a {} has no length", other.kind())),
    }
}
