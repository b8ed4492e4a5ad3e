//! Fits names, paths and lists to a width: what tells least is left out first.

use super::columns::{take, take_end, width};
use crate::symbol_name::script;
use crate::symbol_name::shorten::shorten;

/// Names longer than this are shortened where there is no room for them.
const LONG_NAME: usize = 24;

/// Functions at the end of a path that are worth more than the leaf: the last own one, what it calls, and the leaf.
const MIN_KNOWN: usize = 3;

/// Stands for functions that are left out of a path.
const GAP: &str = "…";

/// Returns a text in lines of at most this width, broken at blanks.
pub(super) fn wrap(text: &str, room: usize) -> Vec<String> {
    let mut lines = vec![String::new()];
    for word in text.split_whitespace() {
        let Some(line) = lines.last_mut() else { break };
        if !line.is_empty() && width(line) + 1 + width(word) > room {
            lines.push(word.to_owned());
        } else {
            if !line.is_empty() {
                line.push(' ');
            }
            line.push_str(word);
        }
    }
    lines.iter().map(|line| cut_end(line, room)).collect()
}

/// The text between the two names of a function.
pub(super) const ARROW: &str = " -> ";

/// Returns a long name without generic, template and call arguments, and without the directories of files.
pub(super) fn shortened(name: &str) -> String {
    // A number after the name must not hide the suffix `_[k]`, whose brackets are no arguments.
    let is_number = |text: &str| text.ends_with('%') || text.starts_with('×');
    if let Some((stem, number)) = name.rsplit_once(' ').filter(|(_, number)| is_number(number)) {
        return format!("{} {number}", shortened(stem));
    }
    if let Some((before, after)) = split_names(name) {
        let [short_before, short_after] = [before, after].map(shortened_alone);
        // They differ by nothing but what is left out.
        return if short_before == short_after { name.to_owned() } else { [short_before, short_after].join(ARROW) };
    }
    shortened_alone(name)
}

/// Splits the two names of a function.
fn split_names(text: &str) -> Option<(&str, &str)> {
    let (before, after) = text.split_once(ARROW)?;
    // A type may be that of a function.
    let count = |letters: [char; 3]| before.chars().filter(|letter| letters.contains(letter)).count();
    (count(['(', '<', '[']) == count([')', '>', ']'])).then_some((before, after))
}

fn shortened_alone(name: &str) -> String {
    match width(name) > LONG_NAME {
        // It has been shortened by what does not tell it from others.
        true if name.contains('…') => name.to_owned(),
        true => without_directories(&String::from_utf8_lossy(&shorten(name.as_bytes(), 2))),
        false => name.to_owned(),
    }
}

/// Returns a name without the directories of files.
pub(super) fn without_directories(name: &str) -> String {
    String::from_utf8_lossy(&script::without_directories(name.as_bytes())).into_owned()
}

/// Returns the last part of a name of C++ or Rust, with the one before if both are short.
pub(super) fn last_parts(name: &str) -> String {
    let parts: Vec<&str> = name.split("::").map(|part| part.trim_matches(['<', '>'])).collect();
    match &parts[..] {
        _ if name.contains(' ') => name.to_owned(),
        [.., before, last] if width(before) + width(last) + 2 <= LONG_NAME => format!("{before}::{last}"),
        [.., last] if !last.is_empty() => (*last).to_owned(),
        _ => name.to_owned(),
    }
}

/// Returns functions joined by ` > ` on one line, or on two if parts must be left out of one. The callers right before the
/// last function tell more than any others.
pub(super) fn wrap_path(names: &[String], room: usize) -> Vec<String> {
    // No longer name fits. Names are written by strangers: each is cut once, and not for each of the widths below.
    let cut =
        |name: &String| if width(name) > 2 * room { cut_middle(&shortened(name), 2 * room) } else { name.clone() };
    let names: Vec<String> = names.iter().map(cut).collect();
    let lines = (room..=2 * room).rev().map(|both| break_path(&fit_names(&names, both), room));
    let mut fitting = lines.filter(|lines| lines.len() <= 2 && lines.iter().all(|line| width(line) <= room));
    fitting.next().unwrap_or_else(|| vec![fit_path(&names, room)])
}

/// Breaks a path before its functions.
fn break_path(names: &[String], room: usize) -> Vec<String> {
    let mut lines: Vec<String> = Vec::new();
    for name in names {
        match lines.last_mut() {
            Some(line) if width(line) + width(name) + 3 <= room => line.push_str(&format!(" > {name}")),
            Some(_) => lines.push(format!("> {name}")),
            None => lines.push(name.clone()),
        }
    }
    lines
}

