// Jinja's filters on sequences. Where Python returns a generator, they return a list.
use std::cmp::Ordering;

use super::access;
use super::args::{flag, given, int, size, string, Args};
use super::filters;
use super::interp::Interp;
use super::meter::{failed, Meter, R};
use super::methods;
use super::ops::{self, iterate};
use super::pystr::to_str;
use super::pytext::listed;
use super::tests;
use super::value::Value;

const NAMES: &str = "\
    batch count dictsort first groupby items join last length list map max min reject \
    rejectattr reverse select selectattr slice sort sum unique";

pub fn exists(name: &str) -> bool {
    listed(NAMES, name)
}

pub fn apply(interp: &mut Interp, name: &str, value: &Value, args: &Args) -> R<Value> {
    let meter = interp.meter();
    match name {
        "length" | "count" => {
            args.none(name)?;
            Ok(Value::Int(ops::length(value, meter)? as i128))
        }
        "items" => match value {
            Value::Undefined(_) => meter.list(Vec::new()),
            _ => methods::items(value, meter),
        },
        "first" | "last" => {
            args.none(name)?;
            let items = iterate(value, meter)?;
            let found = if name == "first" { items.first() } else { items.last() };
            Ok(found.cloned().unwrap_or(Value::Undefined(None)))
        }
        "list" => meter.list(iterate(value, meter)?),
        "reverse" => {
            let mut items = iterate(value, meter)?;
            items.reverse();
            match value {
                Value::Str(text) => meter.string(text.chars().rev().collect()),
                _ => meter.list(items),
            }
        }
        "join" => join(value, args, meter),
        "map" => map(interp, value, args),
        "select" | "reject" | "selectattr" | "rejectattr" => select(interp, name, value, args),
        "sort" => {
            let [reverse, case, attribute] =
                args.bind(name, ["reverse", "case_sensitive", "attribute"])?;
            let sorted = match attribute.and_then(Value::as_str) {
                Some(paths) if paths.contains(',') => {
                    sort(keyed_by_many(value, paths, flag(case, false), meter)?, reverse, meter)?
                }
                _ => sort(keyed(value, attribute, flag(case, false), meter)?, reverse, meter)?,
            };
            meter.list(sorted.into_iter().map(|(_, item)| item).collect())
        }
        "min" | "max" => {
            let [case, attribute] = args.bind(name, ["case_sensitive", "attribute"])?;
            extreme(keyed(value, attribute, flag(case, false), meter)?, name == "max", meter)
        }
        "unique" => {
            let [case, attribute] = args.bind(name, ["case_sensitive", "attribute"])?;
            unique(keyed(value, attribute, flag(case, false), meter)?, meter)
        }
        "groupby" => group_by(value, args, meter),
        "sum" => {
            let [attribute, start] = args.bind(name, ["attribute", "start"])?;
            let mut total = start.cloned().unwrap_or(Value::Int(0));
            for item in iterate(value, meter)? {
                total = ops::add(&total, &by_path(&item, attribute, None, meter)?, meter)?;
            }
            Ok(total)
        }
        "dictsort" => dict_sort(value, args, meter),
        "batch" => batch(value, args, meter),
        "slice" => slices(value, args, meter),
        _ => failed(format!("no filter named '{name}'")),
    }
}

fn join(value: &Value, args: &Args, meter: &Meter) -> R<Value> {
    let [separator, attribute] = args.bind("join", ["d", "attribute"])?;
    let separator = string(separator, "", meter)?;
    let mut out = meter.builder();
    for (i, item) in iterate(value, meter)?.iter().enumerate() {
        out.push(if i > 0 { &separator } else { "" })?;
        out.push(&to_str(&by_path(item, attribute, None, meter)?, meter)?)?;
    }
    Ok(out.value())
}

/// The value at a dotted path such as "function.name", or at a key such as 0; without a path, the
/// item itself.
fn by_path(item: &Value, path: Option<&Value>, default: Option<&Value>, meter: &Meter) -> R<Value> {
    let mut found = item.clone();
    match given(path) {
        None => {}
        Some(Value::Str(path)) => {
            for part in path.split('.') {
                let key = match part.parse::<i64>() {
                    Ok(index) => Value::Int(index.into()),
                    Err(_) => Value::text(part),
                };
                found = access::item(&found, &key, meter)?;
                if found.is_undefined() {
                    if let Some(default) = default {
                        found = default.clone();
                    }
                }
            }
        }
        Some(key) => found = access::item(&found, key, meter)?,
    }
    Ok(found)
}

