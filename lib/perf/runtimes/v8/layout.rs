//! The layout of V8's objects: what the file says of it (`v8dbg_` symbols), else what is known of the version.

use super::positions::Encoding;
use crate::perf::runtimes::interpreter::InterpreterFile;

/// The layout of one build of V8. Offsets count from an object's address.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Offsets {
    /// In a function: its description (`SharedFunctionInfo`).
    pub(super) shared: u32,
    /// In a description: the bytecode or other code, the name or the `ScopeInfo`, the script, the number in the script.
    pub(super) data: u32,
    pub(super) name: u32,
    pub(super) script: u32,
    pub(super) literal: u32,
    /// In a `ScopeInfo`: where variables begin.
    pub(super) locals: u32,
    /// In an array of bytecode: its first instruction, the table of positions.
    pub(super) bytecode: u32,
    pub(super) bytecode_positions: u32,
    /// The encoding of tables of positions.
    pub(super) encoding: Encoding,
    /// The places in code.
    pub(super) code: CodeOffsets,
    /// The places in the array of deoptimization data.
    pub(super) deoptimization: DeoptimizationIndices,
    pub(super) types: Types,
}

/// The places in an object of code.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct CodeOffsets {
    /// The distance of the first instruction from the object that contains instructions.
    pub(super) header: u32,
    /// True if that object is not the code, but points to it.
    pub(super) is_separate: bool,
    /// In code: a pointer to the first instruction, if the two are separate.
    pub(super) start: u32,
    pub(super) size: u32,
    pub(super) flags: u32,
    pub(super) deoptimization: u32,
    pub(super) positions: u32,
    /// The kinds of code: regular expressions, baseline, and the two that are optimized, by Maglev and by Turbofan.
    pub(super) regular_expression: u32,
    pub(super) baseline: u32,
    pub(super) optimized: [u32; 2],
}

/// The places in the array of deoptimization data.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct DeoptimizationIndices {
    pub(super) literals: u32,
    pub(super) shared: u32,
    pub(super) inlining: u32,
    /// True if `shared` is an object that points to the description.
    pub(super) is_wrapped: bool,
}

/// The types of objects.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Types {
    pub(super) shared: u32,
    pub(super) script: u32,
    pub(super) scope: u32,
    pub(super) bytecode: u32,
    pub(super) code: u32,
    pub(super) instructions: Option<u32>,
    pub(super) fixed_array: u32,
    /// The first type that is not one of strings.
    pub(super) first_non_string: u32,
}

/// What the symbols do not say in all versions.
struct Version {
    first: (u32, u32),
    bytecode: u32,
    bytecode_positions: u32,
    encoding: Encoding,
    code: CodeOffsets,
    deoptimization: DeoptimizationIndices,
}

/// The versions in which layouts change, the newest first.
const VERSIONS: [Version; 7] = [
    // Node.js 26.
    Version {
        first: (14, 6),
        bytecode: 64,
        bytecode_positions: 24,
        encoding: Encoding::Flags,
        code: CodeOffsets { size: 56, flags: 52, regular_expression: 4, baseline: 11, optimized: [12, 13], ..SEPARATE },
        deoptimization: WRAPPED_INDICES,
    },
    // Node.js 25.
    Version {
        first: (14, 0),
        bytecode: 64,
        bytecode_positions: 24,
        encoding: Encoding::Flags,
        code: CodeOffsets { size: 56, flags: 52, ..SEPARATE },
        deoptimization: WRAPPED_INDICES,
    },
    // Node.js 24.
    Version {
        first: (13, 0),
        bytecode: 64,
        bytecode_positions: 24,
        encoding: Encoding::Sign,
        code: CodeOffsets { size: 56, flags: 52, ..SEPARATE },
        deoptimization: WRAPPED_INDICES,
    },
    // Node.js 22.
    Version {
        first: (12, 0),
        bytecode: 64,
        bytecode_positions: 24,
        encoding: Encoding::Sign,
        code: SEPARATE,
        deoptimization: FIRST_INDICES,
    },
    // Node.js 20.
    Version {
        first: (11, 0),
        bytecode: 54,
        bytecode_positions: 32,
        encoding: Encoding::Sign,
        code: CodeOffsets {
            header: 16,
            size: 56,
            deoptimization: 16,
            positions: 24,
            baseline: 11,
            optimized: [12, 13],
            ..SEPARATE
        },
        deoptimization: FIRST_INDICES,
    },
    // Node.js 18.
    Version {
        first: (10, 0),
        bytecode: 56,
        bytecode_positions: 32,
        encoding: Encoding::Sign,
        code: CodeOffsets { header: 128, ..JOINED },
        deoptimization: FIRST_INDICES,
    },
    // Node.js 16.
    Version {
        first: (9, 4),
        bytecode: 54,
        bytecode_positions: 32,
        encoding: Encoding::Sign,
        code: JOINED,
        deoptimization: FIRST_INDICES,
    },
];

