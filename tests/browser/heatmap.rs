//! Selecting in a heat map: the flame graph shows exactly the samples that the displayed fg-collapse command keeps.

use std::fmt::Write as _;
use std::path::Path;

use serde_json::json;

use crate::browser::Page;
use crate::hostile::NAMES;
use crate::support::{command, directory, run, run_command, tool};

const CASES: &str = include_str!("cases/heatmap.js");

/// Returns 30 s of samples: of `work` every 20 ms, of `band` every millisecond for 50 ms of every second, and of
/// `burst` in two threads every millisecond for 200 ms of every fifth second.
fn recording() -> String {
    let mut text = String::new();
    for ms in 0..30_000 {
        let (second, offset) = (5000 + ms / 1000, ms % 1000);
        let mut sample = |comm: &str, tid: u32, micros: u32, stack: &str| {
            let micros = offset * 1000 + micros;
            let _ = writeln!(text, "{comm} 100/{tid} [000] {second}.{micros:06}: 1000000 cpu-clock: ");
            for frame in stack.rsplit(';') {
                let _ = writeln!(text, "\t            7f00 {frame}+0x1 (/srv/app)");
            }
            text.push('\n');
        };
        if ms % 20 == 7 {
            sample("app", 100, 3, "main;work");
        }
        if (300..350).contains(&offset) {
            sample("app", 101, 500, "main;tick;band");
        }
        if ms / 1000 % 5 == 2 && (700..900).contains(&offset) {
            // The first of these is at the beginning of a cell.
            sample("app", 102, 0, "main;flush;burst");
            sample("pool", 103, 600, "main;flush;burst");
        }
    }
    text
}

fn page(recording: &[u8], options: &[&str]) -> Page {
    Page::html(run("fg-heatmap", options, recording).ok().text())
}

/// Returns the titles of the frames that fg-svg draws, sorted.
fn titles(folded: &[u8]) -> Vec<String> {
    titles_in_unit(folded, "samples")
}

fn titles_in_unit(folded: &[u8], unit: &str) -> Vec<String> {
    let svg = run("fg-svg", ["--minwidth=0", "--countname", unit], folded).ok().text();
    let document = roxmltree::Document::parse(&svg).unwrap();
    let frames = document.descendants().find(|node| node.attribute("id") == Some("frames")).unwrap();
    let title = |group: roxmltree::Node<'_, '_>| group.first_element_child().unwrap().text().unwrap().to_owned();
    let mut titles: Vec<String> = frames.children().filter(|node| node.is_element()).map(title).collect();
    titles.sort();
    titles
}

/// Returns the stacks of the samples that fg-collapse keeps with these options.
fn collapse(recording: &str, options: &str) -> Vec<u8> {
    let options = ["--weight", "samples"].into_iter().chain(options.split_whitespace());
    run("fg-collapse", options, recording.as_bytes()).ok().stdout
}

/// Returns the share of the stacks that contain a function.
fn share(folded: &[u8], function: &str) -> f64 {
    let weight = |line: &str| line.rsplit(' ').next().unwrap().parse::<f64>().unwrap();
    let text = std::str::from_utf8(folded).unwrap();
    let of_function: f64 = text.lines().filter(|line| line.contains(function)).map(weight).sum();
    of_function / text.lines().map(weight).sum::<f64>()
}

#[test]
fn dragging_selects_what_the_command_keeps() {
    let recording = recording();
    for (rows, kind, from, to, options, function) in [
        (50, "rectangle", (0, 15), (29, 16), "--time 5000,5030 --offset 0.3,0.34", "band"),
        (50, "span", (2, 35), (2, 44), "--time 5002.7,5002.9", "burst"),
        // From right to left, and from the lower to the higher row.
        (50, "rectangle", (22, 35), (22, 44), "--time 5022,5023 --offset 0.7,0.9", "burst"),
        (50, "span", (7, 35), (5, 44), "--time 5005.88,5007.72", "main"),
        (50, "rectangle", (12, 44), (2, 35), "--time 5002,5013 --offset 0.7,0.9", "main"),
        // Rows that do not begin at whole nanoseconds.
        (49, "rectangle", (3, 10), (9, 20), "--time 5003,5010 --offset 0.204081633,0.428571429", "main"),
        (7, "span", (1, 6), (4, 0), "--time 5001.857142858,5004.142857143", "main"),
    ] {
        let folded = collapse(&recording, options);
        assert!(share(&folded, function) >= 0.95, "{function} in {options}: {}", share(&folded, function));
        let command = format!("fg-collapse --weight samples {options}");
        let arguments = json!([kind, from, to, command, titles(&folded)]);
        let page = page(recording.as_bytes(), &[&format!("--rows={rows}")]);
        page.run_with(CASES, "selectsByDragging", &arguments);
    }
}

