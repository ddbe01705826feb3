// Executes the statements of a template.
use minijinja::machinery::ast::{self, Expr, Stmt};

use super::interp::Interp;
use super::meter::{failed, R};
use super::ops::iterate;
use super::pystr::write_str;
use super::value::Value;

pub enum Flow {
    Next,
    Break,
    Continue,
}

impl<'t> Interp<'t> {
    pub fn run(&mut self, body: &'t [Stmt<'static>]) -> R<Flow> {
        for statement in body {
            self.meter().enter_node()?;
            let flow = self.statement(statement);
            self.meter().leave_node();
            match flow? {
                Flow::Next => {}
                other => return Ok(other),
            }
        }
        Ok(Flow::Next)
    }

    fn statement(&mut self, statement: &'t Stmt<'static>) -> R<Flow> {
        match statement {
            Stmt::Template(template) => return self.run(&template.children),
            Stmt::EmitRaw(raw) => self.output().push(raw.raw)?,
            Stmt::EmitExpr(emit) => {
                self.at(emit.span().start_line);
                let value = self.eval(&emit.expr)?;
                write_str(self.output(), &value)?;
            }
            Stmt::IfCond(condition) => {
                self.at(condition.span().start_line);
                let test = self.eval(&condition.expr)?.truthy();
                let body = if test { &condition.true_body } else { &condition.false_body };
                return self.run(body);
            }
            Stmt::ForLoop(syntax) => {
                self.at(syntax.span().start_line);
                return self.for_loop(syntax);
            }
            Stmt::Set(set) => {
                self.at(set.span().start_line);
                let value = self.eval(&set.expr)?;
                self.assign(&set.target, value)?;
            }
            Stmt::SetBlock(set) => {
                self.at(set.span().start_line);
                let mut text = self.captured(&set.body)?;
                if let Some(filter) = &set.filter {
                    text = self.eval_filters(filter, text)?;
                }
                self.assign(&set.target, text)?;
            }
            Stmt::FilterBlock(block) => {
                self.at(block.span().start_line);
                let text = self.captured(&block.body)?;
                let text = self.eval_filters(&block.filter, text)?;
                write_str(self.output(), &text)?;
            }
            Stmt::WithBlock(block) => {
                self.at(block.span().start_line);
                return self.with_block(block);
            }
            Stmt::Macro(syntax) => {
                let value = self.add_macro(syntax);
                self.set(syntax.name, value)?;
            }
            Stmt::CallBlock(block) => {
                self.at(block.span().start_line);
                let caller = self.add_macro(&block.macro_decl);
                let value = self.eval_call(&block.call, Some(caller))?;
                write_str(self.output(), &value)?;
            }
            Stmt::Do(statement) => {
                self.at(statement.span().start_line);
                return failed("there is no tag 'do' in a chat template");
            }
            Stmt::AutoEscape(block) => {
                self.at(block.span().start_line);
                if self.eval(&block.enabled)?.truthy() {
                    return failed("a chat template cannot turn on HTML escaping");
                }
                return self.run(&block.body);
            }
            Stmt::Continue(_) => return Ok(Flow::Continue),
            Stmt::Break(_) => return Ok(Flow::Break),
        }
        Ok(Flow::Next)
    }

    fn at(&mut self, line: u16) {
        self.line = usize::from(line);
    }

    // A captured block has its own scope, like a macro's body.
    fn captured(&mut self, body: &'t [Stmt<'static>]) -> R<Value> {
        let parent = self.scope();
        self.capture(|interp| interp.scoped(parent, |interp| interp.run(body).map(|_| ())))
    }

    fn with_block(&mut self, block: &'t ast::WithBlock<'static>) -> R<Flow> {
        let mut values = Vec::new();
        for (_, value) in &block.assignments {
            values.push(self.eval(value)?);
        }
        self.scoped(self.scope(), |interp| {
            for ((target, _), value) in block.assignments.iter().zip(values) {
                interp.assign(target, value)?;
            }
            interp.run(&block.body)
        })
    }

    pub fn assign(&mut self, target: &'t Expr<'static>, value: Value) -> R<()> {
        match target {
            Expr::Var(name) => self.set(name.id, value),
            Expr::List(names) => {
                let items = iterate(&value, self.meter())?;
                if value.is_undefined() || items.len() != names.items.len() {
                    return failed(format!(
                        "cannot unpack {} values into {} names",
                        items.len(),
                        names.items.len()
                    ));
                }
                for (name, item) in names.items.iter().zip(items) {
                    self.assign(name, item)?;
                }
                Ok(())
            }
            Expr::GetAttr(field) => match self.eval(&field.expr)? {
                Value::Namespace(space) => super::functions::set_field(&space, field.name, value),
                other => failed(format!("cannot assign to a field of a {}", other.kind())),
            },
            _ => failed("cannot assign to this expression"),
        }
    }

    fn for_loop(&mut self, syntax: &'t ast::ForLoop<'static>) -> R<Flow> {
        let over = self.eval(&syntax.iter)?;
        let recursive = syntax.recursive.then(|| {
            self.keep_scope();
            self.loops.push((syntax, self.scope()));
            self.loops.len() - 1
        });
        self.run_loop(syntax, &over, 0, recursive)?;
        Ok(Flow::Next)
    }

    pub fn run_loop(
        &mut self,
        syntax: &'t ast::ForLoop<'static>,
        over: &Value,
        depth0: usize,
        recursive: Option<usize>,
    ) -> R<()> {
        let mut items = iterate(over, self.meter())?;
        if let Some(condition) = &syntax.filter_expr {
            items = self.filtered(syntax, condition, items)?;
        }
        let parent = self.scope();
        if items.is_empty() {
            return self.scoped(parent, |interp| interp.run(&syntax.else_body).map(|_| ()));
        }
        let state = self.new_loop(items, depth0, recursive);
        for index in 0..state.items.len() {
            state.index0.set(index);
            let flow = self.scoped(parent, |interp| {
                interp.set("loop", Value::Loop(state.clone()))?;
                interp.assign(&syntax.target, state.items[index].clone())?;
                interp.run(&syntax.body)
            })?;
            if matches!(flow, Flow::Break) {
                break;
            }
        }
        Ok(())
    }

    fn filtered(
        &mut self,
        syntax: &'t ast::ForLoop<'static>,
        condition: &'t Expr<'static>,
        items: Vec<Value>,
    ) -> R<Vec<Value>> {
        let parent = self.scope();
        let mut kept = Vec::new();
        for item in items {
            let passes = self.scoped(parent, |interp| {
                interp.assign(&syntax.target, item.clone())?;
                Ok(interp.eval(condition)?.truthy())
            })?;
            if passes {
                kept.push(item);
            }
        }
        Ok(kept)
    }
}
