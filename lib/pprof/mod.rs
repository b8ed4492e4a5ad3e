//! pprof's protobuf, `profile.proto`: the format that most profilers' tools exchange.
//!
//! A profile has *sample types*, each a name and a unit; a sample has a value for each, and a stack of *locations*, leaf
//! first; a location is a place in a *mapping* (a module), or the *lines* of functions, the inlined ones first. All texts
//! stand in one table, and everything else names them by index. Only what folded stacks need is read and written.

mod read;
mod unit;
mod wire;
mod write;

pub use read::{Function, Location, Pprof, Sample, is_begin};
pub use unit::Unit;
pub use write::{About, write_gzipped};

/// The label of samples that a differential profile counts as before; pprof's own, as its `-diff_base` writes it.
pub(crate) const BASE_LABEL: &[u8] = b"pprof::base";

/// Numbers of the fields that are read and written, by message.
mod field {
    pub const SAMPLE_TYPE: u32 = 1;
    pub const SAMPLE: u32 = 2;
    pub const MAPPING: u32 = 3;
    pub const LOCATION: u32 = 4;
    pub const FUNCTION: u32 = 5;
    pub const STRING: u32 = 6;
    pub const TIME: u32 = 9;
    pub const PERIOD_TYPE: u32 = 11;
    pub const COMMENT: u32 = 13;
    pub const DEFAULT_SAMPLE_TYPE: u32 = 14;
    /// The highest that a profile has: `doc_url`.
    pub const LAST: u32 = 15;

    pub mod value_type {
        pub const NAME: u32 = 1;
        pub const UNIT: u32 = 2;
    }
    pub mod sample {
        pub const LOCATION: u32 = 1;
        pub const VALUE: u32 = 2;
        pub const LABEL: u32 = 3;
    }
    pub mod label {
        pub const KEY: u32 = 1;
        pub const TEXT: u32 = 2;
        pub const NUMBER: u32 = 3;
    }
    pub mod mapping {
        pub const ID: u32 = 1;
        pub const FILE: u32 = 5;
    }
    pub mod location {
        pub const ID: u32 = 1;
        pub const MAPPING: u32 = 2;
        pub const ADDRESS: u32 = 3;
        pub const LINE: u32 = 4;
    }
    pub mod line {
        pub const FUNCTION: u32 = 1;
        pub const NUMBER: u32 = 2;
    }
    pub mod function {
        pub const ID: u32 = 1;
        pub const NAME: u32 = 2;
        pub const SYSTEM_NAME: u32 = 3;
        pub const FILE: u32 = 4;
    }
}
