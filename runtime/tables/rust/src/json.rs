// Rows of a record batch as JSON: what each Arrow type becomes (docs/data_formats.md has the
// table). A writer of a column is made once for a batch and then writes row by row. One thread.
use arrow_array::cast::AsArray;
use arrow_array::types::*;
use arrow_array::{
    Array, ArrowPrimitiveType, BooleanArray, DictionaryArray, GenericListArray,
    GenericListViewArray, OffsetSizeTrait, PrimitiveArray, RecordBatch, RunArray, StructArray,
    UnionArray,
};
use arrow_buffer::NullBuffer;
use arrow_schema::{DataType, IntervalUnit, TimeUnit};

use crate::lines::{refuse, Lines, Outcome, Refusal};
use crate::when::{self, Unit};

trait Put {
    // Writes the value at `row`, which is not null.
    fn put(&self, row: usize, out: &mut Lines) -> Outcome;
}

struct Column<'a> {
    nulls: Option<NullBuffer>,
    writer: Box<dyn Put + 'a>,
}

impl Column<'_> {
    fn is_null(&self, row: usize) -> bool {
        self.nulls.as_ref().is_some_and(|nulls| nulls.is_null(row))
    }

    fn put(&self, row: usize, out: &mut Lines) -> Outcome {
        if !self.is_null(row) {
            return self.writer.put(row, out);
        }
        out.put(b"null");
        out.check(0)
    }
}

// --- plain values --------------------------------------------------------------------------------

struct Each<F>(F);

impl<F: Fn(usize, &mut Lines) -> Outcome> Put for Each<F> {
    fn put(&self, row: usize, out: &mut Lines) -> Outcome {
        (self.0)(row, out)
    }
}

fn each<'a>(write: impl Fn(usize, &mut Lines) -> Outcome + 'a) -> Box<dyn Put + 'a> {
    Box::new(Each(write))
}

fn integers<T: ArrowPrimitiveType>(array: &dyn Array) -> Box<dyn Put + '_>
where
    T::Native: itoa::Integer,
{
    let array: &PrimitiveArray<T> = array.as_primitive();
    each(move |row, out| {
        out.put(itoa::Buffer::new().format(array.value(row)).as_bytes());
        Ok(())
    })
}

fn float<F: ryu::Float>(value: F, is_finite: bool, shown: f64, out: &mut Lines) -> Outcome {
    if !is_finite {
        return Err(refuse(format!("{} has no place in JSON", float_name(shown))));
    }
    out.put(ryu::Buffer::new().format_finite(value).as_bytes());
    Ok(())
}

fn float_name(value: f64) -> &'static str {
    match value {
        _ if value.is_nan() => "NaN",
        _ if value > 0.0 => "Infinity",
        _ => "-Infinity",
    }
}

fn decimals<T: DecimalType>(array: &dyn Array) -> Box<dyn Put + '_> {
    let array: &PrimitiveArray<T> = array.as_primitive();
    each(move |row, out| {
        out.put(array.value_as_string(row).as_bytes());
        Ok(())
    })
}

// Values that become text by `write`, which gives None where ISO 8601 has no form.
fn moments<'a, T: ArrowPrimitiveType>(
    array: &'a dyn Array,
    what: &'static str,
    write: impl Fn(i64) -> Option<String> + 'a,
) -> Box<dyn Put + 'a>
where
    T::Native: Into<i64>,
{
    let array: &PrimitiveArray<T> = array.as_primitive();
    each(move |row, out| {
        let value: i64 = array.value(row).into();
        match write(value) {
            Some(text) => out.quote(&text),
            None => Err(refuse(format!("{value} is no {what} that ISO 8601 can write"))),
        }
    })
}

fn times(array: &dyn Array, unit: TimeUnit) -> Box<dyn Put + '_> {
    let what = "time of a day";
    match unit {
        TimeUnit::Second => {
            moments::<Time32SecondType>(array, what, |v| when::time(v, Unit::Second))
        }
        TimeUnit::Millisecond => {
            moments::<Time32MillisecondType>(array, what, |v| when::time(v, Unit::Milli))
        }
        TimeUnit::Microsecond => {
            moments::<Time64MicrosecondType>(array, what, |v| when::time(v, Unit::Micro))
        }
        TimeUnit::Nanosecond => {
            moments::<Time64NanosecondType>(array, what, |v| when::time(v, Unit::Nano))
        }
    }
}