/// Code whose instructions are in another object.
const SEPARATE: CodeOffsets = CodeOffsets {
    header: 32,
    is_separate: true,
    start: 40,
    size: 52,
    flags: 48,
    deoptimization: 8,
    positions: 16,
    regular_expression: 3,
    baseline: 10,
    optimized: [11, 12],
};

/// Code that contains its instructions.
const JOINED: CodeOffsets = CodeOffsets {
    header: 96,
    is_separate: false,
    start: 0,
    size: 40,
    flags: 48,
    deoptimization: 16,
    positions: 24,
    regular_expression: 3,
    baseline: 11,
    optimized: [12, 13],
};

const FIRST_INDICES: DeoptimizationIndices =
    DeoptimizationIndices { literals: 2, shared: 6, inlining: 7, is_wrapped: false };

const WRAPPED_INDICES: DeoptimizationIndices =
    DeoptimizationIndices { literals: 3, shared: 7, inlining: 8, is_wrapped: true };

/// The first and the last version whose layout is known, and the versions of Node.js with them.
const KNOWN: [(u32, u32); 2] = [(9, 4), (14, 6)];

/// Returns the layout of a build. An error names a build that is not known.
pub(super) fn find_offsets(file: &InterpreterFile<'_>) -> Result<Offsets, String> {
    find_offsets_by(|name| file.symbol(name.as_bytes()).map(|symbol| file.u32_at(symbol.start).unwrap_or(0)))
}

/// Returns the layout of a build from a function that returns the value of a symbol.
fn find_offsets_by(number: impl Fn(&str) -> Option<u32>) -> Result<Offsets, String> {
    let major = number("_ZN2v88internal7Version6major_E");
    let Some(found) = major.zip(number("_ZN2v88internal7Version6minor_E")) else {
        return Err("a build of V8 without its version".to_owned());
    };
    let (major, minor) = found;
    if found < KNOWN[0] || found > KNOWN[1] {
        return Err(format!("V8 {major}.{minor} (9.4 to 14.6, of Node.js 16 to 26, are supported)"));
    }
    let value = |name: &str| number(&format!("v8dbg_{name}"));
    if value("TaggedSize").is_some_and(|size| size != 8) {
        return Err(format!("V8 {major}.{minor} with compressed pointers"));
    }
    let version = VERSIONS.iter().find(|version| found >= version.first).unwrap_or(&VERSIONS[VERSIONS.len() - 1]);
    if found >= (14, 0) && value("CodeKindBaseline") != Some(version.code.baseline) {
        return Err(format!("V8 {major}.{minor} with kinds of code that are not known"));
    }
    offsets(version, value).ok_or_else(|| format!("a build of V8 {major}.{minor} without a description of its objects"))
}

fn offsets(version: &Version, value: impl Fn(&str) -> Option<u32>) -> Option<Offsets> {
    let class = "class_SharedFunctionInfo_";
    let shared = |fields: &[&str]| fields.iter().find_map(|field| value(&format!("{class}_{field}")));
    let is_newest = version.deoptimization.is_wrapped;
    let indices = DeoptimizationIndices {
        literals: value("DeoptimizationDataLiteralArrayIndex").unwrap_or(version.deoptimization.literals),
        inlining: value("DeoptimizationDataInliningPositionsIndex").unwrap_or(version.deoptimization.inlining),
        ..version.deoptimization
    };
    Some(Offsets {
        shared: value("class_JSFunction__shared__SharedFunctionInfo")?,
        data: shared(&["function_data__Object"]).unwrap_or(8),
        name: shared(&[
            "name_or_scope_info__Object",
            "name_or_scope_info__Tagged_Object_",
            "name_or_scope_info__Tagged_NameOrScopeInfoT_",
        ])?,
        script: shared(&["script__Tagged_HeapObject_", "script_or_debug_info__HeapObject"])?,
        literal: shared(&["flags__int"])? + 4,
        locals: 8 + 8 * value("scopeinfo_idx_first_vars").unwrap_or(if is_newest { 5 } else { 3 }),
        bytecode: value("class_BytecodeArray__data__uintptr_t").unwrap_or(version.bytecode),
        bytecode_positions: version.bytecode_positions,
        encoding: version.encoding,
        code: version.code,
        deoptimization: indices,
        types: Types {
            shared: value("type_SharedFunctionInfo__SHARED_FUNCTION_INFO_TYPE")?,
            script: value("type_Script__SCRIPT_TYPE")?,
            scope: value("type_ScopeInfo__SCOPE_INFO_TYPE")?,
            bytecode: value("type_BytecodeArray__BYTECODE_ARRAY_TYPE")?,
            code: value("type_Code__CODE_TYPE")?,
            instructions: value("type_InstructionStream__INSTRUCTION_STREAM_TYPE"),
            fixed_array: value("type_FixedArray__FIXED_ARRAY_TYPE")?,
            first_non_string: value("FirstNonstringType")?,
        },
    })
}

