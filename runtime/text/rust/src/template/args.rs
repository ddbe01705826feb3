// The arguments of one call: positional ones, then named ones; read by position or by name.
use std::rc::Rc;

use super::meter::{failed, Meter, R};
use super::pystr::to_str;
use super::value::{Key, Value};

#[derive(Default)]
pub struct Args {
    pub list: Vec<Value>,
    pub named: Vec<(Rc<str>, Value)>,
}

impl Args {
    /// The values of the parameters `names`, in that order; any other argument is an error.
    pub fn bind<const N: usize>(&self, what: &str, names: [&str; N]) -> R<[Option<&Value>; N]> {
        let mut bound = [None; N];
        if self.list.len() > N {
            return failed(format!("{what} takes at most {N} arguments, not {}", self.list.len()));
        }
        for (place, value) in bound.iter_mut().zip(&self.list) {
            *place = Some(value);
        }
        for (name, value) in &self.named {
            match names.iter().position(|known| *known == &**name) {
                Some(at) if bound[at].is_none() => bound[at] = Some(value),
                Some(_) => return failed(format!("{what} got two values for '{name}'")),
                None => return failed(format!("{what} has no argument '{name}'")),
            }
        }
        Ok(bound)
    }

    pub fn none(&self, what: &str) -> R<()> {
        self.bind(what, []).map(|_| ())
    }

    pub fn named(&self, name: &str) -> Option<&Value> {
        self.named.iter().find(|(known, _)| **known == *name).map(|(_, value)| value)
    }

    /// The named arguments as dict entries.
    pub fn entries(&self) -> impl Iterator<Item = (Key, Value)> + '_ {
        self.named.iter().map(|(name, value)| (Key::text(name.clone()), value.clone()))
    }
}

/// The parameter, or nothing if it is missing or Python's None.
pub fn given(value: Option<&Value>) -> Option<&Value> {
    value.filter(|value| !matches!(value, Value::None))
}

/// The parameter as a string; an error if it is missing or not a string.
pub fn text<'a>(what: &str, value: Option<&'a Value>) -> R<&'a str> {
    match value {
        Some(Value::Str(text)) => Ok(text),
        Some(other) => failed(format!("{what} needs a string, not {}", other.kind())),
        None => failed(format!("{what} is missing an argument")),
    }
}

/// The parameter as an integer; `default` if it is missing or None.
pub fn int(what: &str, value: Option<&Value>, default: i128) -> R<i128> {
    let Some(value) = given(value) else { return Ok(default) };
    match value.as_int() {
        Some(i) => Ok(i),
        None => failed(format!("{what} needs an integer, not {}", value.kind())),
    }
}

/// The parameter as a maximum count; no limit if it is missing or negative.
pub fn at_most(what: &str, value: Option<&Value>) -> R<usize> {
    let count = int(what, value, -1)?;
    Ok(if count < 0 { usize::MAX } else { size(count) })
}

pub fn flag(value: Option<&Value>, default: bool) -> bool {
    value.map_or(default, Value::truthy)
}

/// A count as a size: negative ones become 0, huge ones the largest usize.
pub fn size(count: i128) -> usize {
    usize::try_from(count.max(0)).unwrap_or(usize::MAX)
}

pub fn string(value: Option<&Value>, default: &str, meter: &Meter) -> R<Rc<str>> {
    value.map_or(Ok(Rc::from(default)), |value| to_str(value, meter))
}
