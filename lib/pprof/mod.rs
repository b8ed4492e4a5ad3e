//! Reads and writes pprof profiles: the protobuf messages of `profile.proto`, which many profilers and viewers
//! exchange.
//!
//! A profile has *sample types*, each with a name and a unit. A *sample* has one value per sample type and a stack of
//! *locations*, leaf first. A location is an address in a *mapping* (a module), or a list of *lines* in functions, the
//! inlined ones first. All strings are in one table, and other messages refer to them by index. This module reads and
//! writes only the fields that folded stacks need.

mod read;
mod unit;
mod write;

pub use read::{Function, Location, Pprof, Sample, is_pprof};
pub use unit::Unit;
pub use write::{Metadata, write, write_gzipped};

/// The label with which `pprof -diff_base` marks the samples of the base profile.
pub(crate) const BASE_LABEL: &[u8] = b"pprof::base";

/// Field numbers, by message.
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
    /// The last field of a profile, `doc_url`.
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