#[cfg(test)]
mod tests {
    use super::{Encoding, find_offsets_by};

    /// Returns the values of symbols of Node.js 22.
    fn node_22(name: &str) -> Option<u32> {
        Some(match name {
            "_ZN2v88internal7Version6major_E" => 12,
            "_ZN2v88internal7Version6minor_E" => 4,
            "v8dbg_class_JSFunction__shared__SharedFunctionInfo" => 32,
            "v8dbg_class_SharedFunctionInfo__name_or_scope_info__Tagged_Object_" => 16,
            "v8dbg_class_SharedFunctionInfo__script__Tagged_HeapObject_" => 32,
            "v8dbg_class_SharedFunctionInfo__flags__int" => 48,
            "v8dbg_type_SharedFunctionInfo__SHARED_FUNCTION_INFO_TYPE" => 274,
            "v8dbg_type_Script__SCRIPT_TYPE" => 167,
            "v8dbg_type_ScopeInfo__SCOPE_INFO_TYPE" => 272,
            "v8dbg_type_BytecodeArray__BYTECODE_ARRAY_TYPE" => 205,
            "v8dbg_type_Code__CODE_TYPE" => 206,
            "v8dbg_type_FixedArray__FIXED_ARRAY_TYPE" => 174,
            "v8dbg_FirstNonstringType" => 128,
            "v8dbg_TaggedSize" => 8,
            _ => return None,
        })
    }

    #[test]
    fn takes_what_the_file_says_and_the_rest_by_version() {
        let offsets = find_offsets_by(node_22).unwrap();
        assert_eq!((offsets.shared, offsets.name, offsets.script, offsets.literal), (32, 16, 32, 52));
        assert_eq!((offsets.locals, offsets.bytecode, offsets.code.size), (32, 64, 52));
        let of_node_26 = |name: &str| match name {
            "_ZN2v88internal7Version6major_E" => Some(14),
            "_ZN2v88internal7Version6minor_E" => Some(6),
            "v8dbg_class_SharedFunctionInfo__name_or_scope_info__Tagged_Object_" => None,
            "v8dbg_CodeKindBaseline" => Some(11),
            "v8dbg_class_SharedFunctionInfo__name_or_scope_info__Tagged_NameOrScopeInfoT_" => Some(24),
            _ => node_22(name),
        };
        let offsets = find_offsets_by(of_node_26).unwrap();
        assert_eq!((offsets.name, offsets.locals, offsets.encoding), (24, 48, Encoding::Flags));
        assert_eq!((offsets.code.regular_expression, offsets.code.baseline, offsets.code.optimized), (4, 11, [12, 13]));
    }

    /// Returns the error of a build of Node.js 22 with another value of a symbol.
    fn error_with(changed: &str, number: Option<u32>) -> String {
        find_offsets_by(|name| if name == changed { number } else { node_22(name) }).unwrap_err()
    }

    #[test]
    fn names_builds_that_are_not_known() {
        let (major, minor) = ("_ZN2v88internal7Version6major_E", "_ZN2v88internal7Version6minor_E");
        assert_eq!(error_with(major, Some(8)), "V8 8.4 (9.4 to 14.6, of Node.js 16 to 26, are supported)");
        assert_eq!(error_with(major, Some(15)), "V8 15.4 (9.4 to 14.6, of Node.js 16 to 26, are supported)");
        assert_eq!(error_with(minor, None), "a build of V8 without its version");
        assert_eq!(error_with("v8dbg_TaggedSize", Some(4)), "V8 12.4 with compressed pointers");
        let missing = error_with("v8dbg_type_Script__SCRIPT_TYPE", None);
        assert_eq!(missing, "a build of V8 12.4 without a description of its objects");
        let other = error_with(major, Some(14));
        assert_eq!(other, "V8 14.4 with kinds of code that are not known");
    }
}
