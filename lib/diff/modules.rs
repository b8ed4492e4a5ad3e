//! Modules that have another name after: crates, namespaces and packages whose functions were renamed together.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};

use super::counterpart::{Counterpart, NamePart};
use super::renamed::Renamed;

/// Fewest functions that were renamed with their module.
const MIN_FUNCTIONS: usize = 2;

/// Returns the modules to which the functions of several pairs belong, and that only one side has. `before` and `after` are the names
/// of the functions of each side.
pub(super) fn find_modules(pairs: &[Renamed], before: &BTreeSet<&str>, after: &BTreeSet<&str>) -> Vec<Counterpart> {
    let mut found = BTreeMap::<(String, String), usize>::new();
    for Renamed { before, after } in pairs {
        let Some(modules) = modules_of(before, after) else { continue };
        *found.entry(modules).or_default() += 1;
    }
    let is_in = |names: &BTreeSet<&str>, module: &str| names.iter().any(|name| name.contains(module));
    let is_single =
        |old: &str, new: &str, (other_old, other_new): &(String, String)| (other_old == old) == (other_new == new);
    let modules = found.iter().filter(|((old, new), count)| {
        **count >= MIN_FUNCTIONS
            && found.keys().all(|other| is_single(old, new, other))
            && !is_in(after, old)
            && !is_in(before, new)
    });
    let modules =
        modules.map(|((old, new), _)| Counterpart { before: old.clone(), after: new.clone(), part: NamePart::Module });
    let mut modules: Vec<Counterpart> = modules.collect();
    // Modules in modules come before these.
    modules.sort_by_key(|module| Reverse(module.before.len()));
    modules
}

/// Returns the modules, each with the separator behind it, that a function had before and has after; `None` if its module is the
/// same. What follows the modules and precedes the function is equal.
fn modules_of(before: &[u8], after: &[u8]) -> Option<(String, String)> {
    let [before, after] = [std::str::from_utf8(before).ok()?, std::str::from_utf8(after).ok()?];
    let is_path = |name: &str| !name.contains([' ', '<', '(', '[']);
    let separator = if before.contains("::") { "::" } else { "." };
    let [(mut old, _), (mut new, _)] = [before.rsplit_once(separator)?, after.rsplit_once(separator)?];
    while let (Some((old_parent, old_part)), Some((new_parent, new_part))) =
        (old.rsplit_once(separator), new.rsplit_once(separator))
        && old_part == new_part
    {
        (old, new) = (old_parent, new_parent);
    }
    let is_module = old != new && !old.is_empty() && !new.is_empty() && is_path(before) && is_path(after);
    is_module.then(|| (format!("{old}{separator}"), format!("{new}{separator}")))
}

#[cfg(test)]
mod tests {
    use super::{find_modules, modules_of};
    use crate::diff::Renamed;

    #[test]
    fn finds_the_module_of_a_pair() {
        for (before, after, expected) in [
            ("shop::cart::tax", "shop::basket::tax", Some(("shop::cart::", "shop::basket::"))),
            ("shop::cart::tax", "shop::basket::levy", Some(("shop::cart::", "shop::basket::"))),
            ("app::cart::tax", "shop::cart::tax", Some(("app::", "shop::"))),
            ("com.acme.cart.Tax.of", "com.acme.basket.Tax.of", Some(("com.acme.cart.", "com.acme.basket."))),
            ("shop::cart::tax", "shop::cart::levy", None),
            ("tax", "levy", None),
            ("<app::T as Add>::add", "<shop::T as Add>::add", None),
        ] {
            let found = modules_of(before.as_bytes(), after.as_bytes());
            assert_eq!(found.as_ref().map(|(old, new)| (&old[..], &new[..])), expected, "{before} {after}");
        }
    }

    #[test]
    fn several_functions_are_renamed_with_their_module() {
        let find = |pairs: &[(&str, &str)], others: [&[&str]; 2]| {
            let renamed =
                pairs.iter().map(|(before, after)| Renamed { before: (*before).into(), after: (*after).into() });
            let [before, after] = others.map(|names| names.iter().copied().collect());
            let found = find_modules(&renamed.collect::<Vec<_>>(), &before, &after);
            found.into_iter().map(|module| [module.before, module.after].join(">")).collect::<Vec<_>>()
        };
        let [a, b] = [("a::f", "b::f"), ("a::g", "b::h")];
        assert_eq!(find(&[a, b], [&["a::i"], &["b::i"]]), ["a::>b::"]);
        assert_eq!(find(&[a], [&[], &[]]), [""; 0]);
        let inner = [("a::m::f", "b::n::f"), ("a::m::g", "b::n::g")];
        assert_eq!(find(&[&[a, b][..], &inner].concat(), [&[], &[]]), ["a::m::>b::n::", "a::>b::"]);
        assert_eq!(find(&[a, b], [&[], &["a::i"]]), [""; 0], "both modules are there after");
        assert_eq!(find(&[a, b, ("a::k", "c::k")], [&[], &[]]), [""; 0], "the module was divided");
    }
}