// For `map` and `select`, which in jinja2 take any falsy value as an empty sequence.
fn iterate_unless_empty(value: &Value, meter: &Meter) -> R<Vec<Value>> {
    if value.truthy() {
        iterate(value, meter)
    } else {
        Ok(Vec::new())
    }
}

fn map(interp: &mut Interp, value: &Value, args: &Args) -> R<Value> {
    let meter = interp.meter();
    let items = iterate_unless_empty(value, meter)?;
    let mut mapped = Vec::with_capacity(items.len());
    if args.list.is_empty() {
        let [attribute, default] = args.bind("map", ["attribute", "default"])?;
        if attribute.is_none() {
            return failed("map needs the name of a filter or an attribute");
        }
        for item in &items {
            mapped.push(by_path(item, attribute, default, meter)?);
        }
    } else {
        let Some(Value::Str(filter)) = args.list.first() else {
            return failed("map needs the name of a filter");
        };
        let rest = Args { list: args.list[1..].to_vec(), named: args.named.clone() };
        for item in &items {
            mapped.push(filters::apply(interp, filter, item, &rest)?);
        }
    }
    interp.meter().list(mapped)
}

fn select(interp: &mut Interp, name: &str, value: &Value, args: &Args) -> R<Value> {
    let meter = interp.meter();
    let mut list = args.list.as_slice();
    let mut attribute = None;
    if name.ends_with("attr") {
        let Some((first, rest)) = list.split_first() else {
            return failed(format!("{name} needs the name of an attribute"));
        };
        (attribute, list) = (Some(first), rest);
    }
    let test = match list.first() {
        None => None,
        Some(Value::Str(test)) => Some(test.clone()),
        Some(other) => {
            return failed(format!("{name}: a test's name cannot be a {}", other.kind()))
        }
    };
    let rest = Args { list: list.get(1..).unwrap_or(&[]).to_vec(), named: args.named.clone() };
    let wanted = name.starts_with("select");
    let mut kept = Vec::new();
    for item in iterate_unless_empty(value, meter)? {
        let subject = by_path(&item, attribute, None, meter)?;
        let passes = match &test {
            Some(test) => tests::check(test, &subject, &rest, meter)?,
            None => subject.truthy(),
        };
        if passes == wanted {
            kept.push(item);
        }
    }
    meter.list(kept)
}

type Keyed = Vec<(Value, Value)>;

/// Pairs each item with its key for sorting: the item or its attribute. Strings become lower case
/// unless `case` (case_sensitive).
fn keyed(value: &Value, attribute: Option<&Value>, case: bool, meter: &Meter) -> R<Keyed> {
    let key_of = |item: &Value| -> R<Value> {
        let key = by_path(item, attribute, None, meter)?;
        match &key {
            Value::Str(text) if !case => meter.string(text.to_lowercase()),
            _ => Ok(key),
        }
    };
    iterate(value, meter)?.into_iter().map(|item| Ok((key_of(&item)?, item))).collect()
}

/// The same for several attributes, such as "age,name".
fn keyed_by_many(value: &Value, paths: &str, case: bool, meter: &Meter) -> R<Keyed> {
    let items = iterate(value, meter)?;
    let mut keys = vec![Vec::new(); items.len()];
    for path in paths.split(',') {
        for (place, (key, _)) in
            keyed(value, Some(&Value::text(path)), case, meter)?.into_iter().enumerate()
        {
            keys[place].push(key);
        }
    }
    keys.into_iter().zip(items).map(|(key, item)| Ok((meter.list(key)?, item))).collect()
}

fn sort(mut items: Keyed, reverse: Option<&Value>, meter: &Meter) -> R<Keyed> {
    let reverse = flag(reverse, false);
    let mut failure = None;
    items.sort_by(|(a, _), (b, _)| {
        if failure.is_some() {
            return Ordering::Equal;
        }
        let found = ops::order(a, b, "<", meter).unwrap_or_else(|e| {
            failure = Some(e);
            None
        });
        let order = found.unwrap_or(Ordering::Equal);
        if reverse {
            order.reverse()
        } else {
            order
        }
    });
    failure.map_or(Ok(items), Err)
}

