//! A location in the code of an object.

use super::objects::object::ObjectId;

/// A location in the code of an object: what a symbol is looked up for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Location {
    /// The object that the code belongs to.
    pub object: ObjectId,
    /// The address within the object, in the object's own address space (SVMA).
    pub address: u64,
    /// The address in the process if addresses are kept, else 0.
    pub ip: u64,
    /// For JIT code at an address that was reused: the time from which this code was there. Else 0.
    pub since: u64,
}
