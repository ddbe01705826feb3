// The functions that a chat template may call, and the methods of `loop`.
use std::ffi::CString;
use std::rc::Rc;

use indexmap::IndexMap;

use super::args::{int, text, Args};
use super::interp::Interp;
use super::meter::{failed, Meter, R};
use super::ops;
use super::pystr::to_str;
use super::value::{Loop, Namespace, Value};
use crate::ffi::{Error, Status};

pub const NAMES: [&str; 5] = ["range", "dict", "namespace", "raise_exception", "strftime_now"];

pub fn call(interp: &mut Interp, function: &str, args: &Args) -> R<Value> {
    let meter = interp.meter();
    match function {
        "range" => range(args, meter),
        "dict" => {
            let mut map = match args.list.first() {
                None => IndexMap::new(),
                Some(Value::Dict(dict)) => {
                    meter.items(dict.map.len())?;
                    dict.map.clone()
                }
                Some(_) => return failed("dict() takes a dict or named values"),
            };
            map.extend(args.entries());
            meter.dict(map)
        }
        "namespace" => {
            let space = Rc::new(Namespace::default());
            if let Some(Value::Dict(dict)) = args.list.first() {
                meter.items(dict.map.len())?;
                for (key, value) in &dict.map {
                    set_field(&space, text("namespace", Some(key.value()))?, value.clone())?;
                }
            }
            for (name, value) in &args.named {
                set_field(&space, name, value.clone())?;
            }
            Ok(Value::Namespace(space))
        }
        "raise_exception" => {
            let [message] = args.bind("raise_exception", ["message"])?;
            let message = to_str(message.unwrap_or(&Value::None), meter)?;
            Err(Error::new(Status::Raised, &*message))
        }
        "strftime_now" => {
            let [format] = args.bind("strftime_now", ["format"])?;
            strftime(text("strftime_now", format)?, interp.now_unix_s, meter)
        }
        _ => failed(format!("no function named '{function}'")),
    }
}

/// `{% set space.name = value %}`. A namespace cannot hold another, so none can contain itself.
pub fn set_field(space: &Namespace, name: &str, value: Value) -> R<()> {
    if name.starts_with('_') {
        return failed(format!("a namespace cannot have the field '{name}': it begins with '_'"));
    }
    if matches!(value, Value::Namespace(_) | Value::Loop(_) | Value::Method(_)) {
        return failed(format!("a namespace cannot hold a {}", value.kind()));
    }
    let mut fields = space.fields.borrow_mut();
    match fields.iter_mut().find(|(known, _)| **known == *name) {
        Some((_, place)) => *place = value,
        None => fields.push((Rc::from(name), value)),
    }
    Ok(())
}

fn range(args: &Args, meter: &Meter) -> R<Value> {
    let [first, second, step] = args.bind("range", ["start", "stop", "step"])?;
    let Some(first) = first else { return failed("range needs an argument") };
    let (start, stop) = match second {
        Some(stop) => (int("range", Some(first), 0)?, int("range", Some(stop), 0)?),
        None => (0, int("range", Some(first), 0)?),
    };
    let step = int("range", step, 1)?;
    if step == 0 {
        return failed("range: the step must not be zero");
    }
    let span = if step > 0 { stop.saturating_sub(start) } else { start.saturating_sub(stop) };
    let count = span.max(0) as u128;
    let stride = step.unsigned_abs();
    let count = usize::try_from(count.div_ceil(stride)).unwrap_or(usize::MAX);
    meter.items(count)?;
    let items = (0..count).map(|i| Value::Int(start + i as i128 * step));
    meter.list(items.collect())
}

/// Formats the caller's time in the local time zone with the C library, as Python does.
fn strftime(format: &str, now_unix_s: i64, meter: &Meter) -> R<Value> {
    const SIZE: usize = 1024;
    if format.is_empty() {
        return Ok(Value::text(""));
    }
    if format.len() > SIZE / 4 {
        return failed(format!("strftime_now: a format may have {} bytes", SIZE / 4));
    }
    let Ok(format) = CString::new(format) else {
        return failed("strftime_now: the format holds a NUL");
    };
    let now: libc::time_t = now_unix_s;
    // SAFETY: `fields` is plain data that localtime_r fills in; strftime gets the buffer's size.
    let bytes = unsafe {
        let mut fields: libc::tm = std::mem::zeroed();
        if libc::localtime_r(&now, &mut fields).is_null() {
            return failed("strftime_now: the time is out of range");
        }
        let mut buffer = [0u8; SIZE];
        let size = libc::strftime(buffer.as_mut_ptr().cast(), SIZE, format.as_ptr(), &fields);
        buffer[..size].to_vec()
    };
    meter.string(String::from_utf8_lossy(&bytes).into_owned())
}

/// `loop.cycle(...)` and `loop.changed(...)`.
pub fn loop_method(state: &Loop, name: &str, args: &Args, meter: &Meter) -> R<Value> {
    match name {
        "cycle" if !args.list.is_empty() => {
            Ok(args.list[state.index0.get() % args.list.len()].clone())
        }
        "changed" => {
            let mut last = state.changed.borrow_mut();
            let same = match last.as_ref() {
                Some(known) if known.len() == args.list.len() => {
                    let mut same = true;
                    for (a, b) in known.iter().zip(&args.list) {
                        same = same && ops::equal(a, b, meter)?;
                    }
                    same
                }
                _ => false,
            };
            if args.list.iter().any(Value::is_handle) {
                return failed("loop.changed takes plain values");
            }
            *last = Some(args.list.clone());
            Ok(Value::Bool(!same))
        }
        _ => failed(format!("loop has no method '{name}'")),
    }
}
