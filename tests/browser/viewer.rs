//! What a reader does: pointing, zooming, searching, sharing a link.

use crate::browser::{judge, judge_page, script};
use crate::support::run;

const STACKS: &[u8] = b"main;parse;read 30\nmain;parse;scan;next 20\nmain;write;read 10\nmain;write 40\nidle 100\n";

#[test]
fn the_picture_is_there_and_fills_the_window() {
    judge(
        STACKS,
        &[],
        "",
        r##"
        equal(groups().length, 9, "frames");
        equal(svg.querySelectorAll("#frames").length, 1, "the still frames are gone");
        equal(title(frame("all")), "all (200 samples, 100%)", "root");
        equal(title(frame("parse")), "parse (50 samples, 25.00%)", "title");
        equal(width("all"), innerWidth - 20, "the root's width");
        equal(width("idle"), Math.round((innerWidth - 20) / 2), "half the weight, half the width");
        equal(frame("idle").querySelector("text").textContent, "idle", "label");
        check(rect(frame("main")).top < rect(frame("all")).top, "callers stand beneath");
        check(!shown(byId("unzoom")), "nothing to reset");
    "##,
    );
}

#[test]
fn pointing_at_a_frame_tells_about_it() {
    judge(
        STACKS,
        &[],
        "",
        r##"
        frame("write").querySelector("rect").dispatchEvent(new MouseEvent("mouseover", { bubbles: true }));
        equal(text("details"), "Function: write (50 samples, 25.00%) · self 20.00% · 50.00% of its caller", "details");
        svg.style.width = "300px";
        window.dispatchEvent(new Event("resize"));
        equal(width("all"), 280, "a narrow window");
        equal(text("details"), "Function: write (50 samples, 25.00%)", "what there is room for");
        svg.style.width = "";
        byId("frames").dispatchEvent(new MouseEvent("mouseleave"));
        equal(text("details"), "", "details without a frame");
    "##,
    );
}

#[test]
fn a_click_zooms_and_reset_returns() {
    judge(
        STACKS,
        &[],
        "",
        r##"
        const before = width("parse"), fill = name => getComputedStyle(frame(name).querySelector("rect")).fill;
        const colours = ["main", "parse"].map(fill), sum = colour => colour.match(/\d+/g).reduce((sum, part) => sum + Number(part), 0);
        click(frame("parse").querySelector("rect"));
        check(sum(fill("main")) > sum(colours[0]) + 50, "its callers are pale");
        equal(fill("parse"), colours[1], "it is not");
        equal(width("parse"), width("all"), "the frame over the whole width");
        equal(width("main"), width("all"), "what stands beneath it too");
        check(!frame("idle"), "what is not related is gone");
        equal(width("scan"), Math.round(0.4 * width("all")), "what it calls, in proportion");
        check(frame("main").matches(".parent"), "callers are told apart");
        check(shown(byId("unzoom")), "reset is there");
        frame("scan").querySelector("rect").dispatchEvent(new MouseEvent("mouseover", { bubbles: true }));
        check(text("details").endsWith(" · 40.00% of its caller · 40.00% of the view"), `details: ${text("details")}`);
        click(byId("unzoom"));
        equal(width("parse"), before, "reset");
        check(!shown(byId("unzoom")), "reset is gone");
        equal(location.hash, "", "the link is clean");
    "##,
    );
}

#[test]
fn the_keyboard_zooms_and_resets() {
    judge(
        STACKS,
        &[],
        "",
        r##"
        frame("write").focus();
        equal(text("details").split(" ")[1], "write", "details of the focused frame");
        key("Enter");
        equal(width("write"), width("all"), "Enter zooms");
        key("Escape");
        check(width("write") < width("all"), "Escape resets");
        check(key("F3").defaultPrevented && document.activeElement === svg.querySelector("input"), "F3 searches");
    "##,
    );
}

#[test]
fn a_finger_zooms_by_a_tap_and_asks_by_resting() {
    judge(
        STACKS,
        &[],
        "",
        r##"
        const touch = (kind, name) => frame(name).querySelector("rect")
            .dispatchEvent(new PointerEvent(kind, { bubbles: true, cancelable: true, pointerType: "touch" }));
        const before = width("write");
        touch("pointerdown", "write");
        await until(() => text("details").startsWith("Function: write (50 samples"), "details");
        check(!touch("contextmenu", "write"), "no menu of the browser over it");
        touch("pointerup", "write");
        click(frame("write").querySelector("rect"));
        equal(width("write"), before, "resting does not zoom");
        click(byId("menu"));
        check(svg.querySelector(".menu").textContent.includes("copy the name of write"), "it is chosen");
        key("Escape");
        touch("pointerdown", "parse");
        touch("pointercancel", "parse");
        await pause(700);
        check(!text("details").includes("parse"), "a finger that scrolls does not ask");
        touch("pointerdown", "parse");
        touch("pointerup", "parse");
        click(frame("parse").querySelector("rect"));
        equal(width("parse"), width("all"), "a tap zooms");
    "##,
    );
}

