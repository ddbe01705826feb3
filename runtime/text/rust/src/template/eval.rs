// Evaluates the expressions of a template.
use indexmap::IndexMap;
use minijinja::machinery::ast::{self, BinOpKind, CallArg, CompareOpKind, Expr, UnaryOpKind};
use minijinja::value::ValueKind;
use std::cmp::Ordering::{Equal, Greater, Less};
use std::rc::Rc;

use super::access;
use super::args::Args;
use super::filters;
use super::functions;
use super::interp::Interp;
use super::meter::{failed, R};
use super::methods;
use super::ops;
use super::tests;
use super::value::Value;

impl<'t> Interp<'t> {
    pub fn eval(&mut self, expr: &'t Expr<'static>) -> R<Value> {
        self.meter().enter_node()?;
        let value = self.expression(expr);
        self.meter().leave_node();
        value
    }

    fn expression(&mut self, expr: &'t Expr<'static>) -> R<Value> {
        match expr {
            Expr::Var(var) => self.lookup(var.id),
            Expr::Const(constant) => self.constant(&constant.value),
            Expr::GetAttr(get) => access::attribute(&self.eval(&get.expr)?, get.name),
            Expr::GetItem(get) => {
                let value = self.eval(&get.expr)?;
                let key = self.eval(&get.subscript_expr)?;
                access::item(&value, &key, self.meter())
            }
            Expr::Slice(slice) => self.slice(slice),
            Expr::UnaryOp(op) => {
                let value = self.eval(&op.expr)?;
                match op.op {
                    UnaryOpKind::Not => Ok(Value::Bool(!value.truthy())),
                    UnaryOpKind::Neg => ops::neg(&value),
                }
            }
            Expr::BinOp(op) => self.binary(op),
            Expr::Compare(chain) => self.comparison(chain),
            Expr::IfExpr(choice) => {
                if self.eval(&choice.test_expr)?.truthy() {
                    return self.eval(&choice.true_expr);
                }
                match &choice.false_expr {
                    Some(other) => self.eval(other),
                    None => Ok(Value::Undefined(None)),
                }
            }
            Expr::Filter(filter) => {
                let Some(inner) = &filter.expr else { return failed("a filter without a value") };
                let value = self.eval(inner)?;
                let args = self.arguments(&filter.args, None)?;
                filters::apply(self, filter.name, &value, &args)
            }
            Expr::Test(test) => {
                let value = self.eval(&test.expr)?;
                let args = self.arguments(&test.args, None)?;
                Ok(Value::Bool(tests::check(test.name, &value, &args, self.meter())?))
            }
            Expr::Call(call) => self.eval_call(call, None),
            Expr::List(list) => {
                let items = self.all(&list.items)?;
                self.meter().list(items)
            }
            Expr::Tuple(tuple) => {
                let items = self.all(&tuple.items)?;
                self.meter().tuple(items)
            }
            Expr::Map(map) => self.map_literal(map),
        }
    }

