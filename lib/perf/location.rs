//! A location in the code of an object.

use super::objects::object::ObjectId;

/// A location in the code of an object, for which a symbol is looked up.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Location {
    /// The object that the code belongs to.
    pub object: ObjectId,
    /// The address within the object, in the object's own address space (SVMA).
    pub address: u64,
    /// The address in the process if addresses are kept, else 0.
    pub ip: u64,
    /// The time at which JIT code was loaded, if its address was reused. Else 0.
    pub loaded_at: u64,
}