/// Returns functions joined by ` > `, as `fit_names` fits them.
pub(super) fn fit_path(names: &[String], room: usize) -> String {
    fit_names(names, room).join(" > ")
}

/// Returns functions that fit when they are joined by ` > `. If they do not, arguments are left out, then the functions
/// after the first, then parts of names.
pub(super) fn fit_names(names: &[String], room: usize) -> Vec<String> {
    if path_width(names) <= room {
        return names.to_vec();
    }
    let names: Vec<String> = names.iter().map(|name| shortened(name)).collect();
    if path_width(&names) <= room {
        return names;
    }
    let uncut = names.join(" > ");
    let names = cut_callers(names, room);
    let [_, .., last] = &names[..] else { return vec![cut_middle(&uncut, room)] };
    if let [start @ .., gap, _] = &names[..]
        && gap == GAP
        && start.len() > 1
    {
        let fitting = without_start(&names, MIN_KNOWN, room).or_else(|| without_start(start, 1, room));
        return fitting.unwrap_or_else(|| vec![cut_middle(&start[start.len() - 1], room)]);
    }
    if let Some(fitting) = without_start(&names, 1, room) {
        return fitting;
    }
    let fitting = vec![GAP.to_owned(), last.clone()];
    if path_width(&fitting) <= room { fitting } else { vec![cut_middle(last, room)] }
}

/// Returns the width of functions joined by ` > `.
pub(super) fn path_width(names: &[String]) -> usize {
    names.iter().map(|name| width(name) + 3).sum::<usize>().saturating_sub(3)
}

/// Cuts long names before the last one, which would leave no room for others.
fn cut_callers(mut names: Vec<String>, room: usize) -> Vec<String> {
    if let Some((_, callers)) = names.split_last_mut() {
        callers.iter_mut().for_each(|name| *name = cut_middle(name, (room / 3).max(LONG_NAME)));
    }
    names
}

/// Returns the first function of a path and as many of the last ones as fit, but at least `min`.
fn without_start(names: &[String], min: usize, room: usize) -> Option<Vec<String>> {
    if path_width(names) <= room {
        return Some(names.to_vec());
    }
    let start = [names[0].clone(), GAP.to_owned()];
    let mut used = path_width(&start);
    let mut known = 0;
    let mut fitting = None;
    for (skipped, name) in names.iter().enumerate().skip(2).rev() {
        used += 3 + width(name);
        if used > room {
            break;
        }
        known += usize::from(name != GAP);
        fitting = Some(skipped).filter(|_| name != GAP && known >= min).or(fitting);
    }
    fitting.map(|skipped| [&start, &names[skipped..]].concat())
}

/// Returns a path without its first directories, if it is too long, and without the middle of a name that is too long itself.
pub(super) fn cut_path(path: &str, room: usize) -> String {
    if width(path) <= room {
        return path.to_owned();
    }
    let end = take_end(path, room.saturating_sub(1));
    match end.find('/').filter(|slash| slash + 1 < end.len()) {
        Some(slash) => format!("{GAP}{}", &end[slash..]),
        None => cut_middle(path.rsplit('/').next().unwrap_or(path), room),
    }
}

/// Returns a text without its end, if it is too long.
pub(super) fn cut_end(text: &str, room: usize) -> String {
    if width(text) <= room {
        return text.to_owned();
    }
    format!("{}…", take(text, room.saturating_sub(1)))
}

/// Returns a text without its middle, if it is too long. More of its end is kept, where names differ.
pub(super) fn cut_middle(text: &str, room: usize) -> String {
    if width(text) <= room {
        return text.to_owned();
    }
    let head = room.saturating_sub(1) / 3;
    let tail = room.saturating_sub(1) - head;
    let (start, end) = (take(text, head), take_end(text, tail));
    format!("{}…{}", start.trim_end_matches('…'), end.trim_start_matches('…'))
}

#[cfg(test)]
mod tests {
    use super::{cut_middle, cut_path, fit_path, last_parts, shortened, wrap_path};

    fn strings(names: &[&str]) -> Vec<String> {
        names.iter().map(|name| (*name).to_owned()).collect()
    }

