//! Other views of the same profile: callers, callees, without some frames, sorted, turned.

use crate::browser::judge;

const STACKS: &[u8] =
    b"main;parse;read 30\nmain;parse;scan;next 20\nmain;write;read 10\nmain;write 40\nmain;walk;walk;walk;read 20\nidle 80\n";

#[test]
fn callers_of_a_function_stand_on_it() {
    judge(
        STACKS,
        &[],
        "",
        r##"
        frame("read").focus();
        key("c");
        equal(title(frame("read")), "read (60 samples, 100.00%)", "all of it together");
        equal(title(frame("parse")), "parse (30 samples, 50.00%)", "a caller");
        equal(groups().filter(group => title(group).startsWith("main (")).length, 3, "each caller's own caller");
        check(!frame("idle"), "nothing else");
        equal(text("changes"), "callers of read", "told");
        const link = location.hash;
        key("Escape");
        check(frame("idle") && text("changes") === "", "back");
        location.hash = link;
        await until(() => text("changes") === "callers of read", "the link");
        key("Escape");
        frame("walk").focus();
        key("c");
        equal(title(frame("all")), "all (20 samples, 100%)", "recursion counts once");
    "##,
    );
}

#[test]
fn what_a_function_calls_is_put_together_and_recursion_counts_once() {
    judge(
        STACKS,
        &[],
        "",
        r##"
        frame("walk").focus();
        key("e");
        equal(groups().filter(group => title(group) === "walk (20 samples, 100.00%)").length, 3, "as deep as it recurs");
        equal(title(frame("all")), "all (20 samples, 100%)", "counted once");
        key("r");
        equal(groups().filter(group => title(group).startsWith("walk (")).length, 1, "recursion merged");
        equal(title(frame("read")), "read (20 samples, 100.00%)", "with what it calls");
        equal(text("changes"), "callees of walk · recursion merged", "told");
    "##,
    );
}

#[test]
fn a_function_stands_between_its_callers_and_what_it_calls() {
    judge(
        b"main;a;f;x 3\nmain;a;f;x;g 2\nmain;b;f;y 4\nmain;b;f 1\nmain;f;f;x 6\nz 80\n",
        &[],
        "",
        r##"
        const top = group => rect(group).top, all = name => groups().filter(group => title(group).startsWith(`${name} (`));
        frame("f").focus();
        key("b");
        equal(all("f").length, 2, "the function once, and where it calls itself");
        equal(title(frame("f")), "f (16 samples, 100.00%)", "all of it, recursion once");
        equal(title(frame("x")), "x (5 samples, 31.25%)", "what it calls, all together");
        equal(title(frame("b")), "b (5 samples, 31.25%)", "a caller");
        check(top(frame("x")) < top(frame("f")) && top(frame("b")) > top(frame("f")), "callers beneath it");
        equal(rect(frame("a")).left, rect(frame("f")).left, "callers begin where it does");
        check(frame("f").matches(".pivot"), "it stands out");
        equal(all("main").length, 3, "each caller's own caller");
        check(top(frame("main")) >= top(frame("b")), "further down");
        check(!frame("z") && !frame("all"), "nothing else");
        equal(text("changes"), "callers and callees of f", "told");
        frame("b").focus();
        check(text("details").endsWith("31.25% of what it calls"), `details: ${text("details")}`);
        const before = width("x");
        click(frame("b"));
        equal(width("b"), width("f"), "a caller over the whole width");
        equal(all("main").length, 1, "with its callers alone");
        equal(width("x"), before, "the other half is as it was");
        const link = location.hash;
        key("ArrowUp");
        equal(title(document.activeElement).split(" ")[0], "f", "the arrows go on to the function");
        key("ArrowUp");
        check(top(document.activeElement) < top(frame("f")), "and past it");
        key("Escape");
        check(all("main").length === 3 && !shown(byId("unzoom")), "back to the whole");
        key("i");
        check(top(frame("x")) > top(frame("f")) && top(frame("b")) < top(frame("f")), "turned, callers above");
        key("Escape");
        check(frame("z"), "back to everything");
        location.hash = link;
        await until(() => all("main").length === 1 && width("b") === width("f"), "the link");
        let copied = "";
        Object.defineProperty(navigator, "clipboard", { value: { writeText: async text => { copied = text; } } });
        frame("main").focus();
        key("Y");
        await until(() => copied === "main;b;f", "a caller's stack is root first");
    "##,
    );
}

