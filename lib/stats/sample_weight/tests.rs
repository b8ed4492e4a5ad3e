use super::{WeightKind, WeightOptions, WeightSurvey};
use crate::profile::{Frames, Weight, Weights};

fn kind(sides: &[(u64, u64)]) -> WeightKind {
    let mut survey = WeightSurvey::default();
    for (before, after) in sides {
        let weights = Weights { before: Weight::new(*before), after: Weight::new(*after) };
        survey.add_sides(weights);
    }
    survey.kind(&Frames::new(), WeightOptions::default())
}

#[test]
fn the_common_divisor_is_a_sample() {
    assert_eq!(kind(&[(20, 30), (40, 10)]), WeightKind::Samples(Weight::new(10)));
    // One side has few stacks, or weights that happen to have another divisor.
    assert_eq!(kind(&[(101, 200), (303, 300), (7, 8)]), WeightKind::Samples(Weight::ONE));
    assert_eq!(kind(&[(200, 101), (300, 303), (8, 7)]), WeightKind::Samples(Weight::ONE));
    // One sample each of a fixed period.
    assert_eq!(kind(&[(3_009_027, 2_006_018), (0, 1_003_009)]), WeightKind::Samples(Weight::new(1_003_009)));
}

#[test]
fn periods_have_no_divisor() {
    // So few that a stack with half of the weight may be one.
    let sides = [(61_000_001, 79_000_001), (30_000_003, 24_000_003), (2_999_993, 3_000_029)];
    let WeightKind::Periods(sample) = kind(&sides) else { panic!("{:?}", kind(&sides)) };
    assert!((50_000_000..=79_000_001).contains(&(sample.millionths() / 1_000_000)), "{sample}");
    // perf begins with short periods.
    let periods = |number: u64| match number % 3 {
        0 => (3_000_017 + number * 7919, 0),
        1 => (0, 3_000_029 + number * 6007),
        _ => (3_000_017 + number * 7919, 6_000_058 + number * 12_014),
    };
    let mut sides: Vec<(u64, u64)> = (0..150).map(periods).collect();
    for (short, side) in [1, 7, 118, 2178, 40_254].into_iter().zip(&mut sides) {
        *side = (short, short + 3);
    }
    let WeightKind::Periods(sample) = kind(&sides) else { panic!("{:?}", kind(&sides)) };
    assert!((2_500_000..=3_700_000).contains(&(sample.millionths() / 1_000_000)), "{sample}");
    // Of stacks that vary little, each has many samples.
    let sides = [
        (301_000_001, 302_000_003),
        (400_000_003, 1_203_000_011),
        (200_000_023, 199_000_029),
        (330_000_007, 336_000_001),
        (270_000_011, 266_000_017),
    ];
    let WeightKind::Periods(sample) = kind(&sides) else { panic!("{:?}", kind(&sides)) };
    assert!((1_990_000..=5_000_000).contains(&(sample.millionths() / 1_000_000)), "{sample}");
    // The periods of a rarer event, and the half of a recording.
    let sides: Vec<(u64, u64)> =
        (0..150).step_by(2).map(periods).map(|(before, after)| (before / 500, after / 500)).collect();
    assert!(matches!(kind(&sides), WeightKind::LikelySamples(_)), "{:?}", kind(&sides));
}

#[test]
fn counts_of_long_runs_vary_little() {
    let counts = |scale: u64| {
        let stacks = (0..24).map(|n: u64| {
            let count = 2000 + n * 613;
            (count, count * scale + n * 7919 % 11 * (count * scale * (1 + scale)).isqrt() / 9)
        });
        stacks.collect::<Vec<_>>()
    };
    for scale in [1, 3] {
        let mut sides = counts(scale);
        assert_eq!(kind(&sides), WeightKind::LargeCounts(Weight::ONE), "{sides:?}");
        // Some have grown, or are new.
        sides[3].1 *= 3;
        sides.extend([(0, 9000), (30_000, 80_000)]);
        assert_eq!(kind(&sides), WeightKind::LargeCounts(Weight::ONE));
        // Of a program that varies.
        let varying: Vec<(u64, u64)> =
            sides.iter().map(|(before, after)| (*before, after + before % 7 * after / 100)).collect();
        assert_eq!(kind(&varying), WeightKind::LargeCounts(Weight::ONE), "{varying:?}");
    }
    // Larger ones, and smaller ones of which none is small.
    let large = [(20_113, 20_240), (47_093, 46_871), (33_870, 33_702), (89_991, 90_317), (61_003, 61_250)];
    assert_eq!(kind(&large), WeightKind::LargeCounts(Weight::ONE));
    let smaller = (0..25_u64)
        .map(|n| (300 + n * 40, n * 7919 % 11))
        .map(|(count, part)| (count, count + part * count.isqrt() / 5));
    let smaller: Vec<(u64, u64)> = smaller.collect();
    assert_eq!(kind(&smaller), WeightKind::LargeCounts(Weight::ONE));
    let varying: Vec<(u64, u64)> = (0..25).map(|n| (300 + n * 40, 300 + n * 40 + n * 7919 % 1500)).collect();
    assert_eq!(kind(&varying), WeightKind::LikelySamples(Weight::new(300)));
    // So few that all of them but one are alike.
    let few = [(30_011, 30_101), (20_017, 60_043), (25_033, 24_970)];
    assert_eq!(kind(&few), WeightKind::LargeCounts(Weight::ONE));
    let periods: Vec<(u64, u64)> = (0..45).map(|n: u64| (n % 3 * 5003, n % 5 * 4999)).collect();
    assert!(matches!(kind(&periods), WeightKind::LikelySamples(_)), "{:?}", kind(&periods));
}