    #[test]
    fn paths_and_lists_lose_what_does_not_fit() {
        let path = strings(&["main", "serve", "handle", "encode"]);
        assert_eq!(fit_path(&path, 40), "main > serve > handle > encode");
        assert_eq!(fit_path(&path, 29), "main > … > handle > encode");
        assert_eq!(fit_path(&path, 18), "main > … > encode");
        assert_eq!(fit_path(&path, 10), "… > encode");
        let own_first = strings(&["app", "main", "own", "callee", "…", "leaf"]);
        assert_eq!(fit_path(&own_first, 33), "app > … > own > callee > … > leaf");
        assert_eq!(fit_path(&own_first, 32), "app > main > own > callee");
        assert_eq!(fit_path(&own_first, 22), "app > … > own > callee");
        assert_eq!(fit_path(&path, 5), "e…ode");
        assert_eq!(cut_middle("abcdefghij", 7), "ab…ghij");
        assert_eq!(cut_middle("rebuild<…price…>", 12), "reb…price…>");
    }

    #[test]
    fn long_names_lose_arguments_and_directories() {
        for (name, short) in [
            ("py::deep_copy:/srv/application/app.py", "py::deep_copy:app.py"),
            ("JS:*unique /srv/application/app.js:2:16", "JS:*unique app.js:2:16"),
            ("github.com/example/pkg.(*Server).Run", "github.com/example/pkg.(*Server).Run"),
            ("a::very::long::path::of<names, and::arguments>", "a::very::long::path::of"),
            ("/", "/"),
            ("copy_page_to_the_iterator_[k] 41.0%", "copy_page_to_the_iterator_[k] 41.0%"),
            ("py::<module>:/srv/application/app.py", "py::<module>:app.py"),
            ("<module> (/srv/application/app.py)", "<module> (app.py)"),
            ("show_page (/srv/application/page.php(3) : eval()'d code)", "show_page (page.php(3) : eval()'d code)"),
            ("std::sort<int*, std::function<bool (int, int)> > ×3", "std::sort ×3"),
            ("std::function<bool (int, int)>::operator()(int, int) const", "std::function::operator()"),
            ("py::dumps:/usr/lib/python3.12/json/__init__.py", "py::dumps:json/__init__.py"),
        ] {
            assert_eq!(shortened(name), short);
        }
        for (names, short) in [
            ("parse::rows(std::vec<int> const&) -> parse::lines(int)", "parse::rows -> parse::lines(int)"),
            ("sort_row(std::vec<int> const&) -> sort_row(std::vec<long> const&)", "="),
            ("insert_all_of_the_rows(int) -> insert_all_of_the_rows(int, int)", "="),
        ] {
            assert_eq!(shortened(names), if short == "=" { names } else { short });
        }
    }

    #[test]
    fn names_of_callees_lose_their_path() {
        for (name, last) in [
            ("std::_Hashtable::_M_find_before_node", "_M_find_before_node"),
            ("core::fmt::builders::DebugStruct::field", "DebugStruct::field"),
            ("<core::fmt::builders::DebugStruct>::field", "DebugStruct::field"),
            ("<Vec as Extend>::extend", "<Vec as Extend>::extend"),
            ("malloc", "malloc"),
        ] {
            assert_eq!(last_parts(name), last);
        }
    }

    #[test]
    fn a_path_takes_two_lines_before_callers_are_left_out() {
        let names = strings(&["main", "serve", "route", "load_settings", "parse_json"]);
        assert_eq!(wrap_path(&names, 60), ["main > serve > route > load_settings > parse_json"]);
        assert_eq!(wrap_path(&names, 30), ["main > serve > route", "> load_settings > parse_json"]);
        assert_eq!(wrap_path(&names, 24), ["main > … > load_settings", "> parse_json"]);
    }

    #[test]
    fn paths_of_files_keep_their_end() {
        for (path, cut) in [
            ("srv/app.folded", "srv/app.folded"),
            ("/srv/profiles/of/tuesday/app.folded", "…/tuesday/app.folded"),
            ("/srv/a_profile_with_a_long_name.folded", "a_prof…ng_name.folded"),
        ] {
            assert_eq!(cut_path(path, 21), cut);
        }
    }

    #[test]
    fn a_huge_name_is_cut_as_any_other() {
        let huge = format!("{}{}", "a".repeat(500), "z".repeat(500));
        assert_eq!(wrap_path(&strings(&["main", &huge]), 30), wrap_path(&strings(&["main", &huge[400..600]]), 30));
    }
}
