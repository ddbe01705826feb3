// Rows of Parquet and Arrow files as JSON lines, and the bytes of compressed streams, behind the C
// header ../troupe_tables.h.
//
// `edge` has the unsafe code that views, strings and panics need, and is that of the text library;
// `ffi` has the status codes; `rows` goes through a table; `parquet_file` with `pages`, and
// `ipc_file`, read the two formats; `json` writes rows; `stream` unpacks. This file is the table of
// functions by which the program calls them.
mod codec;
#[path = "../../../text/rust/src/edge.rs"]
mod edge;
mod ffi;
mod ipc_file;
mod json;
mod lines;
mod pages;
mod parquet_file;
mod rows;
mod source;
mod stream;
mod thrift;
mod when;

use ffi::{answer, free_array, free_boxed, Limits, OwnedString, Status, View};
use rows::Rows;
use stream::Stream;

const ABI: u32 = 1;

#[repr(C)]
pub struct Info {
    rows: u64,
    groups: u64,
    bytes: u64,
    columns: OwnedString,
}

#[repr(C)]
pub struct Lines {
    data: *const u8,
    size: usize,
}

#[repr(C)]
pub struct Batch {
    lines: Lines,
    first: u64,
    rows: u64,
    group: u64,
}

#[repr(C)]
pub struct Table {
    abi: u32,
    file_open:
        unsafe extern "C" fn(View, i32, *const Limits, *mut *mut Rows, *mut OwnedString) -> Status,
    file_info: unsafe extern "C" fn(*const Rows, *mut Info, *mut OwnedString) -> Status,
    file_next: unsafe extern "C" fn(*mut Rows, *mut Batch, *mut OwnedString) -> Status,
    file_close: unsafe extern "C" fn(*mut Rows),
    stream_open: unsafe extern "C" fn(View, i32, *mut *mut Stream, *mut OwnedString) -> Status,
    stream_read:
        unsafe extern "C" fn(*mut Stream, *mut u8, usize, *mut usize, *mut OwnedString) -> Status,
    stream_close: unsafe extern "C" fn(*mut Stream),
    string_free: unsafe extern "C" fn(*mut OwnedString),
}

#[no_mangle]
pub static troupe_tables_entry: Table = Table {
    abi: ABI,
    file_open,
    file_info,
    file_next,
    file_close,
    stream_open,
    stream_read,
    stream_close,
    string_free,
};

// The contracts of the pointers are those of the header.

unsafe extern "C" fn file_open(
    path: View,
    kind: i32,
    limits: *const Limits,
    out: *mut *mut Rows,
    error: *mut OwnedString,
) -> Status {
    answer(": opening a table", out, error, || {
        let rows = Rows::open(path.text(": the path")?, kind, *limits)?;
        Ok(Box::into_raw(Box::new(rows)))
    })
}

unsafe extern "C" fn file_info(
    rows: *const Rows,
    out: *mut Info,
    error: *mut OwnedString,
) -> Status {
    answer(": describing a table", out, error, || {
        let facts = (*rows).facts();
        Ok(Info {
            rows: facts.rows.unwrap_or(u64::MAX),
            groups: facts.groups.unwrap_or(u64::MAX),
            bytes: facts.bytes.unwrap_or(u64::MAX),
            columns: OwnedString::new((*rows).columns()),
        })
    })
}

unsafe extern "C" fn file_next(
    rows: *mut Rows,
    out: *mut Batch,
    error: *mut OwnedString,
) -> Status {
    answer(": reading a table", out, error, || {
        let rows = &mut *rows;
        let given = rows.next()?;
        let text = &rows.lines.text;
        let lines = Lines { data: text.as_ptr(), size: text.len() };
        Ok(Batch { lines, first: given.first, rows: given.rows, group: given.group })
    })
}

unsafe extern "C" fn file_close(rows: *mut Rows) {
    free_boxed(rows);
}

unsafe extern "C" fn stream_open(
    path: View,
    codec: i32,
    out: *mut *mut Stream,
    error: *mut OwnedString,
) -> Status {
    answer(": opening a stream", out, error, || {
        let stream = Stream::open(path.text(": the path")?, codec)?;
        Ok(Box::into_raw(Box::new(stream)))
    })
}

unsafe extern "C" fn stream_read(
    stream: *mut Stream,
    into: *mut u8,
    room: usize,
    got: *mut usize,
    error: *mut OwnedString,
) -> Status {
    answer(": reading a stream", got, error, || {
        if room == 0 {
            return Ok(0);
        }
        (*stream).read(std::slice::from_raw_parts_mut(into, room))
    })
}

unsafe extern "C" fn stream_close(stream: *mut Stream) {
    free_boxed(stream);
}

unsafe extern "C" fn string_free(string: *mut OwnedString) {
    if let Some(string) = string.as_mut() {
        free_array(string.data, string.size);
        *string = OwnedString { data: std::ptr::null_mut(), size: 0 };
    }
}
