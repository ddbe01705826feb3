// Jinja's tests: `value is name(args)`.
use std::mem::discriminant;

use super::args::Args;
use super::filters;
use super::meter::{failed, Meter, R};
use super::ops;
use super::pystr::to_str;
use super::pytext::listed;
use super::value::Value;

const NAMES: &str = "\
    != < <= == > >= boolean callable defined divisibleby eq equalto escaped even false filter \
    float ge greaterthan gt in integer iterable le lessthan lower lt mapping ne none number odd \
    sameas sequence string test true undefined upper";

pub fn exists(name: &str) -> bool {
    listed(NAMES, name)
}

pub fn check(name: &str, value: &Value, args: &Args, meter: &Meter) -> R<bool> {
    if let Some(result) = of_type(name, value) {
        args.none(name)?;
        return Ok(result);
    }
    let cased = |upper: bool| -> R<bool> {
        let text = to_str(value, meter)?;
        let any = text.chars().any(|c| c.is_lowercase() || c.is_uppercase());
        let wrong = if upper { char::is_lowercase } else { char::is_uppercase };
        Ok(any && !text.chars().any(wrong))
    };
    match name {
        "odd" | "even" => {
            args.none(name)?;
            let rest = ops::rem(value, &Value::Int(2), meter)?;
            ops::equal(&rest, &Value::Int(i128::from(name == "odd")), meter)
        }
        "lower" => cased(false),
        "upper" => cased(true),
        "filter" => Ok(value.as_str().is_some_and(filters::exists)),
        "test" => Ok(value.as_str().is_some_and(exists)),
        _ if !exists(name) => failed(format!("no test named '{name}'")),
        _ => {
            let [other] = args.bind(name, ["value"])?;
            let Some(other) = other else {
                return failed(format!("the test '{name}' needs an argument"));
            };
            with_argument(name, value, other, meter)
        }
    }
}

fn of_type(name: &str, value: &Value) -> Option<bool> {
    use Value::{Big, Bool, Dict, Float, Int, List, Str, Tuple, Undefined};
    let iterable = matches!(value, Str(_) | List(_) | Tuple(_) | Dict(_) | Undefined(_));
    Some(match name {
        "defined" => !value.is_undefined(),
        "undefined" => value.is_undefined(),
        "none" => matches!(value, Value::None),
        "boolean" => matches!(value, Bool(_)),
        "true" => matches!(value, Bool(true)),
        "false" => matches!(value, Bool(false)),
        "integer" => matches!(value, Int(_) | Big(_)),
        "float" => matches!(value, Float(_)),
        "number" => matches!(value, Int(_) | Big(_) | Float(_) | Bool(_)),
        "string" => matches!(value, Str(_)),
        "mapping" => matches!(value, Dict(_)),
        "sequence" => iterable,
        "iterable" => iterable || matches!(value, Value::Loop(_)),
        "callable" => {
            value.is_undefined()
                || matches!(value, Value::Macro(_) | Value::Function(_) | Value::Method(_))
        }
        "escaped" => false,
        _ => return None,
    })
}

fn with_argument(name: &str, value: &Value, other: &Value, meter: &Meter) -> R<bool> {
    use std::cmp::Ordering::{Equal, Greater, Less};
    let ordered = |op: &str| ops::order(value, other, op, meter);
    Ok(match name {
        "eq" | "equalto" | "==" => ops::equal(value, other, meter)?,
        "ne" | "!=" => !ops::equal(value, other, meter)?,
        "lt" | "lessthan" | "<" => ordered("<")? == Some(Less),
        "le" | "<=" => matches!(ordered("<=")?, Some(Less | Equal)),
        "gt" | "greaterthan" | ">" => ordered(">")? == Some(Greater),
        "ge" | ">=" => matches!(ordered(">=")?, Some(Greater | Equal)),
        "in" => ops::contains(other, value, meter)?,
        "divisibleby" => ops::equal(&ops::rem(value, other, meter)?, &Value::Int(0), meter)?,
        // Stands in for Python's `is`: values of the same type that are equal.
        "sameas" => discriminant(value) == discriminant(other) && ops::equal(value, other, meter)?,
        _ => return failed(format!("no test named '{name}'")),
    })
}