#[test]
fn a_link_leads_back() {
    judge(
        STACKS,
        &[],
        "",
        r##"
        click(frame("parse"));
        const first = location.hash;
        click(frame("scan"));
        check(first.length > 1 && location.hash !== first, "each zoom has its link");
        history.back();
        await until(() => width("parse") === width("all") && width("scan") < width("all"), "the way back");
        equal(location.hash, first, "and its link");
        history.forward();
        await until(() => width("scan") === width("all"), "the way forward");
        location.hash = "#zoom=nonsense&search=next";
        await until(() => text("matched") === "Matched: 10.00% · 1 frame", "the search of the link");
        equal(width("main"), Math.round(width("all") / 2), "an unknown place is the whole");
        location.hash = first;
        await until(() => width("parse") === width("all"), "the place of the link");
    "##,
    );
}

#[test]
fn a_link_leads_to_the_same_place_in_another_picture() {
    let more = b"a;b 9\nmain;aaa 50\nmain;parse 7\nmain;parse;read 35\nmain;parse;scan;next;deeper 20\nmain;write 40\n";
    for arguments in [&["--height", "20", "--color", "io"][..], &["--inverted", "--width", "800", "--fontsize", "10"]] {
        judge(
            more,
            arguments,
            "#zoom=tj01wf.162nk2d&search=next",
            r##"
            equal(width("parse"), width("all"), "the place of the link");
            equal(width("main"), width("all"), "on its callers");
            equal(text("matched"), "Matched in the view: 32.26% · 1 frame (1 in all)", "and its search");
        "##,
        );
    }
}

#[test]
fn labels_fit_into_their_frames() {
    judge(
        b"main;a_function_with_a_long_name 10\nmain;another::function::in::namespaces 12\nmain;WWWWWWWWWWWWWW 6\nmain;iiiiiiiiiiiiii 6\n\
            main;\xe4\xb8\xad\xe6\x96\x87\xe4\xb8\xad\xe6\x96\x87\xe4\xb8\xad\xe6\x96\x87 4\n",
        &["--width", "420"],
        "",
        r##"
        const labelled = groups().filter(group => group.querySelector("text"));
        check(labelled.length > 5, `${labelled.length} labels`);
        for (const group of labelled) {
            const { width } = group.querySelector("rect").getBBox(), length = group.querySelector("text").getComputedTextLength();
            check(length <= width - 3, `${title(group)}: ${length} in ${width}`);
        }
        const cut = group => group.querySelector("text").textContent;
        check(cut(frame("another::function::in::namespaces")).endsWith("namespaces"), "the function stays");
        check(/^i+$/.test(cut(frame("iiiiiiiiiiiiii"))), "narrow letters need less room");
        check(/^W+\.\.$/.test(cut(frame("WWWWWWWWWWWWWW"))), "than wide ones");
    "##,
    );
}

#[test]
fn labels_keep_their_beginning_if_asked_to() {
    let test = r##"const label = frame("a::function::in::namespaces").querySelector("text").textContent;
        check(/^a::f.*\.\.$/.test(label), label);"##;
    judge(b"main;a::function::in::namespaces 12\nmain;x 90\n", &["--truncate-text-right"], "", test);
}

#[test]
fn it_can_be_read_aloud() {
    judge(
        STACKS,
        &["--title", "Where the time goes"],
        "",
        r##"
        const frames = byId("frames");
        equal(frames.getAttribute("role"), "tree", "the frames' role");
        equal(frames.getAttribute("aria-label"), "Where the time goes", "and name");
        for (const [name, level] of [["all", "1"], ["main", "2"], ["parse", "3"]]) {
            equal(frame(name).getAttribute("role"), "treeitem", "a frame's role");
            equal(frame(name).getAttribute("aria-level"), level, "and level");
        }
        for (const id of ["unzoom", "search", "menu"]) equal(byId(id).getAttribute("role"), "button", id);
        check(byId("menu").getAttribute("tabindex") === "0", "buttons are stops of the Tab key");
        byId("menu").focus();
        key("Enter");
        check(svg.querySelector(".menu[role=dialog][aria-label]"), "a button by key, and a dialog with a name");
        key("Escape");
        check(svg.querySelector("input").getAttribute("aria-label"), "the search field's name");
    "##,
    );
}

#[test]
fn states_look_unlike_functions() {
    judge(
        b"main;read;[off-cpu] 30\nmain;work 20\n[lost] 9\n",
        &[],
        "",
        r##"
        const dashes = name => getComputedStyle(frame(name).querySelector("rect")).strokeDasharray;
        check(dashes("[off-cpu]") !== "none" && dashes("[lost]") !== "none", "states are outlined");
        equal(dashes("work"), "none", "functions are not");
        check(byId("legend").textContent.includes("[lost] 15.25%"), "the legend");
        svg.style.width = "220px", window.dispatchEvent(new Event("resize"));
        const [first, last] = [...svg.querySelectorAll("#legend text")].map(text => text.getBoundingClientRect());
        check(last.right <= 220 && last.top > first.bottom && last.bottom < rect(frame("[off-cpu]")).top, "in two lines");
    "##,
    );
}

