//! The map of seconds in a real browser: what is selected in it is what fg-collapse cuts out, to the sample.

use std::fmt::Write as _;

use crate::browser::{judge_page, script};
use crate::hostile::NAMES;
use crate::support::{directory, run, run_command, tool};

/// Half a minute of a program that works a little all the time, 50 ms of every second on something else, and every
/// five seconds 200 ms in two threads on a third thing.
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
            // The first of these is taken at the very beginning of a cell.
            sample("app", 102, 0, "main;flush;burst");
            sample("pool", 103, 600, "main;flush;burst");
        }
    }
    text
}

/// Runs a test in the page of a recording. It may use what is defined here.
fn judge(recording: &[u8], arguments: &[&str], fragment: &str, test: &str) {
    judge_map(&run("fg-heatmap", arguments, recording).ok().text(), fragment, test);
}

fn judge_map(page: &str, fragment: &str, test: &str) {
    let test = format!(
        r##"
        await until(() => document.body.matches(".ready"), "the page");
        const canvas = document.querySelector("canvas"), map = document.querySelector(".heatmap");
        const seconds = canvas.width, rows = canvas.height;
        function point(kind, [second, row], shiftKey = false) {{
            const box = canvas.getBoundingClientRect();
            const clientX = box.left + (second + 0.5) * box.width / seconds, clientY = box.bottom - (row + 0.5) * box.height / rows;
            canvas.dispatchEvent(new PointerEvent(kind, {{ clientX, clientY, shiftKey, button: 0, bubbles: true, cancelable: true }}));
        }}
        function drag(from, to, shiftKey) {{
            point("pointerdown", from, shiftKey);
            point("pointermove", to, shiftKey);
            point("pointerup", to, shiftKey);
        }}
        const lines = () => [...document.querySelectorAll("#selections p")];
        const commands = () => lines().map(line => line.querySelector("code").textContent);
        const titles = () => groups().map(title).sort();
        function same(actual, expected, what) {{
            equal(JSON.stringify(actual), JSON.stringify(expected), what);
        }}
        {test}
        "##
    );
    let page = page.replacen("</body>", &format!("<script>{}</script></body>", script(&test)), 1);
    judge_page("map.html", &page, fragment);
}

/// The titles of the frames in the picture of some stacks, in order.
fn titles(folded: &[u8]) -> Vec<String> {
    let svg = run("fg-svg", ["--minwidth=0"], folded).ok().text();
    let document = roxmltree::Document::parse(&svg).unwrap();
    let frames = document.descendants().find(|node| node.attribute("id") == Some("frames")).unwrap();
    let title = |group: roxmltree::Node<'_, '_>| group.first_element_child().unwrap().text().unwrap().to_owned();
    let mut titles: Vec<String> = frames.children().filter(|node| node.is_element()).map(title).collect();
    titles.sort();
    titles
}

fn cut(recording: &str, options: &str) -> Vec<u8> {
    let options = ["--weight", "samples"].into_iter().chain(options.split_whitespace());
    run("fg-collapse", options, recording.as_bytes()).ok().stdout
}

fn share(folded: &[u8], function: &str) -> f64 {
    let weight = |line: &str| line.rsplit(' ').next().unwrap().parse::<f64>().unwrap();
    let text = String::from_utf8(folded.to_vec()).unwrap();
    let of = |lines: &mut dyn Iterator<Item = &str>| lines.map(weight).sum::<f64>();
    of(&mut text.lines().filter(|line| line.contains(function))) / of(&mut text.lines())
}

#[test]
fn what_is_dragged_over_is_what_fg_collapse_cuts_out() {
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
        let folded = cut(&recording, options);
        assert!(share(&folded, function) >= 0.95, "{function} in {options}: {}", share(&folded, function));
        let test = format!(
            r##"
            byId("{kind}", document).click();
            drag([{}, {}], [{}, {}]);
            same(commands(), ["fg-collapse --weight samples {options}"], "the command");
            same(titles(), {:?}, "the frames");
            "##,
            from.0,
            from.1,
            to.0,
            to.1,
            titles(&folded),
        );
        judge(recording.as_bytes(), &[&format!("--rows={rows}")], "", &test);
    }
}

