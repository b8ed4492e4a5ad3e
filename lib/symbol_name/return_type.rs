//! Return types before the names of C++ functions, as demanglers print them for templates.

use super::brackets::{BracketMatcher, is_word, operator_length};
use super::script::is_script;

/// Words after which parentheses are no list of arguments.
const NOT_CALLS: [&[u8]; 2] = [b"decltype", b"noexcept"];

/// Returns a name of C++ without the type that the function returns: `shop::load<Order>(int)` for
/// `std::vector<int> shop::load<Order>(int)`.
pub fn without_return_type(name: &[u8]) -> &[u8] {
    if !name.contains(&b' ') || is_script(name) {
        return name;
    }
    let mut brackets = BracketMatcher::default();
    let (mut start, mut position) = (0, 0);
    while position < name.len() {
        if let Some(length) = operator_length(name, position) {
            position += length;
            continue;
        }
        let before = &name[..position];
        match name[position] {
            b'(' if ends_in_name(before) => break,
            b'<' | b'(' | b'[' | b'{' => {
                position = brackets.find_group_end(name, position).unwrap_or(position + 1);
                continue;
            }
            // A name follows, and `operator bool` is one.
            b' ' if name.get(position + 1).is_some_and(|next| is_word(*next) || *next == b'(' || *next == b'{')
                && !before.ends_with(b"operator") =>
            {
                start = position + 1;
            }
            _ => {}
        }
        position += 1;
    }
    let rest = &name[start..];
    // What has neither a namespace nor arguments of templates may be any text.
    let is_function = memchr::memmem::find(rest, b"::").is_some() || rest.contains(&b'<');
    if is_function { rest } else { name }
}

/// True if parentheses after this text contain the arguments of a function.
fn ends_in_name(text: &[u8]) -> bool {
    let is_name = text.last().is_some_and(|last| is_word(*last) || matches!(last, b'>' | b')' | b']' | b'}' | b'='));
    is_name && !NOT_CALLS.iter().any(|word| text.ends_with(word))
}

#[cfg(test)]
mod tests {
    use super::without_return_type;

    #[test]
    fn a_name_begins_behind_the_return_type() {
        for (name, rest) in [
            ("std::vector<int, std::allocator<int> > shop::load<Order>(int)", "shop::load<Order>(int)"),
            ("void std::sort<int*>(int*, int*)", "std::sort<int*>(int*, int*)"),
            (
                "shop::It std::find_if<shop::It>(shop::It) [clone .isra.0]",
                "std::find_if<shop::It>(shop::It) [clone .isra.0]",
            ),
            (
                "unsigned long shop::count<int>(unsigned long const&) const",
                "shop::count<int>(unsigned long const&) const",
            ),
            ("std::ostream& std::operator<< <char>(int)", "std::operator<< <char>(int)"),
            ("bool operator< <int>(A<int> const&)", "operator< <int>(A<int> const&)"),
            ("decltype(auto) shop::f<int>(int&&)", "shop::f<int>(int&&)"),
            ("decltype ((fp.begin)()) shop::begin<A>(A&)", "shop::begin<A>(A&)"),
            ("A::operator bool() const", "A::operator bool() const"),
            ("std::function<void (int)>::operator()(int) const", "std::function<void (int)>::operator()(int) const"),
            ("int (anonymous namespace)::f<int>(int)", "(anonymous namespace)::f<int>(int)"),
            ("<a::B as core::fmt::Display>::fmt", "<a::B as core::fmt::Display>::fmt"),
            ("block in Shop::Cart (app.rb)", "block in Shop::Cart (app.rb)"),
            ("Web Content", "Web Content"),
            (
                "java.lang.Object shop.Basket.total(java.util.List, int)",
                "java.lang.Object shop.Basket.total(java.util.List, int)",
            ),
        ] {
            assert_eq!(String::from_utf8_lossy(without_return_type(name.as_bytes())), rest);
        }
    }
}