/// Runs a shell command in a directory, with the programs of the package on the `PATH`.
fn run_shell(folder: &Path, script: &str) -> Vec<u8> {
    let programs = Path::new(tool("fg-collapse")).parent().unwrap();
    let path = format!("{}:{}", programs.display(), std::env::var("PATH").unwrap());
    let mut shell = command("sh");
    shell.current_dir(folder).env("PATH", path).args(["-c", script]);
    run_command(shell, b"").ok().stdout
}

#[test]
fn the_command_repeats_options_and_selection() {
    // Two threads with one number, one after the other; two events; a name that a shell needs quoted.
    let mut text = recording().replace("[000] 5003", "[001] 5003").replace("pool 100/103", "it's a pool 100/103");
    for (ms, comm) in [(250, "app"), (250, "swapper"), (750, "late name")] {
        let tid = if comm == "swapper" { 0 } else { 101 };
        // Enough samples for frames that are wide enough to draw.
        for micros in 0..60 {
            let time = format!("{ms}{micros:03}: 2000000");
            let _ = writeln!(text, "{comm} {tid}/{tid} [002] 5010.{time} cycles:u: 7f00 only_{ms} (/x)");
            let _ = writeln!(text, "{comm} 100/{tid} [002] 5011.{time} cpu-clock: 7f00 other_{ms} (/x)");
        }
    }
    let folder = directory();
    std::fs::write(folder.path().join("samples"), &text).unwrap();
    for (options, fragment, expected) in [
        (&[][..], "", ""),
        (&[], "#thread=it's+a+pool+100/103", r"--comm 'it'\''s a pool' -p 100 -t 103"),
        (&[], "#thread=late+name+100/101&time=5009,5012", "--time 5009,5012 --comm 'late name' -p 100 -t 101"),
        (&["--event", "cycles"], "", "--event cycles"),
        (&["--event=all", "--no-idle"], "#time=5010,5012", "--time 5010,5012 --event all --no-idle"),
        (&["--cpu", "1-2"], "#offset=0.2,0.5", "--offset 0.2,0.5 --cpu 1-2"),
        (&["--comm", "app", "--comm", "late name"], "", "--comm app --comm 'late name'"),
        (&["--comm", "app", "-p1-100", "-t", "101"], "#thread=app+100/101", "--comm app -p 100 -t 101"),
        (&["-p1-100", "-t", "101,103"], "", "-p 1-100 -t 101,103"),
        (&["--weight=period"], "#time=5010,5012", "--time 5010,5012"),
        // The times of the first sample that is kept and of a nanosecond after the last one.
        (&["--time", "+2,+3"], "", "--time 5002.007003,5002.987003001"),
        (&["--time", "5002.5,5003.5"], "#time=5003,5009", "--time 5003,5003.487003001"),
        (&["--offset", "0.3,0.35"], "#time=5003,5009&offset=0.2,0.32", "--time 5003,5009 --offset 0.3,0.32"),
    ] {
        let (weight, unit) =
            if options.contains(&"--weight=period") { ("period", "ns") } else { ("samples", "samples") };
        let command = format!("fg-collapse --weight {weight} {expected}");
        let command = command.trim_end();
        let folded = run_shell(folder.path(), &format!("{command} samples"));
        assert!(!folded.is_empty(), "{command}");
        let page = page(text.as_bytes(), options).fragment(fragment);
        page.run_with(CASES, "showsCommandOfSelection", &json!([command, titles_in_unit(&folded, unit)]));
    }
}

