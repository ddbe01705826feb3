// The status codes of the C interface, over what edge.rs has for all libraries, and how errors are
// made. ../../troupe_tables.h has the contract of the pointers. Any thread.
pub use crate::edge::*;

#[repr(i32)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Status {
    Ok = 0,
    Invalid = 1,
    Limit = 2,
    Internal = 3,
    Read = 4,
}

#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    pub columns: u64,
    pub depth: u64,
    pub row_bytes: u64,
    pub batch_bytes: u64,
    pub footer_bytes: u64,
    pub page_bytes: u64,
    pub page_values: u64,
    pub part_bytes: u64,
}

// An error about the whole file.
pub fn bad(why: impl std::fmt::Display) -> Error {
    Error::new(Status::Invalid, format!(": {why}"))
}

pub fn over(why: impl std::fmt::Display) -> Error {
    Error::new(Status::Limit, format!(": {why}"))
}

pub fn unread(why: std::io::Error) -> Error {
    use std::io::ErrorKind::{InvalidData, InvalidInput, Other, UnexpectedEof};
    match why.kind() {
        UnexpectedEof => bad("the file ends too early"),
        InvalidData | InvalidInput | Other => bad(why),
        _ => Error::new(Status::Read, format!(": {why}")),
    }
}

// "1.5 GiB", for messages about limits.
pub fn size_text(bytes: u64) -> String {
    for (unit, name) in [(30, "GiB"), (20, "MiB"), (10, "KiB")] {
        if bytes >= 1 << unit && bytes % (1 << unit) == 0 {
            return format!("{} {name}", bytes >> unit);
        }
    }
    format!("{bytes} bytes")
}
