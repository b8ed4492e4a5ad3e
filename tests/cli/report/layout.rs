//! The width of lines.

use super::report;

/// Wide characters take two columns, so a page of them is no wider than any other.
#[test]
fn wide_characters_fit_the_page() {
    let long = "文字列を結合する関数".repeat(9);
    let profile =
        format!("アプリ;主処理;{long};memmove 500\nアプリ;主処理;読み込み;read 300\nアプリ;主処理;計算 200\n");
    for options in [&[][..], &["--focus=主処理"]] {
        let page = report(options, profile.as_bytes());
        let columns = |line: &str| line.chars().map(|letter| 1 + usize::from(letter > '\u{2e80}')).sum::<usize>();
        let lines = page.lines().take_while(|line| *line != "look closer");
        assert!(lines.map(columns).all(|columns| columns <= 100), "{page}");
    }
}