fn timestamps(array: &dyn Array, unit: TimeUnit, zoned: bool) -> Box<dyn Put + '_> {
    let what = "time between the years 1 and 9999";
    let text = move |unit| move |value| when::timestamp(value, unit, zoned);
    match unit {
        TimeUnit::Second => moments::<TimestampSecondType>(array, what, text(Unit::Second)),
        TimeUnit::Millisecond => {
            moments::<TimestampMillisecondType>(array, what, text(Unit::Milli))
        }
        TimeUnit::Microsecond => {
            moments::<TimestampMicrosecondType>(array, what, text(Unit::Micro))
        }
        TimeUnit::Nanosecond => moments::<TimestampNanosecondType>(array, what, text(Unit::Nano)),
    }
}

fn durations(array: &dyn Array, unit: TimeUnit) -> Box<dyn Put + '_> {
    let text = |unit| move |value| Some(when::duration(value, unit));
    match unit {
        TimeUnit::Second => moments::<DurationSecondType>(array, "", text(Unit::Second)),
        TimeUnit::Millisecond => moments::<DurationMillisecondType>(array, "", text(Unit::Milli)),
        TimeUnit::Microsecond => moments::<DurationMicrosecondType>(array, "", text(Unit::Micro)),
        TimeUnit::Nanosecond => moments::<DurationNanosecondType>(array, "", text(Unit::Nano)),
    }
}

fn bytes<'a>(get: impl Fn(usize) -> &'a [u8] + 'a) -> Box<dyn Put + 'a> {
    each(move |row, out| match simdutf8::basic::from_utf8(get(row)) {
        Ok(text) => out.quote(text),
        Err(_) => Err(refuse("bytes that are no UTF-8 text")),
    })
}

// --- values of values ----------------------------------------------------------------------------

struct Object<'a> {
    members: Vec<(Vec<u8>, String, Column<'a>)>, // `"name":`, name
}

impl Put for Object<'_> {
    fn put(&self, row: usize, out: &mut Lines) -> Outcome {
        out.put(b"{");
        let mut follows = false;
        for (label, name, column) in &self.members {
            if column.is_null(row) {
                continue;
            }
            if follows {
                out.put(b",");
            }
            follows = true;
            out.put(label);
            column.writer.put(row, out).map_err(|e| e.within(name))?;
        }
        out.put(b"}");
        out.check(0)
    }
}

fn object(array: &StructArray) -> Result<Object<'_>, Refusal> {
    let mut members = Vec::new();
    for (field, values) in array.fields().iter().zip(array.columns()) {
        let name = field.name();
        let mut label = Lines::new(u64::MAX >> 1);
        label.quote(name)?;
        label.put(b":");
        let column = column_of(values.as_ref()).map_err(|e| e.within(name))?;
        members.push((label.text, name.clone(), column));
    }
    Ok(Object { members })
}

fn list<'a>(
    items: Column<'a>,
    span: impl Fn(usize) -> std::ops::Range<usize> + 'a,
) -> Box<dyn Put + 'a> {
    each(move |row, out| {
        out.put(b"[");
        for (index, item) in span(row).enumerate() {
            if index > 0 {
                out.put(b",");
            }
            items.put(item, out)?;
        }
        out.put(b"]");
        out.check(0)
    })
}

fn list_of<O: OffsetSizeTrait>(array: &GenericListArray<O>) -> Result<Box<dyn Put + '_>, Refusal> {
    let offsets = array.value_offsets();
    let span = |row: usize| offsets[row].as_usize()..offsets[row + 1].as_usize();
    Ok(list(column_of(array.values().as_ref())?, span))
}

fn list_view<O: OffsetSizeTrait>(
    array: &GenericListViewArray<O>,
) -> Result<Box<dyn Put + '_>, Refusal> {
    let span = |row: usize| {
        let begin = array.value_offset(row).as_usize();
        begin..begin + array.value_size(row).as_usize()
    };
    Ok(list(column_of(array.values().as_ref())?, span))
}