/// What `sh` makes of a command in a folder, with our programs.
fn shell(folder: &std::path::Path, command: &str) -> Vec<u8> {
    let programs = std::path::Path::new(tool("fg-collapse")).parent().unwrap();
    let mut shell = std::process::Command::new("sh");
    let path = format!("{}:{}", programs.display(), std::env::var("PATH").unwrap());
    shell.current_dir(folder).env("PATH", path).args(["-c", command]);
    run_command(shell, b"").ok().stdout
}

#[test]
fn the_command_takes_what_is_shown_whatever_was_chosen_before() {
    // Two threads of one number, one after the other; two events; a name for which shells need quotes.
    let mut text = recording().replace("[000] 5003", "[001] 5003").replace("pool 100/103", "it's a pool 100/103");
    for (ms, comm) in [(250, "app"), (250, "swapper"), (750, "late name")] {
        let tid = if comm == "swapper" { 0 } else { 101 };
        // So many that their frames are wide enough to be drawn.
        for micros in 0..60 {
            let place = format!("{ms}{micros:03}: 2000000");
            let _ = writeln!(text, "{comm} {tid}/{tid} [002] 5010.{place} cycles:u: 7f00 only_{ms} (/x)");
            let _ = writeln!(text, "{comm} 100/{tid} [002] 5011.{place} cpu-clock: 7f00 other_{ms} (/x)");
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
        // The times of the first sample that is left and of a nanosecond after the last one.
        (&["--time", "+2,+3"], "", "--time 5002.007003,5002.987003001"),
        (&["--time", "5002.5,5003.5"], "#time=5003,5009", "--time 5003,5003.487003001"),
        (&["--offset", "0.3,0.35"], "#time=5003,5009&offset=0.2,0.32", "--time 5003,5009 --offset 0.3,0.32"),
    ] {
        let page = run("fg-heatmap", options, text.as_bytes()).ok().text();
        let weight = if options.contains(&"--weight=period") { "period" } else { "samples" };
        let words = format!("fg-collapse --weight {weight} {expected}");
        let command = words.trim_end();
        let folded = shell(folder.path(), &format!("{command} samples"));
        assert!(!folded.is_empty(), "{command}");
        let test = format!(
            r##"
            same(commands(), [{command:?}], "the command");
            same(groups().map(title).map(text => text.replace("of the period", "samples")).sort(), {:?}, "the frames");
            "##,
            titles(&folded)
        );
        judge_map(&page, fragment, &test);
    }
}

#[test]
fn where_there_are_no_samples_there_is_no_command() {
    let test = r##"
        same(lines().map(line => line.dataset.count), ["0"], "samples");
        same(document.querySelectorAll("#selections code").length, 0, "commands");
        "##;
    judge(recording().as_bytes(), &["--offset", "0.1,0.2"], "#time=5002,5003&offset=0.5,0.6", test);
    // A thread that perf names with a number below zero cannot be asked for.
    let test = r##"
        same(lines().map(line => line.dataset.count), ["1"], "samples");
        same(document.querySelectorAll("#selections code").length, 0, "commands");
        "##;
    let odd = b"x -1/-1 [000] 1.000100: cycles: 7f00 f (/x)\n";
    judge(odd, &[], "#thread=x+-1/-1", test);
}

#[test]
fn two_selections_are_compared_as_fg_diff_does() {
    let recording = recording();
    let folder = directory();
    let (first, second) = (cut(&recording, "--time 5002,5003"), cut(&recording, "--time 5007,5008 -t 100-102"));
    // As many samples, so that scaling rounds nothing.
    let second = [second, b"pool;main;flush;burst 200\n".to_vec()].concat();
    std::fs::write(folder.path().join("first"), first).unwrap();
    std::fs::write(folder.path().join("second"), second).unwrap();
    let mut diff = std::process::Command::new(tool("fg-diff"));
    diff.args(["-n", "first", "second"]).current_dir(folder.path());
    let expected = titles(&run_command(diff, b"").ok().stdout);
    let test = format!(
        r##"
        drag([2, 0], [2, 49]);
        drag([7, 0], [7, 49], true);
        same(commands(), ["2", "7"].map(at => `fg-collapse --weight samples --time 500${{at}},500${{Number(at) + 1}}`), "commands");
        same(titles(), {expected:?}, "the difference");
        check(text("title").includes("red grew"), "told");
        drag([0, 0], [0, 49]);
        drag([2, 0], [2, 49], true);
        equal(title(frame("burst")), "burst (200 samples, 40.00%; +40.00%)", "what grew");
        equal(document.querySelectorAll("#frames").length, 1, "the still frames are gone");
        const [swap] = [...document.querySelectorAll("#selections button")].filter(button => button.textContent === "Swap");
        click(swap);
        check(!frame("burst"), "what is not there after is not drawn");
        check(location.hash.includes("time2="), "both in the link");
        key("Escape", {{}}, map);
        same(commands(), ["fg-collapse --weight samples"], "everything again");
        equal(location.hash, "", "no link");
        "##
    );
    judge(recording.as_bytes(), &[], "", &test);
}

#[test]
fn the_link_and_the_keyboard_select_and_one_thread_can_be_chosen() {
    let recording = recording();
    let folded = cut(&recording, "--time 5002,5013 --offset 0.7,0.9 -t 103");
    let test = format!(
        r##"
        const threads = byId("thread", document), link = location.hash;
        equal(threads.value, "pool 100/103", "the thread in the link");
        same(titles(), {:?}, "what the link selects");
        threads.value = "";
        threads.dispatchEvent(new Event("change"));
        equal(lines()[0].dataset.count, "1310", "of all threads");
        byId("rectangle", document).click();
        for (const name of ["ArrowRight", "ArrowUp", "Enter", "ArrowRight", "ArrowUp", "Enter"]) key(name, {{}}, map);
        same(commands(), ["fg-collapse --weight samples --time 5001,5003 --offset 0.02,0.06"], "by keys");
        equal(lines()[0].dataset.count, "4", "samples");
        check(text("cell", document).includes("second 2 (5002 on the clock), 40 to 60 ms: 1 samples"), text("cell", document));
        click(frame("main"));
        location.hash = link;
        await until(() => lines()[0].dataset.count === "600", "the link again");
        key("Enter", {{}}, map);
        key("Escape", {{}}, map);
        equal(lines()[0].dataset.count, "600", "what was begun and left changes nothing");
        location.hash = "#time=nonsense&offset=9,1&thread=nobody";
        await until(() => lines()[0].dataset.count === "5400", "what is no selection selects everything");
        "##,
        titles(&folded),
    );
    judge(recording.as_bytes(), &[], "#time=5002,5013&offset=0.7,0.9&thread=pool+100/103", &test);
}

#[test]
fn hostile_names_are_text_and_nothing_else() {
    let mut recording = Vec::new();
    // A text with a NUL is taken for a binary file.
    for (at, name) in NAMES.iter().filter(|name| !name.contains(&0)).enumerate() {
        recording.extend_from_slice(name);
        recording.extend_from_slice(format!(" 1/{at} [000] 1.{at:06}: cycles:\n\t 7f00 ").as_bytes());
        recording.extend_from_slice(name);
        recording.extend_from_slice(b"+0x1 (/x)\n\n");
    }
    judge(
        &recording,
        &["--title=</title><script>window.ran=1</script>"],
        "#thread=%3Cscript%3E&time=%3Cscript%3E",
        r##"
        equal(window.ran, undefined, "something ran");
        equal(lines()[0].dataset.count, "11", "samples");
        for (const option of byId("thread", document).options) {
            byId("thread", document).value = option.value;
            byId("thread", document).dispatchEvent(new Event("change"));
        }
        drag([0, 0], [0, 49]);
        equal(window.ran, undefined, "something ran later");
        equal(document.querySelectorAll("script").length, 3, "scripts");
        "##,
    );
}
