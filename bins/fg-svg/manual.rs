//! Examples and sections of fg-svg's man page.

use fgkit::cli::{Entries, Section};

/// Examples for each group of options.
pub const EXAMPLES: Entries = &[
    ("fg-record -- ./app | fg-svg > flame.svg", "Record a program, and draw where it spends its time:"),
    ("fg-diff -n before.folded after.folded | fg-svg > diff.svg", "Draw the difference between two profiles:"),
    ("fg-svg --title 'Bytes allocated' --countname bytes heap.folded > heap.svg", "Set the title and the unit:"),
    (
        "fg-svg --width 1600 --fontsize 10 --minwidth 0.5% app.folded > flame.svg",
        "Draw small text, and no frames below half a percent:",
    ),
    (
        "fg-svg -c rust --bgcolors '#ffffff' -o flame.svg app.folded",
        "Distinguish the program's own code from libraries, on white:",
    ),
    ("fg-svg --reverse --inverted app.folded > callers.svg", "Show who calls the heaviest functions:"),
    ("fg-svg --plain app.folded | rsvg-convert > flame.png", "Convert the graph to a PNG file:"),
];

/// The man page's section about the viewer.
const VIEWER: Entries = &[
    ("Click, Enter", "Zoom to a frame. Frames that are then wide enough are drawn, too."),
    ("Escape", "Go back: close the search, undo the zoom, then undo other changes."),
    ("Arrows, Tab", "Select a frame: its caller, a callee or a neighbour."),
    ("/, Ctrl-F, F3", "Search by a regular expression, ignoring case. Frames that are not drawn are searched, too."),
    (
        "n, N",
        "Go to the next or previous match, and zoom to it if it is too narrow. In the search field: Enter, \
         Shift-Enter.",
    ),
    ("c", "Show the selected function and its callers, with all its occurrences merged."),
    ("e", "Show the selected function and its callees, with all its occurrences merged."),
    ("b", "Show the selected function between its callers and its callees."),
    (
        "o, h",
        "Show only the stacks through the selected function, or hide them. Percentages are of the stacks that remain.",
    ),
    ("r", "Merge recursive calls, or separate them again."),
    ("s", "Sort by weight, or by name."),
    ("i", "Turn the graph upside down."),
    ("y, Y", "Copy the name of the frame, or its whole stack."),
    ("?", "List the keys. The Menu button lists them, too."),
    (
        "Back, Forward",
        "Go to the previous or next view. The page's address describes the view, also in a new drawing of the profile.",
    ),
];

/// The man page's section about the file of `--nameattr`.
const NAME_ATTRIBUTES: Entries = &[
    ("title", "Replaces the title, which shows name, weight and percentage."),
    (
        "href, target",
        "Makes the frame a link, to an http, https, file, mailto or relative address. \
         A click follows the link, and Ctrl-click zooms.",
    ),
    ("id, class", "Attributes of the frame's SVG element."),
    ("g_extra, a_extra", "Further attributes of a frame without or with a link, written as `key=\"value\"`."),
];

/// The man page's section about options of flamegraph.pl and inferno.
const COMPATIBILITY: Entries = &[
    ("--color, --no-sort, --no-javascript", "Aliases of --colors, --sorted and --plain."),
    (
        "--deterministic, --pretty-xml, --encoding",
        "Ignored: the output is always deterministic, and its encoding is UTF-8.",
    ),
    ("Abbreviations", "A long option can be shortened to any unambiguous prefix, like --inv."),
];

/// Returns the sections that only this man page has.
pub fn sections() -> Vec<Section> {
    let section = |heading, text, entries: Entries| Section { heading, text, entries: entries.to_vec() };
    vec![
        section("VIEWER", "In a browser, the graph reacts to these keys and clicks:", VIEWER),
        section(
            "NAME ATTRIBUTES",
            "Each line of a --nameattr file is the name of a frame, followed by fields `key=value`. Tabs separate \
             them. The keys are:",
            NAME_ATTRIBUTES,
        ),
        section(
            "COMPATIBILITY",
            "For scripts that call flamegraph.pl or inferno-flamegraph, fg-svg also accepts:",
            COMPATIBILITY,
        ),
    ]
}
