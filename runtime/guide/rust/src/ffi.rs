// The status codes of the C interface, over what edge.rs has for all libraries.
// ../../troupe_guide.h has the contract of the pointers. Any thread.
pub use crate::edge::*;

#[repr(i32)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Status {
    Ok = 0,
    Invalid = 1,
    Limit = 2,
    Internal = 3,
}
