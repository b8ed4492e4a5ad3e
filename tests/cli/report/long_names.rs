//! Names and titles that are long, or contain paths.

use super::report;
use crate::support::{command, directory, run_command, tool};

#[test]
fn titles_are_cut_and_escaped() {
    let folder = directory();
    let long = format!("{}.folded", "x".repeat(200));
    let deep = format!("{}app.folded", "a_directory_of_profiles/".repeat(6));
    let odd = "we\tird\u{1b}[31m`|<b>.folded".to_owned();
    std::fs::create_dir_all(folder.path().join(&deep).parent().unwrap()).unwrap();
    let first_line = |options: &[&str]| {
        let mut command = command(tool("fg-report"));
        command.current_dir(folder.path()).args(options);
        run_command(command, b"").ok().text().lines().next().unwrap().to_owned()
    };
    for name in [&long, &deep, &odd] {
        std::fs::write(folder.path().join(name), "main;a 5\nmain;b 6\n").unwrap();
    }
    assert!(first_line(&[&long]).ends_with("xxx.folded: 11 samples, 2 stacks"), "{}", first_line(&[&long]));
    assert!(first_line(&[&deep]).contains("  …/a_directory_of_profiles/"), "{}", first_line(&[&deep]));
    assert!(first_line(&[&deep]).ends_with("/app.folded: 11 samples, 2 stacks"));
    assert!(first_line(&[&odd]).contains(r"we ird\u{1b}[31m`|<b>.folded: 11"), "{}", first_line(&[&odd]));
    let markdown = first_line(&["--markdown", &odd]);
    assert!(!markdown.contains(['\u{1b}', '\t', '<']), "{markdown}");
    let sides = first_line(&["--before", &long, "--after", &odd]);
    assert!(sides.starts_with("profiles  xxx") && sides.contains("xxx.folded: 11 samples;"), "{sides}");
}

#[test]
fn names_of_scripts_and_closures_stay_readable() {
    let long = "/srv/shop/services/of/a/very/long/path";
    for (name, shown) in [
        (format!("JS:*f {long}/cart.js:1:23"), "JS:*f cart.js:1:23"),
        (format!("LazyCompile:~f {long}/cart.js:1:23"), "LazyCompile:~f cart.js:1:23"),
        (format!("f (https://cdn.example.com{long}/cart.js:1)"), "f (cart.js:1)"),
        (format!("f (file://{long}/cart.mjs:1)"), "f (cart.mjs:1)"),
        ("net/http.(*conn).serveWithALongName".to_owned(), "http.(*conn).serveWithALongName 100.0%"),
        ("Elixir.Foo.Bar.WithALongName:baz/2".to_owned(), "Bar.WithALongName:baz/2 100.0%"),
        ("App\\Controller\\Shop->showWithALongName".to_owned(), "App\\Controller\\Shop->showWithALongName"),
    ] {
        let page = report(&[], format!("app;main;{name};x 60\napp;main;{name};y 60\n").as_bytes());
        let path = page.lines().find(|line| line.starts_with("hot path")).unwrap_or_else(|| panic!("{page}"));
        assert!(path.contains("app > main > "), "{page}");
        assert!(page.contains(shown), "{shown}\n{page}");
    }
}

#[test]
fn packages_of_python_with_relative_paths_may_be_the_programs_own() {
    let page = report(
        &[],
        b"<module> (app.py:10);main (app/server.py:12);handle (app/x.py:3);get (requests/api.py:75);recv (ssl.py:12) 50\n\
          <module> (app.py:10);main (app/server.py:12);render (app/page.py:3);_parse (json/decoder.py:3) 30\n\
          <module> (app.py:10);main (app/server.py:12);total (app/x.py:9) 20\n",
    );
    for row in ["50.0%  handle (app/x.py:3)", "30.0%  render (app/page.py:3)", "20.0%  total (app/x.py:9)"] {
        assert!(page.contains(row), "{page}");
    }
    // fg-record writes the whole path of own files.
    let page = report(&[], b"<module> (/srv/app.py);get (shop/api.py) 50\n<module> (/srv/app.py) 30\n");
    assert!(page.contains("<module>  get (shop/api.py) 62.5%, itself 37.5%"), "{page}");
}

/// Functions that call each other are named once on a path, and no share is above the whole.
#[test]
fn mutual_recursion_is_shown_once() {
    let page = report(&[], b"app;main;a;b;a;b;a;b;x 60\napp;main;a;b;a;b;c 20\napp;main;b;a;memcpy 20\n");
    assert!(page.contains("hot path  app > main > a 80.0% > b > … > x 60.0%"), "{page}");
    let focused = report(&["--focus=^[ab]$"], b"app;main;a;b;a;b;x 60\napp;main;b;a;b;c 40\n");
    assert!(focused.contains("focus     2 functions in 100.0%, a 60.0%, b 40.0%"), "{focused}");
    assert!(focused.contains("60.0%  a > main > app") && focused.contains("40.0%  b > main > app"), "{focused}");
}