#[test]
fn a_caller_is_not_taken_for_a_callee_of_the_same_name() {
    judge(
        b"x;f;x 5\nx;f 5\n",
        &[],
        "",
        r##"
        frame("f").focus();
        key("b");
        const [callee, caller] = groups().filter(group => title(group).startsWith("x (")).sort((a, b) => rect(a).top - rect(b).top);
        click(caller);
        const link = location.hash;
        key("Escape");
        click(groups().find(group => title(group) === title(callee)));
        check(location.hash !== link, "links of their own");
        location.hash = link;
        await until(() => groups().filter(group => title(group).startsWith("x (")).every(group => !group.matches(".parent")), "back");
        equal(groups().length, 3, "the caller is zoomed to, the callee as before");
    "##,
    );
}

#[test]
fn hidden_and_chosen_frames_change_the_shares() {
    judge(
        STACKS,
        &[],
        "",
        r##"
        frame("idle").focus();
        key("h");
        check(!frame("idle"), "hidden");
        equal(title(frame("main")), "main (120 samples, 100.00%)", "shares of the rest");
        frame("read").focus();
        key("o");
        equal(title(frame("all")), "all (60 samples, 100%)", "only what goes through it");
        equal(title(frame("parse")), "parse (30 samples, 50.00%)", "shares of that");
        equal(text("changes"), "only through read · without idle", "told");
        history.back();
        await until(() => frame("scan"), "a step back");
        check(!frame("idle"), "and no further");
    "##,
    );
}

#[test]
fn order_and_direction_can_be_changed() {
    judge(
        STACKS,
        &[],
        "",
        r##"
        const left = name => rect(frame(name)).left, top = name => rect(frame(name)).top;
        check(left("idle") < left("main"), "by name");
        key("s");
        check(left("main") < left("idle"), "by weight");
        check(top("main") < top("all"), "the root beneath");
        click(frame("write"));
        key("i");
        check(top("main") > top("all"), "the root on top");
        equal(width("write"), width("all"), "the zoom stays");
        equal(text("changes"), "by weight", "told");
    "##,
    );
}

#[test]
fn the_arrows_go_from_frame_to_frame() {
    judge(
        STACKS,
        &[],
        "",
        r##"
        const at = () => title(document.activeElement).split(" ")[0];
        click(frame("all"));
        for (const [arrow, name] of [["Up", "main"], ["Up", "parse"], ["Right", "walk"], ["Right", "write"], ["Left", "walk"],
            ["Down", "main"], ["Left", "idle"], ["Left", "idle"], ["Down", "all"], ["Down", "all"]]) {
            key(`Arrow${arrow}`);
            equal(at(), name, arrow);
        }
        equal(svg.querySelectorAll("#frames > g[tabindex='0']").length, 1, "one stop for the Tab key");
    "##,
    );
}

#[test]
fn the_sheet_lists_and_does_everything() {
    judge(
        STACKS,
        &[],
        "",
        r##"
        let copied = "";
        Object.defineProperty(navigator, "clipboard", { value: { writeText: async text => { copied = text; } } });
        const rows = () => [...svg.querySelectorAll(".menu button")];
        key("?");
        check(rows().length > 5, "without a frame");
        check(!rows().some(row => row.textContent.includes("{}")), "no gaps");
        key("Escape");
        equal(rows().length, 0, "closed");
        frame("scan").focus();
        key("?");
        equal(document.activeElement, rows()[0], "the focus is in it");
        click(rows().find(row => row.textContent.includes("copy the stack of scan")));
        await until(() => copied !== "", "the copy");
        equal(copied, "main;parse;scan", "the stack");
        equal(rows().length, 0, "closed after it");
        key("y");
        await until(() => copied === "scan", "the name");
        click(byId("menu"));
        click(rows().find(row => row.textContent.includes("turn upside down")));
        check(rect(frame("main")).top > rect(frame("all")).top, "done");
    "##,
    );
}

#[test]
fn a_differential_picture_is_coloured_alike_still_and_live() {
    let stacks = b"main;f;g 10 30\nmain;f;h 20 10\nmain;i 70 60\nmain;gone 9 0\n";
    for arguments in [&["--width", "1200"][..], &["--width", "1200", "--negate", "--delta", "self"]] {
        let still = crate::support::run("fg-svg", arguments, stacks).ok().text();
        let fill = |name: &str| {
            let (_, rest) = still.split_once(&format!("<title>{name} (")).unwrap();
            let hex = &rest.split_once("fill=\"#").unwrap().1[..6];
            let part = |at: usize| u8::from_str_radix(&hex[at..at + 2], 16).unwrap();
            format!("rgb({}, {}, {})", part(0), part(2), part(4))
        };
        let test = format!(
            r##"
            check(byId("legend").textContent.includes("grew"), "the legend");
            check(!frame("gone"), "what vanished has no width");
            const fill = name => getComputedStyle(frame(name).querySelector("rect")).fill;
            equal(fill("g"), "{}", "what grew, or shrank");
            equal(fill("h"), "{}", "what shrank, or grew");
            equal(fill("main"), "{}", "their caller");
            check(/; [+-]\d/.test(title(frame("g"))), "the change is told");
        "##,
            fill("g"),
            fill("h"),
            fill("main")
        );
        judge(stacks, arguments, "", &test);
    }
}

