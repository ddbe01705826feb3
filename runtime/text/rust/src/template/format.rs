// Python's `"%s" % x`, without `*` widths, and `"{}".format(x)`, without format specifications.
use super::meter::{failed, Meter, Text, R};
use super::pystr::{to_str, write_repr};
use super::value::Value;

#[derive(Default)]
struct Spec {
    left: bool,
    plus: bool,
    space: bool,
    zero: bool,
    alternate: bool,
    width: usize,
    precision: Option<usize>,
}

/// `format % args`; `mapping` is the right operand unchanged, for `%(name)s`.
pub fn percent(format: &str, args: &[Value], mapping: &Value, meter: &Meter) -> R<Value> {
    let mut out = meter.builder();
    let mut rest = format;
    let mut next = 0;
    let mut named = false;
    while let Some(at) = rest.find('%') {
        out.push(&rest[..at])?;
        rest = &rest[at + 1..];
        let mut key = None;
        if let Some(inner) = rest.strip_prefix('(') {
            let Some((name, after)) = inner.split_once(')') else {
                return failed("incomplete format key");
            };
            (key, rest, named) = (Some(name), after, true);
        }
        let spec = read_spec(&mut rest);
        let mut chars = rest.chars();
        let Some(kind) = chars.next() else { return failed("incomplete format") };
        rest = chars.as_str();
        if kind == '%' {
            out.push("%")?;
            continue;
        }
        let value = match key {
            Some(name) => match mapping {
                Value::Dict(dict) => match dict.map.get(name) {
                    Some(found) => found,
                    None => return failed(format!("no key '{name}' to format")),
                },
                _ => return failed("format requires a mapping"),
            },
            None => match args.get(next) {
                Some(value) => {
                    next += 1;
                    value
                }
                None => return failed("not enough arguments for format string"),
            },
        };
        convert(&mut out, kind, &spec, value)?;
    }
    out.push(rest)?;
    // Python allows unused arguments if the right operand is a mapping or a list.
    let keyed = matches!(mapping, Value::Dict(_) | Value::List(_) | Value::Undefined(_));
    if !named && next < args.len() && !keyed {
        return failed("not all arguments converted during string formatting");
    }
    Ok(out.value())
}

fn read_spec(rest: &mut &str) -> Spec {
    let mut spec = Spec::default();
    while let Some(flag) = rest.chars().next() {
        match flag {
            '-' => spec.left = true,
            '+' => spec.plus = true,
            ' ' => spec.space = true,
            '0' => spec.zero = true,
            '#' => spec.alternate = true,
            _ => break,
        }
        *rest = &rest[1..];
    }
    spec.width = read_number(rest).unwrap_or(0);
    if let Some(after) = rest.strip_prefix('.') {
        *rest = after;
        spec.precision = Some(read_number(rest).unwrap_or(0));
    }
    spec
}

fn read_number(rest: &mut &str) -> Option<usize> {
    let digits = rest.bytes().take_while(u8::is_ascii_digit).count();
    let (number, after) = rest.split_at(digits);
    *rest = after;
    if digits == 0 {
        None
    } else {
        Some(number.parse().unwrap_or(usize::MAX))
    }
}

fn convert(out: &mut Text, kind: char, spec: &Spec, value: &Value) -> R<()> {
    let meter = out.meter();
    // Bounds digits after the point like padding, before they are produced.
    meter.text(spec.width.max(spec.precision.unwrap_or(0)))?;
    let (sign, body) = match kind {
        's' => ("", clip(&to_str(value, meter)?, spec)),
        'r' => {
            let mut text = meter.builder();
            write_repr(&mut text, value)?;
            ("", clip(&text.finish(), spec))
        }
        'd' | 'i' | 'u' => match value.as_int().or(value.as_float().map(|f| f.trunc() as i128)) {
            Some(i) => signed(i < 0, spec, digits(i.unsigned_abs().to_string(), spec)),
            None => return failed(format!("%{kind} needs a number, not {}", value.kind())),
        },
        'x' | 'X' | 'o' => match value.as_int() {
            Some(i) => signed(i < 0, spec, digits(radix(i.unsigned_abs(), kind, spec), spec)),
            None => return failed(format!("%{kind} needs an integer, not {}", value.kind())),
        },
        'f' | 'F' => match value.as_float() {
            Some(f) => {
                signed(f < 0.0, spec, format!("{:.*}", spec.precision.unwrap_or(6), f.abs()))
            }
            None => return failed(format!("%{kind} needs a number, not {}", value.kind())),
        },
        _ => return failed(format!("unsupported format character '{kind}'")),
    };
    let used = sign.chars().count() + body.chars().count();
    let padding = spec.width.saturating_sub(used);
    let zeros = spec.zero && !spec.left && !matches!(kind, 's' | 'r');
    if !spec.left && !zeros {
        out.pad(' ', padding)?;
    }
    out.push(sign)?;
    if zeros {
        out.pad('0', padding)?;
    }
    out.push(&body)?;
    if spec.left {
        out.pad(' ', padding)?;
    }
    Ok(())
}

fn clip(text: &str, spec: &Spec) -> String {
    match spec.precision {
        Some(precision) => text.chars().take(precision).collect(),
        None => text.to_owned(),
    }
}

fn digits(text: String, spec: &Spec) -> String {
    let missing = spec.precision.unwrap_or(0).saturating_sub(text.len());
    "0".repeat(missing) + &text
}

fn radix(value: u128, kind: char, spec: &Spec) -> String {
    let (prefix, text) = match kind {
        'x' => ("0x", format!("{value:x}")),
        'X' => ("0X", format!("{value:X}")),
        _ => ("0o", format!("{value:o}")),
    };
    if spec.alternate {
        format!("{prefix}{text}")
    } else {
        text
    }
}

fn signed(negative: bool, spec: &Spec, body: String) -> (&'static str, String) {
    let sign = match (negative, spec.plus, spec.space) {
        (true, ..) => "-",
        (false, true, _) => "+",
        (false, false, true) => " ",
        _ => "",
    };
    (sign, body)
}

/// `format.format(*args, **named)` with `{}`, `{0}` and `{name}`.
pub fn braces(
    format: &str,
    args: &[Value],
    named: &[(std::rc::Rc<str>, Value)],
    meter: &Meter,
) -> R<Value> {
    let mut out = meter.builder();
    let mut rest = format;
    let mut next = 0;
    while let Some(at) = rest.find(['{', '}']) {
        out.push(&rest[..at])?;
        let doubled = rest[at + 1..].chars().next() == rest[at..].chars().next();
        if doubled {
            out.push(&rest[at..=at])?;
            rest = &rest[at + 2..];
            continue;
        }
        let (Some(field), true) = (rest[at + 1..].split('}').next(), rest[at..].starts_with('{'))
        else {
            return failed("single '}' encountered in format string");
        };
        let Some(after) = rest[at + 1..].get(field.len() + 1..) else {
            return failed("single '{' encountered in format string");
        };
        rest = after;
        let value = if field.is_empty() {
            next += 1;
            args.get(next - 1)
        } else if let Ok(index) = field.parse::<usize>() {
            args.get(index)
        } else {
            named.iter().find(|(name, _)| **name == *field).map(|(_, value)| value)
        };
        match value {
            Some(value) => out.push(&to_str(value, meter)?)?,
            None => return failed(format!("format: there is no argument for '{{{field}}}'")),
        }
    }
    out.push(rest)?;
    Ok(out.value())
}
