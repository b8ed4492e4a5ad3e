//! Names that contain markup and scripts: they are shown as text, and every graph is well-formed XML.

use crate::browser::Page;
use crate::support::run;

const CASES: &str = include_str!("cases/hostile.js");

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
fn shows_hostile_names_as_text() {
    Page::graph(&stacks(), &OPTIONS).run(CASES, "showsHostileNamesAsText");
}

#[test]
fn a_long_name_hides_neither_the_graph_nor_the_facts() {
    Page::graph(format!("main;{} 10\nmain;other 9\n", "n".repeat(10_000)).as_bytes(), &[]).run(CASES, "fitsLongName");
}

#[test]
fn writes_well_formed_xml_for_any_name() {
    for options in [&OPTIONS[..], &["--inverted"], &["--reverse", "--hash"]] {
        let svg = run("fg-svg", options, &stacks()).ok().text();
        let document = roxmltree::Document::parse(&svg).unwrap();
        let scripts = document.descendants().filter(|node| node.has_tag_name("script")).count();
        assert_eq!(scripts, 2);
    }
}