#[test]
fn the_live_picture_is_the_still_one() {
    let stacks = b"main;a::b::parse;read_[k] 30\nmain;a::b::parse 3\n[lost] 2\nmain;[off-cpu] 7.25\nx;y;z 1000\n";
    for arguments in [
        &["--width", "1200"][..],
        &["--width", "900", "--inverted", "--colors", "java", "--factor", "2.5"],
        &["--width", "1200", "--colordiffusion"],
    ] {
        let still = crate::support::run("fg-svg", arguments, stacks).ok().text();
        let document = roxmltree::Document::parse(&still).unwrap();
        let frames = document.descendants().find(|node| node.attribute("id") == Some("frames")).unwrap();
        let mut expected = String::new();
        for group in frames.children().filter(|node| node.is_element()) {
            let part = |name: &str| group.children().find(|node| node.has_tag_name(name));
            let rect = part("rect").unwrap();
            let place = |name: &str| rect.attribute(name).unwrap();
            let title = part("title").unwrap().text().unwrap();
            let (x, y, width, fill) = (place("x"), place("y"), place("width"), place("fill"));
            expected.push_str(&format!("{title}|{fill}|{x}|{y}|{width}\n"));
        }
        assert!(!expected.contains(['`', '\\', '$']));
        judge(stacks, arguments, "", &format!(
            "const still = `{expected}`.trimEnd().split('\\n').sort();
            const hex = colour => '#' + colour.match(/\\d+/g).map(part => Number(part).toString(16).padStart(2, '0')).join('');
const live = groups().map(group => {{
                const at = name => group.querySelector('rect').getAttribute(name);
                return [title(group), hex(at('fill')), at('x'), at('y'), at('width')].join('|');
            }}).sort();
            equal(live.length, still.length, 'frames');
            live.forEach((line, frame) => {{
                const [here, there] = [line, still[frame]].map(line => line.split('|'));
                equal(here.slice(0, 2).join(), there.slice(0, 2).join(), 'title and colour');
                here.slice(2).forEach((place, i) => check(Math.abs(place - there[i + 2]) < 0.11, `${{line}} at ${{still[frame]}}`));
            }});"
        ));
    }
}

#[test]
fn names_with_attributes_keep_them_and_links_are_followed() {
    let folder = crate::support::directory();
    let file = folder.path().join("names");
    std::fs::write(&file, "parse\thref=#there\tclass=own\nidle\ttitle=nothing to do\n").unwrap();
    judge(
        STACKS,
        &["--nameattr", file.to_str().unwrap()],
        "",
        r##"
        const link = svg.querySelector("#frames > a"), click = options =>
            link.dispatchEvent(new MouseEvent("click", { bubbles: true, cancelable: true, ...options }));
        check(title(link).startsWith("parse (") && link.matches(".own"), "the link");
        equal(svg.querySelectorAll("a").length, 1, "once");
        check(frame("idle") === undefined && groups().some(group => title(group) === "nothing to do"), "the title");
        check(click({}), "a click follows it");
        const before = link.getBoundingClientRect().width;
        check(!click({ ctrlKey: true }), "with Ctrl it is ours");
        check(svg.querySelector("#frames > a").getBoundingClientRect().width > before, "and zooms");
    "##,
    );
}

#[test]
fn a_link_to_what_is_not_there_any_more_says_so() {
    judge(
        STACKS,
        &[],
        "#zoom=1a2b.3c4d",
        r##"
        equal(text("changes"), "The link leads to a frame that is not in this graph", "a frame");
        click(frame("main"));
        equal(text("changes"), "", "until something is done");
        for (const kind of ["callers", "callees", "between", "only"]) {
            location.hash = `#${kind}=gone&search=read`;
            await until(() => text("matched") && text("changes"), kind);
            equal(text("changes"), "The link leads to a frame that is not in this graph", kind);
            check(frame("idle") && frame("main"), "and all is shown");
            location.hash = "#sort=weight";
            await until(() => text("changes") === "by weight", "another link");
        }
        click(frame("write"));
        const link = location.hash;
        location.hash = "";
        await until(() => frame("idle"), "the whole");
        location.hash = link;
        await until(() => width("write") === width("all"), "a frame that is there");
        equal(text("changes"), "by weight", "is not complained of");
    "##,
    );
}