#[test]
fn without_script_it_is_a_picture() {
    let svg = run("fg-svg", ["--width", "1200", "--color", "blue"], STACKS).ok().text();
    let address: String = svg.bytes().map(|byte| format!("%{byte:02x}")).collect();
    let fill = |name: &str| {
        let (_, rest) = svg.split_once(&format!("<title>{name} (")).unwrap();
        let attribute = |name: &str| rest.split_once(&format!(" {name}=\"")).unwrap().1.split_once('"').unwrap().0;
        let place = |name| attribute(name).parse::<f64>().unwrap();
        (place("x"), place("x") + place("width") - 3.0, place("y") + 3.0, attribute("fill"))
    };
    let mut points = String::new();
    for name in ["idle", "parse", "read"] {
        let (left, x, y, fill) = fill(name);
        points.push_str(&format!("[{left}, {x}, {y}, '{fill}', '{name}'],"));
    }
    let test = format!(
        "const image = document.querySelector('img'), canvas = document.createElement('canvas');
        await image.decode();
        [canvas.width, canvas.height] = [image.naturalWidth, image.naturalHeight];
        const context = canvas.getContext('2d');
        context.drawImage(image, 0, 0);
        for (const [left, x, y, fill, name] of [{points}]) {{
            const seen = [...context.getImageData(x, y, 1, 1).data].slice(0, 3);
            equal('#' + seen.map(part => part.toString(16).padStart(2, '0')).join(''), fill, name);
            // Its label, which is dark on light or light on dark.
            const row = context.getImageData(left + 2, y, 30, 10).data;
            const unlike = row.filter((part, at) => at % 4 === 1 && Math.abs(part - seen[1]) > 60).length;
            check(unlike > 20, `${{name}} has words: ${{unlike}}`);
        }}"
    );
    let page = format!(
        "<!DOCTYPE html><body><img src=\"data:image/svg+xml,{address}\"><script>{}</script></body>",
        script(&test)
    );
    judge_page("page.html", &page, "");
}

#[test]
fn several_graphs_in_one_page_do_not_disturb_each_other() {
    let graph = |title: &str| {
        let svg = run("fg-svg", ["--title", title, "--width", "500"], STACKS).ok().text();
        svg.split_once("?>").unwrap().1.to_owned()
    };
    let script = script(
        r##"
        const [first, second] = document.querySelectorAll("svg.flame-graph");
        const globals = Object.keys(window), bare = document.body.appendChild(document.createElement("iframe")).contentWindow;
        click(frame("parse", second));
        check(frame("idle", first), "the first is not zoomed");
        check(!frame("idle", second), "the second is");
        second.querySelector("#frames g").focus();
        key("f", { ctrlKey: true });
        equal(document.activeElement, second.querySelector("input"), "search in the one with the focus");
        click(frame("idle", first));
        check(!frame("idle", second) && !frame("main", first), "each its own zoom");
        const link = location.hash;
        location.hash = "";
        await until(() => frame("main", first) && frame("idle", second), "both reset");
        location.hash = link;
        await until(() => !frame("main", first) && !frame("idle", second), "one link for both");
        equal(typeof Picture, "undefined", "no globals");
        equal(globals.filter(name => !(name in bare)).join(), "", "nor is anything else of the window's theirs");
    "##,
    );
    let page = format!("<!DOCTYPE html><body>{}{}<script>{script}</script></body>", graph("one"), graph("two"));
    judge_page("page.html", &page, "");
}

#[test]
fn the_reader_need_not_wait_for_the_still_frames() {
    let svg = run("fg-svg", [""; 0], STACKS).ok().text();
    let (early, frames) = svg.split_once("<g id=\"frames\"").unwrap();
    // As if the rest of a large file were still on its way.
    let script = script(
        r##"
        equal(groups().length, 9, "frames");
        equal(width("idle"), Math.round((innerWidth - 20) / 2), "drawn");
    "##,
    );
    let page = format!("{early}<script><![CDATA[{script}]]></script></svg>");
    judge_page("early.svg", &page, "");
    assert!(frames.contains("<title>idle (100 samples, 50.00%)</title>"));
}

#[test]
fn labels_are_cut_as_in_the_still_picture() {
    let cases = include_str!("../data/svg/labels.tsv");
    assert!(!cases.contains(['`', '\\', '$']));
    let test = format!(
        "{}\nfor (const line of `{cases}`.trimEnd().split('\\n')) {{
            const [name, room, expected] = line.split('\\t');
            const cut = fitLabel(name, text => [...text].length <= Number(room));
            equal(cut.length > 2 || cut === name ? cut : '', expected, `${{name}} in ${{room}}`);
        }}",
        include_str!("../../lib/svg/viewer/label.js")
    );
    judge(STACKS, &[], "", &test);
}
