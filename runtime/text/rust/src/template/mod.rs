// Chat templates: minijinja parses the Jinja source, and this folder evaluates it as jinja2 would.
//
// Troupe has its own evaluator because a template comes with an untrusted model. minijinja's fuel
// counts instructions, but neither the bytes that one instruction may build ("x" * 10**8, doubling
// by ~, replace) nor the work of constant folding at compile time. Here every step and byte goes
// through one Meter, and printing matches Python byte for byte. Stateless between renderings; any
// thread.
mod access;
mod args;
mod eval;
mod exec;
mod filters;
mod filters_seq;
mod format;
mod functions;
mod interp;
mod json;
mod meter;
mod methods;
mod ops;
mod prescan;
mod pystr;
mod pytext;
mod tests;
mod value;

use std::rc::Rc;

use indexmap::IndexMap;
use minijinja::machinery::{ast, parse};

use crate::ffi::{Error, Status};
use interp::Interp;
pub use meter::Limits;
use meter::{Meter, R};
use value::{Dict, Key, Value};

pub struct ChatTemplate {
    syntax: ast::Stmt<'static>, // borrows from `source`: declared first, so dropped first
    _source: Box<str>,
}

pub struct Request<'a> {
    pub messages_json: &'a str,
    pub tools_json: &'a str,
    pub variables_json: &'a str,
    pub add_generation_prompt: bool,
    pub now_unix_s: i64,
}

impl ChatTemplate {
    pub fn new(source: &str) -> R<ChatTemplate> {
        let source: Box<str> = prescan::prepare(source)?.into_boxed_str();
        // SAFETY: the heap text behind `source` neither moves nor changes while `syntax` lives, and
        // `syntax` never leaves this struct with the longer lifetime.
        let text: &'static str = unsafe { &*std::ptr::from_ref::<str>(&source) };
        let syntax = parse(text, "chat template", prescan::syntax()?).map_err(prescan::error)?;
        Ok(ChatTemplate { syntax, _source: source })
    }

    pub fn render(&self, request: &Request, limits: Limits) -> R<String> {
        if limits.fuel == 0 || limits.depth == 0 || limits.output_bytes == 0 {
            return Err(Error::invalid("each limit of a rendering must be above 0"));
        }
        let meter = Meter::new(limits);
        let context = context(request, &meter)?;
        let mut interp = Interp::new(&meter, context, request.now_unix_s);
        match interp.run(std::slice::from_ref(&self.syntax)) {
            Ok(_) => Ok(interp.finish()),
            Err(e) if e.status == Status::Raised => Err(e),
            Err(e) => {
                let message = format!("chat template, line {}: {}", interp.line, e.message);
                Err(Error::new(e.status, message))
            }
        }
    }
}

const RESERVED: &[&str] = &["add_generation_prompt", "documents", "messages", "tools"];

fn context(request: &Request, meter: &Meter) -> R<Rc<Dict>> {
    let messages = json::parse(request.messages_json, "the list of messages", meter)?;
    let tools = match request.tools_json {
        "" => Value::None,
        text => json::parse(text, "the list of tools", meter)?,
    };
    if !matches!(tools, Value::List(_) | Value::None) {
        return Err(Error::invalid("the tools must be a JSON array"));
    }
    let variables = match request.variables_json {
        "" => meter.dict(IndexMap::new())?,
        text => json::parse(text, "the variables of the chat template", meter)?,
    };
    let Value::Dict(variables) = variables else {
        return Err(Error::invalid("the variables of the chat template must be a JSON object"));
    };
    let mut map = IndexMap::new();
    for (key, value) in &variables.map {
        if let Some(name) = key.value().as_str().filter(|name| RESERVED.contains(name)) {
            let why = format!("'{name}' cannot be a variable of the chat template: it is set");
            return Err(Error::invalid(why));
        }
        map.insert(key.clone(), value.clone());
    }
    let mut set = |name: &str, value| map.insert(Key::text(Rc::from(name)), value);
    set("messages", plain_messages(&messages, meter)?);
    set("tools", tools);
    set("documents", Value::None);
    set("add_generation_prompt", Value::Bool(request.add_generation_prompt));
    match meter.dict(map)? {
        Value::Dict(dict) => Ok(dict),
        _ => Err(Error::new(Status::Internal, "a dict is no dict")),
    }
}

const REASONING: &[&str] = &["reasoning_content", "thinking", "reasoning"];

// Prepares a conversation as transformers does: drops keys whose value is null, and offers a
// reasoning text under `thinking` and `reasoning_content`, whichever of three names it has.
fn plain_messages(messages: &Value, meter: &Meter) -> R<Value> {
    let bad = || Error::invalid("the messages must be a JSON array of objects, at least one");
    let Value::List(list) = messages else { return Err(bad()) };
    if list.items.is_empty() {
        return Err(bad());
    }
    let mut plain = Vec::new();
    for message in &list.items {
        let Value::Dict(dict) = message else { return Err(bad()) };
        let kept = dict.map.iter().filter(|(_, value)| !matches!(value, Value::None));
        let mut map: IndexMap<Key, Value> =
            kept.map(|(key, value)| (key.clone(), value.clone())).collect();
        if let Some(text) = REASONING.iter().find_map(|name| map.get(*name).cloned()) {
            let mut aliased = IndexMap::new();
            aliased.insert(Key::text(Rc::from("thinking")), text.clone());
            aliased.extend(map);
            aliased.insert(Key::text(Rc::from("reasoning_content")), text);
            map = aliased;
        }
        plain.push(meter.dict(map)?);
    }
    meter.list(plain)
}
