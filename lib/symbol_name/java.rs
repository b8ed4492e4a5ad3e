//! Names of Java classes.

use bstr::ByteSlice as _;

/// Returns the name of a class as in Java, from its name in the virtual machine: `java.util.Map` from `java/util/Map`.
///
/// The address that ends the name of a hidden class, such as a lambda's, is left out: it differs from run to run.
pub fn class_name(internal: &[u8]) -> Vec<u8> {
    strip_address(internal).replace(b"/", b".")
}

/// Strips the address from `Work$$Lambda$5+0x00007f.12`.
fn strip_address(class: &[u8]) -> &[u8] {
    let Some(start) = class.find("+0x").or_else(|| class.find("/0x")) else { return class };
    let is_address = class[start + 3..].iter().all(|byte| byte.is_ascii_hexdigit() || matches!(byte, b'.' | b'/'));
    if is_address { &class[..start] } else { class }
}

#[cfg(test)]
mod tests {
    use super::class_name;

    #[test]
    fn separates_packages_by_dots_and_leaves_out_addresses() {
        for (internal, class) in [
            ("java/util/HashMap", "java.util.HashMap"),
            ("Work$$Lambda$5+0x00007f.12", "Work$$Lambda$5"),
            ("a/Work$$Lambda$5/0x0000000800c03000", "a.Work$$Lambda$5"),
            ("a/0xylophone", "a.0xylophone"),
        ] {
            assert_eq!(class_name(internal.as_bytes()), class.as_bytes(), "{internal}");
        }
    }
}
