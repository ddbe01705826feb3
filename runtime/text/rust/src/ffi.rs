// The status codes of the C interface, over what edge.rs has for all libraries.
// ../../troupe_text.h has the contract of the pointers. Any thread.
pub use crate::edge::*;

#[repr(i32)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Status {
    Ok = 0,
    Invalid = 1,
    Limit = 2,
    Syntax = 3,
    Failed = 4,
    Raised = 5,
    Internal = 6,
}

/// # Safety
/// `string` must be null or have been filled in by this library, or be all zero.
#[no_mangle]
pub unsafe extern "C" fn troupe_text_string_free(string: *mut OwnedString) {
    if let Some(string) = string.as_mut() {
        free_array(string.data, string.size);
        *string = OwnedString { data: std::ptr::null_mut(), size: 0 };
    }
}
