//! Field numbers, by message.

pub const RESOURCE_PROFILES: u32 = 1;
pub const RESOURCE_SPANS: u32 = 1;
pub const DICTIONARY: u32 = 2;

pub mod resource_profiles {
    pub const RESOURCE: u32 = 1;
    pub const SCOPE_PROFILES: u32 = 2;
    pub const SCHEMA_URL: u32 = 3;
    pub const DEPRECATED: u32 = 1000;
}
pub mod resource {
    pub const ATTRIBUTES: u32 = 1;
}
pub mod scope_profiles {
    pub const PROFILES: u32 = 2;
}
pub mod resource_spans {
    pub const RESOURCE: u32 = 1;
    pub const SCOPE_SPANS: u32 = 2;
}
pub mod scope_spans {
    pub const SPANS: u32 = 2;
}
pub mod span {
    pub const NAME: u32 = 5;
    pub const START: u32 = 7;
    pub const END: u32 = 8;
    pub const ATTRIBUTES: u32 = 9;
}
pub mod dictionary {
    pub const MAPPING: u32 = 1;
    pub const LOCATION: u32 = 2;
    pub const FUNCTION: u32 = 3;
    pub const LINK: u32 = 4;
    pub const STRING: u32 = 5;
    pub const ATTRIBUTE: u32 = 6;
    pub const STACK: u32 = 7;
}
pub mod profile {
    pub const SAMPLE_TYPE: u32 = 1;
    pub const SAMPLE: u32 = 2;
    pub const TIME: u32 = 3;
}
pub mod value_type {
    pub const NAME: u32 = 1;
    pub const UNIT: u32 = 2;
}
pub mod sample {
    pub const STACK: u32 = 1;
    /// Attributes from version 1.10 on; values before.
    pub const SECOND: u32 = 2;
    /// A link from version 1.10 on; attributes before.
    pub const THIRD: u32 = 3;
    /// Values from version 1.10 on; a link before.
    pub const VALUES: u32 = 4;
    pub const TIMES: u32 = 5;
}
pub mod mapping {
    pub const FILE: u32 = 4;
}
pub mod location {
    pub const MAPPING: u32 = 1;
    pub const ADDRESS: u32 = 2;
    pub const LINE: u32 = 3;
    pub const ATTRIBUTES: u32 = 4;
}
pub mod line {
    pub const FUNCTION: u32 = 1;
    pub const NUMBER: u32 = 2;
}
pub mod function {
    pub const NAME: u32 = 1;
    pub const SYSTEM_NAME: u32 = 2;
    pub const FILE: u32 = 3;
}
pub mod stack {
    pub const LOCATIONS: u32 = 1;
}
pub mod attribute {
    pub const KEY: u32 = 1;
    pub const VALUE: u32 = 2;
    /// The index of the key, in the attributes of a resource.
    pub const KEY_INDEX: u32 = 3;
}
pub mod any_value {
    pub const STRING: u32 = 1;
    pub const BOOL: u32 = 2;
    pub const INT: u32 = 3;
    pub const DOUBLE: u32 = 4;
    pub const BYTES: u32 = 7;
    pub const STRING_INDEX: u32 = 8;
}
