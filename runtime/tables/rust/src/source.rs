// What a table is to the rest of the library: a schema, and record batches in order.
use std::collections::HashSet;

use arrow_array::RecordBatch;
use arrow_schema::{DataType, Fields, Schema, SchemaRef};

use crate::edge::guard;
use crate::ffi::{bad, over, Error, Limits, Status};

#[derive(Clone, Copy)]
pub struct Facts {
    pub rows: Option<u64>,
    pub groups: Option<u64>,
    pub bytes: Option<u64>,
}

pub trait Source {
    fn schema(&self) -> SchemaRef;
    fn facts(&self) -> Facts;
    // The next rows, and of which group they are; None at the end.
    fn next(&mut self) -> Result<Option<(RecordBatch, u64)>, Error>;
}

// The crates panic at some damaged files; that is a fault of the file.
pub fn no_panic<T>(work: impl FnOnce() -> Result<T, Error>) -> Result<T, Error> {
    guard("", work).map_err(|error| match error.status {
        Status::Internal => {
            bad(format!("damaged: {}", error.message.trim_start_matches([':', ' '])))
        }
        _ => error,
    })
}

pub fn check_schema(schema: &Schema, limits: &Limits) -> Result<(), Error> {
    let mut leaves = 0;
    check_fields(schema.fields(), limits, 1, &mut leaves)
}

fn check_fields(
    fields: &Fields,
    limits: &Limits,
    depth: u64,
    leaves: &mut u64,
) -> Result<(), Error> {
    let mut names = HashSet::new();
    for field in fields {
        if !names.insert(field.name()) {
            return Err(bad(format!("two columns '{}'", field.name())));
        }
        check_type(field.data_type(), limits, depth, leaves)?;
    }
    Ok(())
}

fn check_type(kind: &DataType, limits: &Limits, depth: u64, leaves: &mut u64) -> Result<(), Error> {
    if depth > limits.depth {
        return Err(over(format!("types nested more than {} deep", limits.depth)));
    }
    match kind {
        DataType::Struct(fields) => check_fields(fields, limits, depth + 1, leaves),
        DataType::List(item)
        | DataType::LargeList(item)
        | DataType::ListView(item)
        | DataType::LargeListView(item)
        | DataType::FixedSizeList(item, _)
        | DataType::Map(item, _) => check_type(item.data_type(), limits, depth + 1, leaves),
        DataType::Dictionary(_, value) => check_type(value, limits, depth + 1, leaves),
        DataType::RunEndEncoded(_, value) => {
            check_type(value.data_type(), limits, depth + 1, leaves)
        }
        DataType::Union(fields, _) => {
            for (_, field) in fields.iter() {
                check_type(field.data_type(), limits, depth + 1, leaves)?;
            }
            Ok(())
        }
        _ => {
            *leaves += 1;
            if *leaves > limits.columns {
                return Err(over(format!("more than {} columns", limits.columns)));
            }
            Ok(())
        }
    }
}
