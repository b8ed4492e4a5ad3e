//! The line that shows how far a benchmark is.

use super::Options;
use super::recorder::Run;
use super::verdict::{LARGEST_POSSIBLE, Verdict};
use crate::diagnostics::plural;

/// Describes how far a benchmark is, in a line that fits a terminal.
pub(super) fn describe(options: &Options, run: &Run<'_>) -> String {
    let (done, elapsed) = (run.number - 1, run.start.elapsed().as_secs());
    let far = match options.pairs {
        Some(pairs) => format!("{done} of {}, {elapsed} s", plural(pairs.into(), "pair")),
        None => {
            let most = options.max_time.as_secs();
            format!("{}, {elapsed} s of {most} s at most", plural(done.into(), "pair"))
        }
    };
    let state = if run.state.is_empty() { String::new() } else { format!("; {}", run.state) };
    format!("{far}, {} runs{state}", run.side.name())
}

/// Describes what a verdict leaves open.
pub(super) fn describe_open(verdict: &Verdict) -> String {
    match verdict.possible_growth < LARGEST_POSSIBLE {
        true => format!("growth up to {:.1}% possible", verdict.possible_growth),
        false => "any growth possible".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use std::time::{Duration, Instant};

    use super::describe;
    use crate::bench::recorder::Run;
    use crate::bench::{Measure, Options, Side, Sides};

    #[test]
    fn describes_pairs_time_and_state() {
        let mut options = Options {
            commands: Sides::default(),
            measure: Measure::Output(String::new()),
            folder: "runs".into(),
            max_time: Duration::from_secs(120),
            timeout: None,
            pairs: None,
            min_growth: 2.0,
            weights: crate::stats::sample_weight::WeightOptions::default(),
            exact_names: false,
            seed: 1,
        };
        let mut run = Run { side: Side::After, number: 7, start: Instant::now(), state: "" };
        assert_eq!(describe(&options, &run), "6 pairs, 0 s of 120 s at most, after runs");
        run.state = "growth up to 3.4% possible";
        assert!(describe(&options, &run).ends_with(" at most, after runs; growth up to 3.4% possible"));
        options.pairs = Some(9);
        assert!(describe(&options, &run).starts_with("6 of 9 pairs, 0 s, after runs;"));
    }
}
