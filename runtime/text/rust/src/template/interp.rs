// The state of one rendering: variables in nested scopes, the text written so far, and tables of
// the macros and recursive loops to which values refer by index. The syntax tree is minijinja's;
// exec.rs runs statements, eval.rs evaluates expressions. One thread; bounded by its Meter.
use std::rc::Rc;

use minijinja::machinery::ast;

use super::functions;
use super::meter::{Meter, Text, R};
use super::value::{Dict, Loop, Value};

pub struct Interp<'t> {
    meter: &'t Meter,
    context: Rc<Dict>, // what the caller passed: messages, tools, bos_token, ...
    scopes: Vec<Scope<'t>>,
    current: usize,
    outputs: Vec<Text<'t>>, // innermost capture last
    pub macros: Vec<(&'t ast::Macro<'static>, usize)>, // a macro and the scope that defined it
    pub loops: Vec<(&'t ast::ForLoop<'static>, usize)>, // a recursive loop and its outer scope
    pub line: usize,
    pub now_unix_s: i64,
}

struct Scope<'t> {
    names: Vec<(&'t str, Value)>,
    parent: Option<usize>,
    kept: bool, // a macro defined here may still be called
}

impl<'t> Interp<'t> {
    pub fn new(meter: &'t Meter, context: Rc<Dict>, now_unix_s: i64) -> Interp<'t> {
        Interp {
            meter,
            context,
            scopes: vec![Scope { names: Vec::new(), parent: None, kept: false }],
            current: 0,
            outputs: vec![meter.builder()],
            macros: Vec::new(),
            loops: Vec::new(),
            line: 1,
            now_unix_s,
        }
    }

    pub fn meter(&self) -> &'t Meter {
        self.meter
    }

    // ---- scopes ----

    pub fn scope(&self) -> usize {
        self.current
    }

    /// Runs `body` in a new scope inside `parent`.
    pub fn scoped<T>(&mut self, parent: usize, body: impl FnOnce(&mut Self) -> R<T>) -> R<T> {
        self.meter.work(1)?;
        let before = self.current;
        let index = self.scopes.len();
        self.scopes.push(Scope { names: Vec::new(), parent: Some(parent), kept: false });
        self.current = index;
        let result = body(self);
        self.current = before;
        // Scopes above one that a macro refers to stay until rendering ends.
        if index + 1 == self.scopes.len() && !self.scopes[index].kept {
            self.scopes.pop();
        }
        result
    }

    pub fn keep_scope(&mut self) {
        self.scopes[self.current].kept = true;
    }

    pub fn set(&mut self, name: &'t str, value: Value) -> R<()> {
        let names = &mut self.scopes[self.current].names;
        self.meter.items(names.len())?;
        match names.iter_mut().find(|(known, _)| *known == name) {
            Some((_, place)) => *place = value,
            None => names.push((name, value)),
        }
        Ok(())
    }

    pub fn lookup(&self, name: &str) -> R<Value> {
        let mut at = Some(self.current);
        while let Some(index) = at {
            let scope = &self.scopes[index];
            self.meter.items(scope.names.len())?;
            if let Some((_, value)) = scope.names.iter().find(|(known, _)| *known == name) {
                return Ok(value.clone());
            }
            at = scope.parent;
        }
        if let Some(value) = self.context.map.get(name) {
            return Ok(value.clone());
        }
        let builtin = functions::NAMES.into_iter().find(|known| *known == name);
        Ok(builtin.map_or_else(|| Value::undefined(name), Value::Function))
    }

    // ---- output ----

    pub fn output(&mut self) -> &mut Text<'t> {
        let last = self.outputs.len() - 1; // the rendering's own output is always there
        &mut self.outputs[last]
    }

    /// The text that `body` writes, as a value.
    pub fn capture(&mut self, body: impl FnOnce(&mut Self) -> R<()>) -> R<Value> {
        self.outputs.push(self.meter.builder());
        let result = body(self);
        let text = self.outputs.pop().map_or_else(|| Value::text(""), Text::value);
        result.map(|()| text)
    }

    pub fn finish(mut self) -> String {
        self.outputs.swap_remove(0).finish()
    }

    // ---- tables ----

    pub fn add_macro(&mut self, syntax: &'t ast::Macro<'static>) -> Value {
        self.keep_scope();
        self.macros.push((syntax, self.current));
        Value::Macro(self.macros.len() - 1)
    }

    pub fn new_loop(&self, items: Vec<Value>, depth0: usize, recursive: Option<usize>) -> Rc<Loop> {
        Rc::new(Loop {
            items,
            index0: Default::default(),
            depth0,
            changed: Default::default(),
            recursive,
        })
    }
}