#[test]
fn a_selection_without_samples_has_no_command() {
    let page_without_samples = page(recording().as_bytes(), &["--offset", "0.1,0.2"]);
    let page_without_samples = page_without_samples.fragment("#time=5002,5003&offset=0.5,0.6");
    page_without_samples.run_with(CASES, "showsNoCommand", &json!(["0"]));
    // perf writes some threads with a negative number, which fg-collapse cannot select.
    let page = page(b"x -1/-1 [000] 1.000100: cycles: 7f00 f (/x)\n", &[]).fragment("#thread=x+-1/-1");
    page.run_with(CASES, "showsNoCommand", &json!(["1"]));
}

#[test]
fn compares_two_selections_as_fg_diff_does() {
    let recording = recording();
    let folder = directory();
    let first = collapse(&recording, "--time 5002,5003");
    let second = collapse(&recording, "--time 5007,5008 -t 100-102");
    // As many samples, so that scaling rounds nothing.
    let second = [second, b"pool;main;flush;burst 200\n".to_vec()].concat();
    std::fs::write(folder.path().join("first"), first).unwrap();
    std::fs::write(folder.path().join("second"), second).unwrap();
    let mut diff = command(tool("fg-diff"));
    diff.args(["-n", "first", "second"]).current_dir(folder.path());
    let expected = titles(&run_command(diff, b"").ok().stdout);
    page(recording.as_bytes(), &[]).run_with(CASES, "comparesSelections", &json!([expected]));
}

#[test]
fn links_keys_and_the_list_of_threads_select() {
    let recording = recording();
    let folded = collapse(&recording, "--time 5002,5013 --offset 0.7,0.9 -t 103");
    let page = page(recording.as_bytes(), &[]).fragment("#time=5002,5013&offset=0.7,0.9&thread=pool+100/103");
    page.run_with(CASES, "selectsByLinkKeysAndThread", &json!([titles(&folded)]));
}

#[test]
fn shows_lanes_of_threads_above_the_graph() {
    page(recording().as_bytes(), &[]).run(CASES, "showsLanesAboveGraph");
}

#[test]
fn short_labels_of_lanes_keep_the_ids_of_threads() {
    let sample =
        |thread: u32| format!("tokio-rt-worker 100/{thread} 1.{thread:06}: 1 cpu-clock:\n\t1 main+0x0 (/app)\n\n");
    page((sample(51002) + &sample(51003)).as_bytes(), &[]).run(CASES, "keepsIdsOfThreads");
}

#[test]
fn the_scale_follows_the_length_of_a_recording() {
    for (seconds, cell, ticks) in [
        (0.004, "Samples per 20 µs", ["0 ms", "0.5 ms", "1.0 ms"]),
        (90.0, "Samples per 500 ms", ["0 s", "10 s", "20 s"]),
        (1800.0, "Samples per 10 s", ["0 min", "5 min", "10 min"]),
        (18000.0, "Samples per 2 min", ["0:00 h", "0:30 h", "1:00 h"]),
    ] {
        let samples: String = [100.0, 100.0 + seconds]
            .map(|time| format!("app 1/1 {time:.6}: 1 cpu-clock:\n\t1 main+0x0 (/app)\n\n"))
            .concat();
        page(samples.as_bytes(), &[]).run_with(CASES, "labelsScale", &json!([cell, ticks]));
    }
}

#[test]
fn a_phone_marks_several_times() {
    let samples: String =
        [1.7, 9.7].map(|time| format!("app 1/1 {time:.6}: 1 cpu-clock:\n\t1 main+0x0 (/app)\n\n")).concat();
    page(samples.as_bytes(), &[]).run(CASES, "marksTimesOnPhone");
}

#[test]
fn the_map_of_seconds_begins_at_the_first_sample() {
    let samples: String =
        [1.7, 9.2].map(|time| format!("app 1/1 {time:.6}: 1 cpu-clock:\n\t1 main+0x0 (/app)\n\n")).concat();
    page(samples.as_bytes(), &[]).run(CASES, "beginsAtFirstSample");
}

#[test]
fn threads_without_samples_have_no_lane() {
    let samples =
        b"app 1/1 1.000000: 5 cycles:\n\t1 main+0x0 (/app)\n\napp 2 2.000000: 0 cycles:\n\t1 f+0x0 (/app)\n\n";
    let page = page(samples, &["--weight", "period"]);
    page.run_with(CASES, "listsThreadsWithSamples", &json!([["app 1/1"]]));
}