fn map(array: &dyn Array) -> Result<Box<dyn Put + '_>, Refusal> {
    let array = array.as_map();
    let key_type = array.keys().data_type();
    let mut plain = key_type;
    if let DataType::Dictionary(_, value) = plain {
        plain = value.as_ref();
    }
    let is_text = matches!(plain, DataType::Utf8 | DataType::LargeUtf8 | DataType::Utf8View);
    if !is_text && !plain.is_integer() && *plain != DataType::Boolean {
        return Err(refuse(format!(
            "a map whose keys are {key_type}; JSON wants texts or integers"
        )));
    }
    let keys = column_of(array.keys().as_ref())?;
    let values = column_of(array.values().as_ref())?;
    Ok(each(move |row, out| {
        let offsets = array.value_offsets();
        out.put(b"{");
        for item in offsets[row] as usize..offsets[row + 1] as usize {
            if item > offsets[row] as usize {
                out.put(b",");
            }
            if keys.is_null(item) {
                return Err(refuse("a map with a key that is null"));
            }
            let mark: &[u8] = if is_text { b"" } else { b"\"" };
            out.put(mark);
            keys.put(item, out)?;
            out.put(mark);
            out.put(b":");
            values.put(item, out)?;
        }
        out.put(b"}");
        out.check(0)
    }))
}

fn dictionary<K: ArrowDictionaryKeyType>(array: &dyn Array) -> Result<Box<dyn Put + '_>, Refusal> {
    let array: &DictionaryArray<K> = array.as_dictionary();
    let values = column_of(array.values().as_ref())?;
    Ok(each(move |row, out| match array.key(row) {
        Some(key) if key < array.values().len() => values.put(key, out),
        _ => Err(refuse("a place outside its dictionary")),
    }))
}

fn runs<R: RunEndIndexType>(array: &dyn Array) -> Result<Box<dyn Put + '_>, Refusal> {
    let array: &RunArray<R> = array
        .as_any()
        .downcast_ref()
        .ok_or_else(|| refuse("a run-end encoded column of another type than it says"))?;
    let values = column_of(array.values().as_ref())?;
    Ok(each(move |row, out| values.put(array.get_physical_index(row), out)))
}

fn union(array: &UnionArray) -> Result<Box<dyn Put + '_>, Refusal> {
    let mut columns: Vec<Option<Column>> = (0..128).map(|_| None).collect();
    let DataType::Union(fields, _) = array.data_type() else {
        return Err(refuse("a union of another type than it says"));
    };
    for (id, field) in fields.iter() {
        let column = column_of(array.child(id).as_ref()).map_err(|e| e.within(field.name()))?;
        if let Some(place) = usize::try_from(id).ok().and_then(|at| columns.get_mut(at)) {
            *place = Some(column);
        }
    }
    Ok(each(move |row, out| {
        let id = usize::try_from(array.type_id(row)).unwrap_or(usize::MAX);
        match columns.get(id) {
            Some(Some(column)) => column.put(array.value_offset(row), out),
            _ => Err(refuse("a value of a kind that its union does not have")),
        }
    }))
}

// --- any column ----------------------------------------------------------------------------------

fn column_of(array: &dyn Array) -> Result<Column<'_>, Refusal> {
    Ok(Column { nulls: array.logical_nulls(), writer: writer_of(array)? })
}

