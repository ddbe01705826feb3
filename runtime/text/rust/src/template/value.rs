// The values of a template: those of JSON and Python literals, and Jinja's handles (namespaces,
// macros, loops, functions, methods). Lists, tuples and dicts never hold handles, and namespaces no
// namespace, loop or method. With the stored depth, this makes every value a tree of bounded depth,
// so printing, comparing and freeing may recurse freely. Owned by one rendering, on one thread.
use std::cell::{Cell, RefCell};
use std::hash::{Hash, Hasher};
use std::rc::Rc;

use indexmap::{Equivalent, IndexMap};

#[derive(Clone)]
pub enum Value {
    Undefined(Option<Rc<str>>), // the name that was looked up
    None,
    Bool(bool),
    Int(i128),
    Big(Rc<str>), // an integer beyond 128 bits, as written: printed and compared, nothing else
    Float(f64),
    Str(Rc<str>),
    List(Rc<Seq>),
    Tuple(Rc<Seq>),
    Dict(Rc<Dict>),
    Namespace(Rc<Namespace>),
    Macro(usize), // index into the interpreter's table
    Loop(Rc<Loop>),
    Function(&'static str),       // one of functions::NAMES
    Method(Rc<(Value, Rc<str>)>), // `text.strip` without a call
}

pub struct Seq {
    pub items: Vec<Value>,
    pub depth: u32,
}

pub struct Dict {
    pub map: IndexMap<Key, Value>,
    pub depth: u32,
}

#[derive(Default)]
pub struct Namespace {
    pub fields: RefCell<Vec<(Rc<str>, Value)>>,
}

/// The variable `loop` of one running loop.
pub struct Loop {
    pub items: Vec<Value>,
    pub index0: Cell<usize>,
    pub depth0: usize,
    pub changed: RefCell<Option<Vec<Value>>>,
    pub recursive: Option<usize>, // index of the loop's syntax in the interpreter's table
}

/// A dictionary key: None, a bool, a number or a string (`Value::to_key`). As in Python, 1, 1.0 and
/// True are the same key. Unlike in Python, a tuple cannot be a key.
#[derive(Clone)]
pub struct Key(Value);

impl Key {
    pub fn text(text: Rc<str>) -> Key {
        Key(Value::Str(text))
    }

    pub fn value(&self) -> &Value {
        &self.0
    }

    fn whole(&self) -> Option<i128> {
        match self.0 {
            Value::Float(f) if f.fract() == 0.0 && f.abs() < 1e18 => Some(f as i128),
            _ => self.0.as_int(),
        }
    }
}

impl PartialEq for Key {
    fn eq(&self, other: &Key) -> bool {
        match (&self.0, &other.0) {
            (Value::Str(a), Value::Str(b)) | (Value::Big(a), Value::Big(b)) => a == b,
            (Value::None, Value::None) => true,
            (Value::Float(a), Value::Float(b)) => a == b,
            _ => self.whole().is_some() && self.whole() == other.whole(),
        }
    }
}

impl Eq for Key {}

impl Hash for Key {
    fn hash<H: Hasher>(&self, state: &mut H) {
        match &self.0 {
            Value::Str(text) => text.hash(state), // as `str`, for lookups without a copy
            Value::Big(digits) => (1u8, digits).hash(state),
            Value::None => 0u8.hash(state),
            Value::Float(f) if self.whole().is_none() => f.to_bits().hash(state),
            _ => self.whole().hash(state),
        }
    }
}

impl Equivalent<Key> for str {
    fn equivalent(&self, key: &Key) -> bool {
        key.0.as_str() == Some(self)
    }
}

impl Value {
    pub fn text(text: &str) -> Value {
        Value::Str(Rc::from(text))
    }

    /// The integer of a JSON text.
    pub fn whole(written: &str) -> Value {
        written.parse().map_or_else(|_| Value::Big(Rc::from(written)), Value::Int)
    }

    pub fn undefined(name: &str) -> Value {
        Value::Undefined(Some(Rc::from(name)))
    }

    pub fn as_str(&self) -> Option<&str> {
        match self {
            Value::Str(text) => Some(text),
            _ => None,
        }
    }

    pub fn items(&self) -> Option<&[Value]> {
        match self {
            Value::List(seq) | Value::Tuple(seq) => Some(&seq.items),
            _ => None,
        }
    }

    pub fn is_undefined(&self) -> bool {
        matches!(self, Value::Undefined(_))
    }

    /// The name whose lookup gave this undefined value.
    pub fn missing_name(&self) -> Option<&str> {
        match self {
            Value::Undefined(name) => name.as_deref(),
            _ => None,
        }
    }

    pub fn is_handle(&self) -> bool {
        use Value::{Function, Loop, Macro, Method, Namespace};
        matches!(self, Namespace(_) | Macro(_) | Loop(_) | Function(_) | Method(_))
    }

    pub fn depth(&self) -> u32 {
        match self {
            Value::List(seq) | Value::Tuple(seq) => seq.depth,
            Value::Dict(dict) => dict.depth,
            _ => 0,
        }
    }

    /// Python's name for the type, for errors.
    pub fn kind(&self) -> &'static str {
        match self {
            Value::Undefined(_) => "undefined value",
            Value::None => "None",
            Value::Bool(_) => "bool",
            Value::Int(_) | Value::Big(_) => "int",
            Value::Float(_) => "float",
            Value::Str(_) => "str",
            Value::List(_) => "list",
            Value::Tuple(_) => "tuple",
            Value::Dict(_) => "dict",
            Value::Namespace(_) => "namespace",
            Value::Macro(_) => "macro",
            Value::Loop(_) => "loop",
            Value::Function(_) => "function",
            Value::Method(_) => "method",
        }
    }

    pub fn truthy(&self) -> bool {
        match self {
            Value::Undefined(_) | Value::None => false,
            Value::Bool(b) => *b,
            Value::Int(i) => *i != 0,
            Value::Float(f) => *f != 0.0,
            Value::Str(text) => !text.is_empty(),
            Value::List(seq) | Value::Tuple(seq) => !seq.items.is_empty(),
            Value::Dict(dict) => !dict.map.is_empty(),
            _ => true,
        }
    }

    /// The value as an int; as in Python, a bool is one.
    pub fn as_int(&self) -> Option<i128> {
        match self {
            Value::Bool(b) => Some(i128::from(*b)),
            Value::Int(i) => Some(*i),
            _ => None,
        }
    }

    pub fn as_float(&self) -> Option<f64> {
        match self {
            Value::Float(f) => Some(*f),
            _ => self.as_int().map(|i| i as f64),
        }
    }

    pub fn to_key(&self) -> Option<Key> {
        use Value::{Big, Bool, Float, Int, None, Str};
        matches!(self, None | Bool(_) | Int(_) | Big(_) | Float(_) | Str(_))
            .then(|| Key(self.clone()))
    }
}