    fn all(&mut self, exprs: &'t [Expr<'static>]) -> R<Vec<Value>> {
        exprs.iter().map(|expr| self.eval(expr)).collect()
    }

    fn map_literal(&mut self, map: &'t ast::Map<'static>) -> R<Value> {
        let mut entries = IndexMap::new();
        for (key, value) in map.keys.iter().zip(&map.values) {
            let key = self.eval(key)?;
            let Some(key) = key.to_key() else {
                return failed(format!("unhashable type: {}", key.kind()));
            };
            entries.insert(key, self.eval(value)?);
        }
        self.meter().dict(entries)
    }

    fn constant(&mut self, value: &minijinja::Value) -> R<Value> {
        if let Some(text) = value.as_str() {
            return self.meter().str(text);
        }
        Ok(match value.kind() {
            ValueKind::Bool => Value::Bool(value.is_true()),
            ValueKind::Number if value.is_integer() => match i128::try_from(value.clone()) {
                Ok(int) => Value::Int(int),
                Err(_) => return failed("an integer does not fit in 128 bits"),
            },
            ValueKind::Number => match f64::try_from(value.clone()) {
                Ok(float) => Value::Float(float),
                Err(_) => return failed("a number is out of range"),
            },
            _ => Value::None,
        })
    }

    fn slice(&mut self, slice: &'t ast::Slice<'static>) -> R<Value> {
        let value = self.eval(&slice.expr)?;
        let mut bounds = [Value::None, Value::None, Value::None];
        let exprs = [&slice.start, &slice.stop, &slice.step];
        for (bound, expr) in bounds.iter_mut().zip(exprs) {
            if let Some(expr) = expr {
                *bound = self.eval(expr)?;
            }
        }
        access::slice(&value, bounds, self.meter())
    }

    fn binary(&mut self, op: &'t ast::BinOp<'static>) -> R<Value> {
        let left = self.eval(&op.left)?;
        if matches!((op.op, left.truthy()), (BinOpKind::ScAnd, false) | (BinOpKind::ScOr, true)) {
            return Ok(left);
        }
        let right = self.eval(&op.right)?;
        let meter = self.meter();
        let compare = |kind| compared(kind, &left, &right, meter).map(Value::Bool);
        match op.op {
            BinOpKind::ScAnd | BinOpKind::ScOr => Ok(right),
            BinOpKind::Add => ops::add(&left, &right, meter),
            BinOpKind::Sub => ops::sub(&left, &right),
            BinOpKind::Mul => ops::mul(&left, &right, meter),
            BinOpKind::Div => ops::div(&left, &right),
            BinOpKind::FloorDiv => ops::floor_div(&left, &right),
            BinOpKind::Rem => ops::rem(&left, &right, meter),
            BinOpKind::Pow => ops::pow(&left, &right),
            BinOpKind::Concat => ops::concat(&left, &right, meter),
            BinOpKind::Eq => compare(CompareOpKind::Eq),
            BinOpKind::Ne => compare(CompareOpKind::Ne),
            BinOpKind::Lt => compare(CompareOpKind::Lt),
            BinOpKind::Lte => compare(CompareOpKind::Lte),
            BinOpKind::Gt => compare(CompareOpKind::Gt),
            BinOpKind::Gte => compare(CompareOpKind::Gte),
            BinOpKind::In => compare(CompareOpKind::In),
        }
    }

    fn comparison(&mut self, chain: &'t ast::Compare<'static>) -> R<Value> {
        let mut left = self.eval(&chain.expr)?;
        for op in &chain.ops {
            let right = self.eval(&op.expr)?;
            if !compared(op.op, &left, &right, self.meter())? {
                return Ok(Value::Bool(false));
            }
            left = right;
        }
        Ok(Value::Bool(true))
    }

    /// Applies the filters of a `{% filter %}` or `{% set %}` block to the text that it captured.
    pub fn eval_filters(&mut self, expr: &'t Expr<'static>, text: Value) -> R<Value> {
        let Expr::Filter(filter) = expr else { return failed("a block needs a filter") };
        let value = match &filter.expr {
            Some(inner) => {
                self.meter().enter_node()?;
                let value = self.eval_filters(inner, text);
                self.meter().leave_node();
                value?
            }
            None => text,
        };
        let args = self.arguments(&filter.args, None)?;
        filters::apply(self, filter.name, &value, &args)
    }

    fn arguments(&mut self, syntax: &'t [CallArg<'static>], caller: Option<Value>) -> R<Args> {
        let mut args = Args::default();
        for arg in syntax {
            match arg {
                CallArg::Pos(expr) => args.list.push(self.eval(expr)?),
                CallArg::Kwarg(name, expr) => {
                    let value = self.eval(expr)?;
                    args.named.push((Rc::from(*name), value));
                }
                CallArg::PosSplat(expr) => {
                    let value = self.eval(expr)?;
                    args.list.extend(ops::iterate(&value, self.meter())?);
                }
                CallArg::KwargSplat(expr) => {
                    let value = self.eval(expr)?;
                    let Value::Dict(dict) = &value else {
                        return failed(format!("** needs a dict, not {}", value.kind()));
                    };
                    self.meter().items(dict.map.len())?;
                    for (key, value) in &dict.map {
                        let name = super::args::text("**", Some(key.value()))?;
                        args.named.push((Rc::from(name), value.clone()));
                    }
                }
            }
        }
        if let Some(caller) = caller {
            args.named.push((Rc::from("caller"), caller));
        }
        Ok(args)
    }

    pub fn eval_call(&mut self, call: &'t ast::Call<'static>, caller: Option<Value>) -> R<Value> {
        self.meter().work(1)?;
        if let Expr::GetAttr(get) = &call.expr {
            let value = self.eval(&get.expr)?;
            if methods::exists(&value, get.name) {
                let args = self.arguments(&call.args, caller)?;
                return methods::call(&value, get.name, &args, self.meter());
            }
            if let Value::Loop(state) = &value {
                let args = self.arguments(&call.args, caller)?;
                return functions::loop_method(state, get.name, &args, self.meter());
            }
            let field = access::attribute(&value, get.name)?;
            if field.is_undefined() {
                return failed(format!("a {} has no method '{}'", value.kind(), get.name));
            }
            let args = self.arguments(&call.args, caller)?;
            return self.call(&field, &args);
        }
        let function = self.eval(&call.expr)?;
        let args = self.arguments(&call.args, caller)?;
        self.call(&function, &args)
    }

    fn call(&mut self, function: &Value, args: &Args) -> R<Value> {
        match function {
            Value::Macro(index) => self.nested(|interp| interp.call_macro(*index, args)),
            Value::Loop(state) => self.nested(|interp| interp.recurse(state, args)),
            Value::Function(builtin) => functions::call(self, builtin, args),
            Value::Method(bound) => methods::call(&bound.0, &bound.1, args, self.meter()),
            Value::Undefined(name) => ops::undefined(name.as_deref()),
            other => failed(format!("a {} cannot be called", other.kind())),
        }
    }

    fn nested<T>(&mut self, body: impl FnOnce(&mut Self) -> R<T>) -> R<T> {
        self.meter().enter_call()?;
        let result = body(self);
        self.meter().leave_call();
        result
    }

    fn call_macro(&mut self, index: usize, args: &Args) -> R<Value> {
        let (syntax, scope) = self.macros[index];
        let line = self.line;
        if args.list.len() > syntax.args.len() {
            return failed(format!(
                "the macro '{}' takes at most {} arguments, not {}",
                syntax.name,
                syntax.args.len(),
                args.list.len()
            ));
        }
        let is_name = |arg: &Expr, name: &str| matches!(arg, Expr::Var(var) if var.id == name);
        let known = |name: &str| syntax.args.iter().any(|arg| is_name(arg, name));
        for (name, _) in &args.named {
            if !known(name) && &**name != "caller" {
                return failed(format!("the macro '{}' has no argument '{name}'", syntax.name));
            }
        }
        let text = self.capture(|interp| {
            interp.scoped(scope, |interp| {
                if let Some(caller) = args.named("caller") {
                    interp.set("caller", caller.clone())?;
                }
                interp.bind_macro(syntax, args)?;
                interp.run(&syntax.body).map(|_| ())
            })
        })?;
        self.line = line;
        Ok(text)
    }

    fn bind_macro(&mut self, syntax: &'t ast::Macro<'static>, args: &Args) -> R<()> {
        let first_default = syntax.args.len() - syntax.defaults.len();
        for (place, target) in syntax.args.iter().enumerate() {
            let Expr::Var(name) = target else { return failed("a macro's argument is no name") };
            let given = args.list.get(place).or_else(|| args.named(name.id));
            let value = match given {
                Some(value) => value.clone(),
                None if place >= first_default => {
                    self.eval(&syntax.defaults[place - first_default])?
                }
                None => Value::undefined(name.id),
            };
            self.set(name.id, value)?;
        }
        Ok(())
    }

    // `loop(children)` inside a recursive loop.
    fn recurse(&mut self, state: &Rc<super::value::Loop>, args: &Args) -> R<Value> {
        let [over] = args.bind("loop", ["iterable"])?;
        let (Some(index), Some(over)) = (state.recursive, over) else {
            return failed("loop(...) needs one argument and a loop marked recursive");
        };
        let (syntax, scope) = self.loops[index];
        let depth0 = state.depth0 + 1;
        self.capture(|interp| {
            interp.scoped(scope, |interp| interp.run_loop(syntax, over, depth0, Some(index)))
        })
    }
}

fn compared(kind: CompareOpKind, a: &Value, b: &Value, meter: &super::meter::Meter) -> R<bool> {
    Ok(match kind {
        CompareOpKind::Eq => ops::equal(a, b, meter)?,
        CompareOpKind::Ne => !ops::equal(a, b, meter)?,
        CompareOpKind::Lt => ops::order(a, b, "<", meter)? == Some(Less),
        CompareOpKind::Lte => matches!(ops::order(a, b, "<=", meter)?, Some(Less | Equal)),
        CompareOpKind::Gt => ops::order(a, b, ">", meter)? == Some(Greater),
        CompareOpKind::Gte => matches!(ops::order(a, b, ">=", meter)?, Some(Greater | Equal)),
        CompareOpKind::In => ops::contains(b, a, meter)?,
        CompareOpKind::NotIn => !ops::contains(b, a, meter)?,
    })
}
