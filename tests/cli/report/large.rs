//! Weights near the largest that is read: products of them do not fit.

use super::report;

#[test]
fn the_largest_weights_are_compared() {
    let page = report(&[], b"app;x 1e32\napp;y 1e32\n");
    assert!(page.contains("50.0%  x") && page.contains("50.0%  y"), "{page}");
    let page = report(&[], b"app;main;malloc;brk 2e32\napp;main;main;y 1e32\n");
    assert!(page.contains("66.7%") && page.contains("33.3%"), "{page}");
    let page = report(&[], b"app;x 2e32 1\napp;y 1 2e32\n");
    assert!(page.contains("verdict"), "{page}");
    for options in [&["--focus=^main$"][..], &["--json"], &["--markdown", "--own=^y$"]] {
        report(options, b"app;main;memmove;z 2e32\napp;main;main;main;y 1e32\n");
    }
}
