// What the C interfaces of Troupe's Rust libraries share: views, owned strings and the panic guard.
// Each library compiles this file with a `Status` of its own, in ffi.rs. Any thread.
use std::any::Any;
use std::cell::Cell;
use std::panic::{catch_unwind, AssertUnwindSafe};
use std::sync::Once;

use crate::ffi::Status;

#[derive(Debug)]
pub struct Error {
    pub status: Status,
    pub message: String,
}

impl Error {
    pub fn new(status: Status, message: impl Into<String>) -> Error {
        Error { status, message: message.into() }
    }

    pub fn invalid(message: impl Into<String>) -> Error {
        Error::new(Status::Invalid, message)
    }
}

#[repr(C)]
#[derive(Clone, Copy)]
pub struct View {
    data: *const u8,
    size: usize,
}

impl View {
    /// # Safety
    /// `data` must point to `size` readable bytes that outlive 'a, or `size` must be 0.
    pub unsafe fn bytes<'a>(self) -> &'a [u8] {
        if self.size == 0 || self.data.is_null() {
            return &[];
        }
        std::slice::from_raw_parts(self.data, self.size)
    }

    /// # Safety The same as for `bytes`.
    pub unsafe fn text<'a>(self, what: &str) -> Result<&'a str, Error> {
        std::str::from_utf8(self.bytes()).map_err(|e| {
            Error::invalid(format!("{what} is not UTF-8: bad byte at offset {}", e.valid_up_to()))
        })
    }
}

#[repr(C)]
pub struct OwnedString {
    pub data: *mut u8,
    pub size: usize,
}

impl OwnedString {
    pub fn new(text: String) -> OwnedString {
        let size = text.len();
        OwnedString { data: leak_array(text.into_bytes()), size }
    }
}

/// # Safety
/// `array` and `size` must come from `leak_array`, once.
pub unsafe fn free_array<T>(array: *mut T, size: usize) {
    if !array.is_null() {
        drop(Box::from_raw(std::ptr::slice_from_raw_parts_mut(array, size)));
    }
}

/// # Safety
/// `value` must be null or come from `Box::into_raw`, once.
pub unsafe fn free_boxed<T>(value: *mut T) {
    if !value.is_null() {
        drop(Box::from_raw(value));
    }
}

pub fn leak_array<T>(items: Vec<T>) -> *mut T {
    Box::into_raw(items.into_boxed_slice()).cast::<T>()
}

thread_local! {
    static GUARDED: Cell<bool> = const { Cell::new(false) };
}

// A panic that is returned as an error should not also be printed on the user's terminal. Other
// panics still are.
fn quiet_guarded_panics() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        let before = std::panic::take_hook();
        std::panic::set_hook(Box::new(move |info| {
            if !GUARDED.with(Cell::get) {
                before(info);
            }
        }));
    });
}

fn panic_text(payload: &(dyn Any + Send)) -> &str {
    payload
        .downcast_ref::<&str>()
        .copied()
        .or_else(|| payload.downcast_ref::<String>().map(String::as_str))
        .unwrap_or("no message")
}

/// Runs `work`; a panic becomes an error whose message begins with `what`.
pub fn guard<T>(what: &str, work: impl FnOnce() -> Result<T, Error>) -> Result<T, Error> {
    quiet_guarded_panics();
    let before = GUARDED.with(|flag| flag.replace(true));
    let result = catch_unwind(AssertUnwindSafe(work));
    GUARDED.with(|flag| flag.set(before));
    result.unwrap_or_else(|payload| {
        let why = panic_text(payload.as_ref());
        Err(Error::new(Status::Internal, format!("{what}: the library failed: {why}")))
    })
}

/// Like `guard`, but writes the value to `out` or the message to `error`.
///
/// # Safety
/// `out` must be writable; `error` must be writable or null.
pub unsafe fn answer<T>(
    what: &str,
    out: *mut T,
    error: *mut OwnedString,
    work: impl FnOnce() -> Result<T, Error>,
) -> Status {
    match guard(what, work) {
        Ok(value) => {
            out.write(value);
            Status::Ok
        }
        Err(failure) => {
            if !error.is_null() {
                error.write(OwnedString::new(failure.message));
            }
            failure.status
        }
    }
}
