//! fg-heatmap: the page as text. Tests in a browser are in tests/browser.

use crate::support::{Outcome, run};

fn heatmap(options: &[&str], text: &str) -> Outcome {
    run("fg-heatmap", options, text.as_bytes())
}

fn recording(samples: u32) -> String {
    let sample = |at: u32| {
        format!(
            "c{} {} [000] {}.{:06}: cycles:\n\t 7f00 f{} (/x)\n\n",
            at % 7,
            at % 7,
            1000 + at / 5000,
            at % 50,
            at % 911
        )
    };
    (0..samples).map(sample).collect()
}

#[test]
fn output_does_not_depend_on_threads_or_order() {
    let text = recording(60_000);
    let reference = heatmap(&["-n1"], &text).ok().stdout;
    for threads in ["-n2", "-n5"] {
        assert!(heatmap(&[threads], &text).ok().stdout == reference, "{threads}");
    }
    let mut samples: Vec<&str> = text.split_inclusive("\n\n").collect();
    samples.reverse();
    let backwards = samples.concat();
    assert!(heatmap(&[], &backwards).ok().stdout == reference);
}

#[test]
fn reports_samples_without_a_time() {
    let untimed = "c 1 cycles:\n\t 7f00 f (/x)\n\n";
    for (text, message) in [
        ("main 1\n".to_owned(), "no sample has a time; use perf.data, perf script text or another input with times"),
        (untimed.to_owned(), "no sample has a time; use perf.data, perf script text or another input with times"),
        (
            format!("{}c 1 41000.0: cycles:\n\t 7f00 f (/x)\n\n", recording(1)),
            "the samples span 40000 seconds, but at most 32000 can be drawn; select some with --time",
        ),
    ] {
        let outcome = heatmap(&[], &text);
        assert_eq!((outcome.code(), outcome.stdout.len()), (1, 0), "{outcome:?}");
        assert_eq!(outcome.stderr, format!("fg-heatmap: {message}\n"));
    }
    let some = heatmap(&[], &format!("{}{untimed}", recording(3))).ok();
    assert_eq!(some.stderr, "fg-heatmap: 1 sample without a time left out\n");
    let lost = heatmap(&[], &format!("{}  0/0 [000] 12.0: PERF_RECORD_LOST lost 2\n\n", recording(3))).ok();
    assert_eq!(lost.stderr, "fg-heatmap: 2 samples lost while recording, shown as [lost] in a profile\n");
}

#[test]
fn selects_the_same_samples_as_fg_collapse() {
    let text = recording(20_000);
    for options in
        [&["--comm", "c3"][..], &["-t", "3"], &["--time", "1001,1002", "--offset", "0,0.00002"], &["--no-idle"]]
    {
        let folded = run("fg-collapse", options, text.as_bytes()).ok().text();
        let total: u64 = folded.lines().map(|line| line.rsplit(' ').next().unwrap().parse::<u64>().unwrap()).sum();
        let page = heatmap(options, &text).ok().text();
        assert!(page.contains(&format!("data-whole=\"{total}\"")), "{options:?}");
    }
}
