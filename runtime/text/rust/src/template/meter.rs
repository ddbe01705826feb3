// Limits the cost of one rendering. Every step, visited item and byte of text is charged here
// before the work is done. A hostile template therefore ends with an error that names the limit,
// and the limits alone bound its time and memory. Owned by one rendering, on one thread.
use std::cell::Cell;
use std::rc::Rc;

use indexmap::IndexMap;

use super::value::{Dict, Key, Seq, Value};
use crate::ffi::{Error, Status};

pub type R<T> = Result<T, Error>;

/// How many bytes of text cost one unit of fuel.
const TEXT_BYTES_A_UNIT: u64 = 32;
/// Nested syntax nodes per unit of depth. This bounds the native stack.
const NODES_A_DEPTH: u64 = 16;

#[repr(C)]
#[derive(Clone, Copy)]
pub struct Limits {
    pub fuel: u64,
    pub depth: u64,
    pub output_bytes: u64,
}

pub struct Meter {
    limits: Limits,
    fuel: Cell<u64>,
    calls: Cell<u64>,
    nodes: Cell<u64>,
}

pub fn failed<T>(message: impl Into<String>) -> R<T> {
    Err(Error::new(Status::Failed, message))
}

fn over<T>(message: String) -> R<T> {
    Err(Error::new(Status::Limit, message))
}

impl Meter {
    pub fn new(limits: Limits) -> Meter {
        let fuel = Cell::new(limits.fuel);
        Meter { limits, fuel, calls: Cell::new(0), nodes: Cell::new(0) }
    }

    /// Charges `units` of work.
    pub fn work(&self, units: u64) -> R<()> {
        match self.fuel.get().checked_sub(units) {
            Some(left) => {
                self.fuel.set(left);
                Ok(())
            }
            None => {
                self.fuel.set(0);
                over(format!("the template used up its fuel of {} steps", self.limits.fuel))
            }
        }
    }

    pub fn items(&self, count: usize) -> R<()> {
        self.work(count as u64)
    }

    /// Charges reading `bytes` of text.
    pub fn scan(&self, bytes: usize) -> R<()> {
        self.work(bytes as u64 / TEXT_BYTES_A_UNIT)
    }

    /// Charges building a text of `bytes`, and checks the size against the output limit.
    pub fn text(&self, bytes: usize) -> R<()> {
        if bytes as u64 > self.limits.output_bytes {
            return over(format!(
                "the template builds a text of more than output_bytes = {}",
                self.limits.output_bytes
            ));
        }
        self.scan(bytes)
    }

    /// `text` for a size that is a product, which may overflow.
    pub fn text_times(&self, bytes: usize, times: usize) -> R<()> {
        self.text(bytes.saturating_mul(times))
    }

    pub fn enter_call(&self) -> R<()> {
        let calls = self.calls.get() + 1;
        if calls > self.limits.depth {
            return over(format!(
                "the template nests macro calls or recursive loops deeper than depth = {}",
                self.limits.depth
            ));
        }
        self.calls.set(calls);
        Ok(())
    }

    pub fn leave_call(&self) {
        self.calls.set(self.calls.get() - 1);
    }

    pub fn enter_node(&self) -> R<()> {
        self.work(1)?;
        let nodes = self.nodes.get() + 1;
        if nodes > self.limits.depth.saturating_mul(NODES_A_DEPTH) {
            return over(format!(
                "the template nests expressions deeper than depth = {} allows",
                self.limits.depth
            ));
        }
        self.nodes.set(nodes);
        Ok(())
    }

    pub fn leave_node(&self) {
        self.nodes.set(self.nodes.get() - 1);
    }

    // ---- values: only these build lists, tuples and dicts ----

    pub fn str(&self, text: &str) -> R<Value> {
        self.text(text.len())?;
        Ok(Value::Str(Rc::from(text)))
    }

    pub fn string(&self, text: String) -> R<Value> {
        self.str(&text)
    }

    fn nest<'a>(&self, children: impl Iterator<Item = &'a Value>) -> R<u32> {
        let mut depth = 0;
        for child in children {
            self.work(1)?;
            if child.is_handle() {
                return failed(format!("a {} cannot be put into a list or dict", child.kind()));
            }
            depth = depth.max(child.depth());
        }
        if u64::from(depth) + 1 > self.limits.depth {
            return over(format!("values are nested deeper than depth = {}", self.limits.depth));
        }
        Ok(depth + 1)
    }

    fn seq(&self, items: Vec<Value>) -> R<Rc<Seq>> {
        let depth = self.nest(items.iter())?;
        Ok(Rc::new(Seq { items, depth }))
    }

    pub fn list(&self, items: Vec<Value>) -> R<Value> {
        Ok(Value::List(self.seq(items)?))
    }

    pub fn tuple(&self, items: Vec<Value>) -> R<Value> {
        Ok(Value::Tuple(self.seq(items)?))
    }

    /// A tuple if `model` is one, else a list.
    pub fn like(&self, model: &Value, items: Vec<Value>) -> R<Value> {
        match model {
            Value::Tuple(_) => self.tuple(items),
            _ => self.list(items),
        }
    }

    pub fn dict(&self, map: IndexMap<Key, Value>) -> R<Value> {
        let depth = self.nest(map.values())?;
        Ok(Value::Dict(Rc::new(Dict { map, depth })))
    }

    pub fn builder(&self) -> Text<'_> {
        Text { buffer: String::new(), meter: self }
    }
}

/// A text under construction; every piece is charged and checked.
pub struct Text<'m> {
    buffer: String,
    meter: &'m Meter,
}

impl Text<'_> {
    pub fn push(&mut self, piece: &str) -> R<()> {
        if (self.buffer.len() + piece.len()) as u64 > self.meter.limits.output_bytes {
            self.meter.text(self.buffer.len() + piece.len())?;
        }
        self.meter.scan(piece.len())?;
        self.buffer.push_str(piece);
        Ok(())
    }

    pub fn push_char(&mut self, c: char) -> R<()> {
        self.push(c.encode_utf8(&mut [0; 4]))
    }

    pub fn pad(&mut self, fill: char, count: usize) -> R<()> {
        self.meter.text_times(fill.len_utf8(), count)?;
        self.push(&std::iter::repeat_n(fill, count).collect::<String>())
    }

    pub fn meter(&self) -> &Meter {
        self.meter
    }

    /// The text as a plain string; it was charged piece by piece.
    pub fn finish(self) -> String {
        self.buffer
    }

    pub fn value(self) -> Value {
        Value::Str(Rc::from(self.buffer))
    }
}