#[test]
fn weights_have_the_unit_of_the_input() {
    let input = include_bytes!("../data/collapse/formats/go-trace.trace");
    let page = page(input, &["--event", "sync"]);
    page.run_with(CASES, "namesUnitOfInput", &json!(["28.1 ms", "fg-collapse --weight samples"]));
}

#[test]
fn shows_hostile_names_as_text() {
    let mut recording = Vec::new();
    // fg-heatmap takes text with a NUL for a binary file.
    for (number, name) in NAMES.iter().filter(|name| !name.contains(&0)).enumerate() {
        recording.extend_from_slice(name);
        recording.extend_from_slice(format!(" 1/{number} [000] 1.{number:06}: cycles:\n\t 7f00 ").as_bytes());
        recording.extend_from_slice(name);
        recording.extend_from_slice(b"+0x1 (/x)\n\n");
    }
    let page = page(&recording, &["--title=</title><script>window.ran=1</script>"]);
    page.fragment("#thread=%3Cscript%3E&time=%3Cscript%3E").run(CASES, "showsHostileNamesOfSamplesAsText");
}

#[test]
fn a_selection_at_the_edge_scrolls_a_wide_map() {
    let sample = |second: u32| format!("app 100/100 [000] {second}.5: 1 cpu-clock: 7f00 main+0x1 (/srv/app)\n\n");
    page((sample(5000) + &sample(6500)).as_bytes(), &[]).run(CASES, "scrollsAtEdge");
}

/// Returns two threads, of which one runs `parse`, `write`, nothing, and `parse` again.
fn recording_in_order() -> String {
    let mut text = String::new();
    for (thread, first, last, frames) in [
        ("app 100/100", 0, 30, "parse main"),
        ("app 100/100", 30, 50, "write main"),
        ("db 100/200", 20, 40, "query"),
        ("app 100/100", 150, 170, "parse main"),
    ] {
        for hundredth in first..last {
            let _ = writeln!(text, "{thread} [000] {}.{:02}0000: 1 cpu-clock: ", 5 + hundredth / 100, hundredth % 100);
            frames.split(' ').for_each(|frame| writeln!(text, "\t 7f00 {frame}+0x1 (/srv/app)").unwrap());
            text.push('\n');
        }
    }
    text
}

#[test]
fn draws_samples_in_the_order_of_time() {
    let recording = recording_in_order();
    page(recording.as_bytes(), &[]).run(CASES, "drawsFlameChart");
    page(recording.as_bytes(), &[]).fragment("#chart=yes&time=5.3,5.5").run(CASES, "drawsFlameChartOfSelection");
    page(recording.as_bytes(), &[]).run(CASES, "filtersFlameChart");
    page(recording.as_bytes(), &[]).narrow().run(CASES, "showsRowsOnPhone");
    let two = "#time=5,5.3&time2=5.3,5.5";
    page(recording.as_bytes(), &[]).fragment(two).run(CASES, "refusesFlameChartOfComparison");
}

#[test]
fn zooms_the_time_axis() {
    page(recording().as_bytes(), &[]).run(CASES, "zoomsTimeAxis");
}

#[test]
fn all_threads_have_a_lane() {
    let sample = |thread: u32| format!("app 100/{thread} 1.{thread:06}: 1 cpu-clock:\n\t1 main+0x0 (/app)\n\n");
    let samples: String = (100..130).map(sample).collect();
    page(samples.as_bytes(), &[]).run(CASES, "scrollsManyLanes");
}

#[test]
fn the_map_of_seconds_shows_the_part_on_the_axis() {
    page(recording().as_bytes(), &[]).fragment("#axis=5010,5015").run(CASES, "showsSecondsOfAxis");
}

#[test]
fn periods_have_the_unit_of_their_event() {
    for (event, total) in [("cpu-clock:u", "1.50 s"), ("task-clock", "1.50 s"), ("cpu-cycles", "1,500,000,000 cycles")]
    {
        let sample = |second: u32| format!("app 1/1 {second}.0: 750000000 {event}:\n\t1 main+0x0 (/app)\n\n");
        let page = page((sample(1) + &sample(2)).as_bytes(), &["--weight", "period"]);
        page.run_with(CASES, "countsInUnitOfEvent", &json!([total]));
    }
}

#[test]
fn the_picture_of_time_is_printed() {
    page(recording().as_bytes(), &[]).run(CASES, "printsPictureOfTime");
}
