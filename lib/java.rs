//! Functions of HotSpot, the Java virtual machine, in stacks.

use std::sync::LazyLock;

use regex::bytes::Regex;

/// Functions that run a thread of the virtual machine, or code of the program in it.
pub const ENTRIES: &str = r"^(JavaMain|ThreadJavaMain|thread_native_entry|JavaCalls::|call_stub|StubRoutines|Interpreter$|JavaThread::|jni_Call|jni_invoke)";

static ENTRY: LazyLock<Regex> = LazyLock::new(|| Regex::new(ENTRIES).expect("a valid pattern"));

/// True for functions below which all native functions are of the virtual machine, except those of native methods.
pub fn is_entry(name: &[u8]) -> bool {
    ENTRY.is_match(name)
}

/// True unless a name below such a function is that of a method: `App.main`, `java/util/List::of`, `LApp;::run`.
pub fn is_native(name: &[u8]) -> bool {
    let name = String::from_utf8_lossy(name);
    let plain = name.split(['(', '<']).next().unwrap_or_default();
    if plain.contains("::") {
        return !plain.contains('/') && !plain.contains(":::") && !plain.contains(";:");
    }
    // Compilers append suffixes to functions of C: `copy.part.0`.
    plain.split_once('.').is_none_or(|(_, rest)| {
        let word = rest.split('.').next().unwrap_or_default();
        matches!(word, "constprop" | "part" | "isra" | "cold" | "llvm" | "lto_priv") || word.parse::<u32>().is_ok()
    })
}

#[cfg(test)]
mod tests {
    use super::is_native;

    #[test]
    fn tells_methods_from_native_functions() {
        for name in ["App.main", "App$$Lambda$1.call", "java/util/List::of", "LApp:::run", "java.util.List.<init>"] {
            assert!(!is_native(name.as_bytes()), "{name}");
        }
        for name in ["PhaseChaitin::Split", "G1::copy<a.b>", "thread_entry", "copy.part.0", "IR::split.isra.0"] {
            assert!(is_native(name.as_bytes()), "{name}");
        }
    }
}
