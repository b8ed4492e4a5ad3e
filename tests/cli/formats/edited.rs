//! Text of profilers as people hand it on: with numbers of lines, with blank lines between, with samples in one line.

use crate::support::run;

/// Two samples of perf, and two tasks of which one waits.
const PERF: &str = "\
app  1/2 [000] 10.000001:          3 cycles: 
\t    ffffffff8103d0ca write_msr+0xa ([kernel.kallsyms])
\t          401136 leaf(int)+0x1c (/srv/app)
\t          401170 main+0x10 (/srv/app)

app  1/2 [000] 10.000002:          4 cycles: 
\t          401140 other+0x1c (/srv/app)
\t          401170 main+0x10 (/srv/app)

";

#[test]
fn blanks_at_the_ends_of_lines_are_no_part_of_names() {
    let padded = PERF.replace('\n', "   \n");
    let outcome = run("fg-collapse", ["--strict"], padded.as_bytes()).ok();
    assert_eq!(outcome.text(), run("fg-collapse", [""; 0], PERF.as_bytes()).ok().text());
}

#[test]
fn samples_of_perf_that_cannot_be_told_from_each_other_are_refused() {
    let numbered: String = PERF.lines().zip(1..).map(|(line, number)| format!("{number:6}\t{line}\n")).collect();
    let samples: Vec<&str> = PERF.trim_end().split("\n\n").collect();
    let join =
        |separator: &str| samples.iter().map(|sample| sample.replace('\n', separator) + "\n").collect::<String>();
    let squeezed: String =
        join(" ").replace('\t', " ").split_inclusive([' ', '\n']).filter(|word| *word != " ").collect();
    let double = PERF.replace('\n', "\n\n");
    let number = "with a number before each line; give the lines without it";
    let joined = "with several frames on a line; give it with its line ends";
    let blank = "with a blank line behind each line; give it without them: sed 'n;d'";
    for (text, what) in [
        (numbered.clone(), number),
        (numbered.replace('\t', "  "), number),
        (join(" "), joined),
        (join(";"), joined),
        (squeezed, joined),
        (PERF.replace("10.000", "10,000"), "with a comma in its times; give it with a point"),
        (double.clone(), blank),
        (double.replace('\n', "\r\n"), blank),
    ] {
        for arguments in [&[][..], &["--format=perf-script"]] {
            let outcome = run("fg-collapse", arguments, text.as_bytes());
            assert_eq!((outcome.code(), outcome.text().as_str()), (1, ""), "{text}");
            assert_eq!(outcome.stderr, format!("fg-collapse: stdin: perf script text {what}\n"), "{text}");
        }
        assert_eq!(run("fg-heatmap", [""; 0], text.as_bytes()).code(), 1, "{text}");
    }
}

#[test]
fn stacks_with_weights_of_another_notation_are_malformed_at_the_start_too() {
    for (first, second) in [("1,234", "2,345,678"), ("1_234", "5_000"), ("1'234", "7'000"), ("٧7", "7٧")] {
        let text = format!("main;a;b {first}\nmain;c;d {second}\nmain;a 7\nmain;z 5\n");
        let outcome = run("fg-collapse", [""; 0], text.as_bytes()).ok();
        assert_eq!(outcome.text(), "main;a 7\nmain;z 5\n");
        let expected = "fg-collapse: stdin:1: expected a stack and, after the last space, its weight\n\
            fg-collapse: stdin:2: expected a stack and, after the last space, its weight\n\
            fg-collapse: skipped 2 malformed lines\n";
        assert_eq!(outcome.stderr, expected);
    }
}
