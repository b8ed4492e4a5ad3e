//! Names in profiles are written by strangers: nothing in them runs, and every picture is well-formed.

use crate::browser::judge;
use crate::support::run;

pub const NAMES: [&[u8]; 12] = [
    b"</title></text></svg><script>window.ran=1</script>",
    b"]]><script>window.ran=1</script>",
    b"--><script>window.ran=1</script>",
    b"\" onload=\"window.ran=1",
    b"' onmouseover='window.ran=1",
    b"&lt;script&gt;&#0;&bogus;<!ENTITY x>",
    b"nul\0esc\x1b[31m del\x7f\tx",
    "bidi\u{202e}evil".as_bytes(),
    b"bad\xff\xfe\xc3(",
    "non\u{ffff}character\u{fffe}".as_bytes(),
    b"</metadata><script>window.ran=1</script>",
    b"javascript:window.ran=1",
];

fn stacks() -> Vec<u8> {
    let mut stacks = Vec::new();
    for name in NAMES {
        stacks.extend_from_slice(b"main;");
        stacks.extend_from_slice(name);
        stacks.extend_from_slice(b" 10\n");
    }
    stacks.extend_from_slice(b"main;");
    stacks.extend(std::iter::repeat_n(b"long::<&'a>"[..].iter(), 100_000).flatten());
    stacks.extend_from_slice(b" 10\n");
    stacks
}

const OPTIONS: [&str; 10] = [
    "--title=</text><script>window.ran=1</script>",
    "--subtitle=\"'<&>\u{1b}\n",
    "--countname=s\"><script>window.ran=1</script>",
    "--nametype=]]><script>window.ran=1</script>",
    "--notes=--><script>window.ran=1</script>--",
    "--fonttype=x\"/><script>window.ran=1</script>",
    "--width=1200",
    "--height=16",
    "--colors=java",
    "--minwidth=0",
];

#[test]
fn hostile_names_are_text_and_nothing_else() {
    judge(
        &stacks(),
        &OPTIONS,
        "",
        r##"
        equal(window.ran, undefined, "something ran");
        equal(groups().length, 19, "frames");
        check(frame("</title></text></svg><script>window.ran=1</script>"), "the name is shown as it is");
        check(frame("nul\\u{0}esc\\u{1b}[31m del\\u{7f}\tx"), "control characters are spelled out");
        check(frame("bidi\\u{202e}evil"), "so are bidirectional ones");
        for (const group of groups()) {
            group.querySelector("rect").dispatchEvent(new MouseEvent("mouseover", { bubbles: true }));
            click(group);
            click(byId("unzoom"));
        }
        type("script");
        equal(window.ran, undefined, "something ran later");
        equal(document.querySelectorAll("script").length, 3, "scripts");
    "##,
    );
}

#[test]
fn any_name_gives_well_formed_xml() {
    for arguments in [&OPTIONS[..], &["--inverted"], &["--reverse", "--hash"]] {
        let svg = run("fg-svg", arguments, &stacks()).ok().text();
        let document = roxmltree::Document::parse(&svg).unwrap();
        let scripts = document.descendants().filter(|node| node.has_tag_name("script")).count();
        assert_eq!(scripts, 2);
    }
}