fn extreme(items: Keyed, largest: bool, meter: &Meter) -> R<Value> {
    let mut best: Option<(Value, Value)> = None;
    for (key, item) in items {
        let better = match &best {
            None => true,
            Some((known, _)) => {
                let order = ops::order(&key, known, "<", meter)?;
                order == Some(if largest { Ordering::Greater } else { Ordering::Less })
            }
        };
        if better {
            best = Some((key, item));
        }
    }
    Ok(best.map_or(Value::Undefined(None), |(_, item)| item))
}

fn unique(items: Keyed, meter: &Meter) -> R<Value> {
    let mut seen = std::collections::HashSet::new();
    let mut kept = Vec::new();
    for (key, item) in items {
        match key.to_key() {
            Some(key) => {
                if seen.insert(key) {
                    kept.push(item);
                }
            }
            None => return failed(format!("unhashable type: {}", key.kind())),
        }
    }
    meter.list(kept)
}

fn group_by(value: &Value, args: &Args, meter: &Meter) -> R<Value> {
    let [attribute, default, case] =
        args.bind("groupby", ["attribute", "default", "case_sensitive"])?;
    if default.is_some() {
        return failed("groupby with a default is not supported");
    }
    let sorted = sort(keyed(value, attribute, flag(case, false), meter)?, None, meter)?;
    let mut groups: Vec<(Value, Value, Vec<Value>)> = Vec::new(); // compared by, shown, members
    for (key, item) in sorted {
        match groups.last_mut() {
            Some((known, _, members)) if ops::equal(known, &key, meter)? => members.push(item),
            _ => {
                let shown = by_path(&item, attribute, None, meter)?;
                groups.push((key, shown, vec![item]));
            }
        }
    }
    let pairs = groups
        .into_iter()
        .map(|(_, shown, members)| meter.tuple(vec![shown, meter.list(members)?]));
    meter.list(pairs.collect::<R<Vec<_>>>()?)
}

fn dict_sort(value: &Value, args: &Args, meter: &Meter) -> R<Value> {
    let [case, by, reverse] = args.bind("dictsort", ["case_sensitive", "by", "reverse"])?;
    let place = match by.and_then(Value::as_str).unwrap_or("key") {
        "key" => 0,
        "value" => 1,
        _ => return failed("dictsort: by must be 'key' or 'value'"),
    };
    let pairs = methods::items(value, meter)?;
    let keyed = keyed(&pairs, Some(&Value::Int(place)), flag(case, false), meter)?;
    let sorted = sort(keyed, reverse, meter)?;
    meter.list(sorted.into_iter().map(|(_, pair)| pair).collect())
}

fn batch(value: &Value, args: &Args, meter: &Meter) -> R<Value> {
    let [count, fill] = args.bind("batch", ["linecount", "fill_with"])?;
    let count = size(int("batch", count, 0)?);
    if count == 0 {
        return failed("batch needs a positive count");
    }
    let items = iterate(value, meter)?;
    let mut rows = Vec::new();
    for chunk in items.chunks(count) {
        let mut row = chunk.to_vec();
        if let Some(fill) = given(fill) {
            meter.items(count - row.len())?;
            row.resize(count, fill.clone());
        }
        rows.push(meter.list(row)?);
    }
    meter.list(rows)
}

fn slices(value: &Value, args: &Args, meter: &Meter) -> R<Value> {
    let [count, fill] = args.bind("slice", ["slices", "fill_with"])?;
    let count = size(int("slice", count, 0)?);
    if count == 0 {
        return failed("slice needs a positive count");
    }
    meter.items(count)?;
    let items = iterate(value, meter)?;
    let (each, larger) = (items.len() / count, items.len() % count);
    let mut rest = items.into_iter();
    let mut columns = Vec::new();
    for column in 0..count {
        let take = each + usize::from(column < larger);
        let mut part: Vec<Value> = rest.by_ref().take(take).collect();
        part.extend(given(fill).filter(|_| column >= larger).cloned());
        columns.push(meter.list(part)?);
    }
    meter.list(columns)
}