#[test]
fn only_counts_differ_as_much_whatever_their_size() {
    // Quantiles of the normal distribution, in an order that has nothing to do with the sizes.
    let quantiles = [-1.6, 0.3, 0.9, -0.5, 1.3, -0.1, 0.5, -0.9, 0.1, 1.6, -0.3, -1.3];
    let stacks = |count: usize, largest: f64, noise: &dyn Fn(f64) -> f64| {
        let stack = |number: usize| {
            let size = 300.0 * (largest / 300.0_f64).powf(number as f64 / count as f64);
            (size as u64, (size + quantiles[number * 5 % quantiles.len()] * noise(size)) as u64)
        };
        (0..count).map(stack).collect::<Vec<_>>()
    };
    let as_counts = |size: f64| (2.0 * size).sqrt();
    assert_eq!(kind(&stacks(60, 30_000.0, &as_counts)), WeightKind::Samples(Weight::ONE));
    // Durations that vary by a part of their size, about as much as counts.
    assert_eq!(kind(&stacks(60, 30_000.0, &|size| 0.03 * size)), WeightKind::LargeCounts(Weight::ONE));
    // Too few, or too much of one size to tell.
    assert_eq!(kind(&stacks(18, 30_000.0, &as_counts)), WeightKind::LargeCounts(Weight::ONE));
    assert_eq!(kind(&stacks(60, 600.0, &as_counts)), WeightKind::LargeCounts(Weight::ONE));
}

#[test]
fn counts_have_small_weights() {
    let sides: Vec<(u64, u64)> = (0..60).map(|n: u64| (1 + n.pow(3) / 40, 2 + n.pow(3) / 40)).collect();
    assert_eq!(kind(&sides), WeightKind::Samples(Weight::ONE));
    assert_eq!(kind(&[(5000, 5051), (4000, 4900), (1000, 149)]), WeightKind::LargeCounts(Weight::ONE));
    assert_eq!(kind(&[(5000, 5051), (4000, 4900), (10, 14), (9, 12), (1, 0)]), WeightKind::Samples(Weight::ONE));
}

/// Durations of a few functions in milliseconds have no weight that is too large for a number of samples.
#[test]
fn few_weights_prove_no_samples() {
    let durations =
        [(912, 905), (301, 310), (244, 240), (1502, 1180), (730, 742), (402, 398), (2210, 2195), (655, 671)];
    assert_eq!(kind(&durations), WeightKind::LargeCounts(Weight::ONE));
    assert_eq!(kind(&[&durations[..], &[(11, 13)]].concat()), WeightKind::Samples(Weight::ONE));
}

#[test]
fn a_unit_of_time_is_that_of_durations() {
    let mut survey = WeightSurvey::default();
    for (before, after) in [(5, 7), (30, 31), (12, 0)] {
        survey.add_sides(Weights { before: Weight::new(before), after: Weight::new(after) });
    }
    let kind = |options: WeightOptions, unit| survey.kind(&Frames::new(), options.with_unit(unit));
    for (unit, is_time) in
        [("ms", true), ("MS", true), ("seconds", true), ("µs", true), ("samples", false), ("bytes", false)]
    {
        let expected = if is_time { WeightKind::Durations } else { WeightKind::Samples(Weight::ONE) };
        assert_eq!(kind(WeightOptions::default(), Some(unit)), expected, "{unit}");
    }
    let mut survey_of_samples = WeightSurvey::default();
    let mut survey_of_steps = WeightSurvey::default();
    for (before, after) in [(5, 7), (30, 31), (12, 0)] {
        let sides = |unit: u64| Weights { before: Weight::new(before * unit), after: Weight::new(after * unit) };
        survey_of_samples.add_sides(sides(1_001_001));
        survey_of_steps.add_sides(sides(10));
    }
    let options = WeightOptions::default().with_unit(Some("ns"));
    assert_eq!(survey_of_samples.kind(&Frames::new(), options), WeightKind::Samples(Weight::new(1_001_001)));
    assert_eq!(survey_of_steps.kind(&Frames::new(), options), WeightKind::Durations);
    let per_sample = Some(Weight::new(10));
    assert_eq!(
        kind(WeightOptions { per_sample, ..WeightOptions::default() }, Some("ms")),
        WeightKind::Samples(Weight::new(10))
    );
    assert_eq!(kind(WeightOptions { exact: true, ..WeightOptions::default() }, Some("ms")), WeightKind::Exact);
}

#[test]
fn equal_large_counts_are_exact() {
    let mut sides = vec![(7_200_018, 7_344_018), (1_000_003, 1_000_003), (50_001, 50_001), (12, 12)];
    assert_eq!(kind(&sides), WeightKind::Exact);
    sides[1].1 += 1;
    assert_ne!(kind(&sides), WeightKind::Exact);
}

#[test]
fn large_weights_may_be_durations() {
    let sides: Vec<(u64, u64)> = (0..30).map(|n| (1000 + n * 35, 1001 + n * 45 + n % 2 * 240)).collect();
    assert_eq!(kind(&sides), WeightKind::LargeCounts(Weight::ONE));
    let sides: Vec<(u64, u64)> = (0..30).map(|n| (1000 + n * 35, 1001 + n * 45 * (n % 3))).collect();
    assert!(matches!(kind(&sides), WeightKind::LikelySamples(_)));
}