fn writer_of(array: &dyn Array) -> Result<Box<dyn Put + '_>, Refusal> {
    Ok(match array.data_type() {
        DataType::Null => each(|_, out| {
            out.put(b"null");
            Ok(())
        }),
        DataType::Boolean => {
            let array: &BooleanArray = array.as_boolean();
            each(move |row, out| {
                out.put(if array.value(row) { b"true" } else { b"false" });
                Ok(())
            })
        }
        DataType::Int8 => integers::<Int8Type>(array),
        DataType::Int16 => integers::<Int16Type>(array),
        DataType::Int32 => integers::<Int32Type>(array),
        DataType::Int64 => integers::<Int64Type>(array),
        DataType::UInt8 => integers::<UInt8Type>(array),
        DataType::UInt16 => integers::<UInt16Type>(array),
        DataType::UInt32 => integers::<UInt32Type>(array),
        DataType::UInt64 => integers::<UInt64Type>(array),
        DataType::Float16 => {
            let array = array.as_primitive::<Float16Type>();
            each(move |row, out| {
                let value = array.value(row).to_f32();
                float(value, value.is_finite(), f64::from(value), out)
            })
        }
        DataType::Float32 => {
            let array = array.as_primitive::<Float32Type>();
            each(move |row, out| {
                let value = array.value(row);
                float(value, value.is_finite(), f64::from(value), out)
            })
        }
        DataType::Float64 => {
            let array = array.as_primitive::<Float64Type>();
            each(move |row, out| {
                float(array.value(row), array.value(row).is_finite(), array.value(row), out)
            })
        }
        DataType::Decimal32(..) => decimals::<Decimal32Type>(array),
        DataType::Decimal64(..) => decimals::<Decimal64Type>(array),
        DataType::Decimal128(..) => decimals::<Decimal128Type>(array),
        DataType::Decimal256(..) => decimals::<Decimal256Type>(array),
        DataType::Date32 => {
            moments::<Date32Type>(array, "date between the years 1 and 9999", when::date)
        }
        DataType::Date64 => {
            let day = |value: i64| when::date(value.div_euclid(86_400_000));
            moments::<Date64Type>(array, "date between the years 1 and 9999", day)
        }
        DataType::Time32(unit) | DataType::Time64(unit) => times(array, *unit),
        DataType::Timestamp(unit, zone) => timestamps(array, *unit, zone.is_some()),
        DataType::Duration(unit) => durations(array, *unit),
        DataType::Utf8 => {
            let array = array.as_string::<i32>();
            each(move |row, out| out.quote(array.value(row)))
        }
        DataType::LargeUtf8 => {
            let array = array.as_string::<i64>();
            each(move |row, out| out.quote(array.value(row)))
        }
        DataType::Utf8View => {
            let array = array.as_string_view();
            each(move |row, out| out.quote(array.value(row)))
        }
        DataType::Binary => {
            let array = array.as_binary::<i32>();
            bytes(move |row| array.value(row))
        }
        DataType::LargeBinary => {
            let array = array.as_binary::<i64>();
            bytes(move |row| array.value(row))
        }
        DataType::BinaryView => {
            let array = array.as_binary_view();
            bytes(move |row| array.value(row))
        }
        DataType::FixedSizeBinary(_) => {
            let array = array.as_fixed_size_binary();
            bytes(move |row| array.value(row))
        }
        DataType::Struct(_) => Box::new(object(array.as_struct())?),
        DataType::List(_) => list_of(array.as_list::<i32>())?,
        DataType::LargeList(_) => list_of(array.as_list::<i64>())?,
        DataType::FixedSizeList(_, size) => {
            let (array, size) = (array.as_fixed_size_list(), *size as usize);
            let items = column_of(array.values().as_ref())?;
            list(items, move |row| {
                let begin = array.value_offset(row) as usize;
                begin..begin + size
            })
        }
        DataType::ListView(_) => list_view(array.as_list_view::<i32>())?,
        DataType::LargeListView(_) => list_view(array.as_list_view::<i64>())?,
        DataType::Map(..) => map(array)?,
        DataType::Dictionary(key, _) => match key.as_ref() {
            DataType::Int8 => dictionary::<Int8Type>(array)?,
            DataType::Int16 => dictionary::<Int16Type>(array)?,
            DataType::Int32 => dictionary::<Int32Type>(array)?,
            DataType::Int64 => dictionary::<Int64Type>(array)?,
            DataType::UInt8 => dictionary::<UInt8Type>(array)?,
            DataType::UInt16 => dictionary::<UInt16Type>(array)?,
            DataType::UInt32 => dictionary::<UInt32Type>(array)?,
            DataType::UInt64 => dictionary::<UInt64Type>(array)?,
            other => return Err(refuse(format!("a dictionary whose keys are {other}"))),
        },
        DataType::RunEndEncoded(ends, _) => match ends.data_type() {
            DataType::Int16 => runs::<Int16Type>(array)?,
            DataType::Int32 => runs::<Int32Type>(array)?,
            _ => runs::<Int64Type>(array)?,
        },
        DataType::Union(..) => union(array.as_union())?,
        DataType::Interval(unit) => {
            let name = match unit {
                IntervalUnit::YearMonth => "months",
                IntervalUnit::DayTime => "days and times",
                IntervalUnit::MonthDayNano => "months, days and nanoseconds",
            };
            return Err(refuse(format!("an interval of {name}, which has no place in JSON")));
        }
    })
}

// The writer of the rows of one batch.
pub struct BatchWriter<'a>(Object<'a>);

impl<'a> BatchWriter<'a> {
    // `table`: the batch as a struct, which must live as long.
    pub fn new(table: &'a StructArray) -> Result<BatchWriter<'a>, Refusal> {
        Ok(BatchWriter(object(table)?))
    }

    // Appends the row as a line; on failure nothing of it.
    pub fn line(&self, row: usize, out: &mut Lines) -> Outcome {
        out.begin_row();
        let written = self.0.put(row, out);
        if written.is_err() {
            out.drop_row();
        } else {
            out.put(b"\n");
        }
        written
    }
}

pub fn table_of(batch: &RecordBatch) -> StructArray {
    StructArray::from(batch.clone())
}
