//! Examples and sections of fg-svg's man page.

use fgkit::cli::{Entries, Section};

/// Examples for each group of options.
pub const EXAMPLES: Entries = &[
    ("fg-record -- ./app | fg-svg > flame.svg", "Record a program, and draw where it spends its time:"),
    ("fg-diff -n before.folded after.folded | fg-svg > diff.svg", "Draw the difference between two profiles:"),
    (
        "fg-csv diff.folded > chances.csv; fg-svg --chances chances.csv diff.folded > diff.svg",
        "Draw a difference, with what may be noise in grey:",
    ),
    ("fg-svg --title 'Bytes allocated' --countname bytes heap.folded > heap.svg", "Set the title and the unit:"),
    (
        "fg-svg --width 1600 --fontsize 10 --minwidth 0.5% app.folded > flame.svg",
        "Draw small text, and no frames below half a percent:",
    ),
    ("fg-svg -c rust --bgcolors '#ffffff' -o flame.svg app.folded", "Colour frames by kind, on white:"),
    ("fg-svg --reverse --inverted app.folded > callers.svg", "Show who calls the heaviest functions:"),
    ("fg-svg --plain app.folded | rsvg-convert > flame.png", "Convert the graph to a PNG file:"),
];

/// The man page's section about the viewer.
const VIEWER: Entries = &[
    (
        "Click, Enter",
        "Zoom to a frame. Frames that are then wide enough are drawn, too. Keys act on the frame under the pointer, or \
         else on the one with the focus.",
    ),
    ("Right click, long press", "Open the menu of a frame. It has the actions of the keys below."),
    (
        "Table",
        "Click a function to outline all its frames. Double-click or press Enter to see its callers and callees.",
    ),
    ("s", "Sandwich: show a function between its callers and its callees, with all its occurrences merged."),
    ("b, c", "Show only the callers or the callees of a function."),
    (
        "f, i",
        "Focus: keep only the stacks with a function. Ignore: drop them. Percentages are of the stacks that remain.",
    ),
    ("h", "Hide the frames of a function. Their callees move to their callers."),
    ("a", "Highlight all frames of a function."),
    ("y, Y", "Copy the name of a frame, or its whole stack."),
    (
        "/, Ctrl-F, F3",
        "Search, ignoring case, for a text or, if no name contains it, a regular expression. Frames that are not drawn are \
         searched, too.",
    ),
    (
        "n, N",
        "Go to the next or previous match, and zoom to it if it is too narrow. In the search field: Enter, \
         Shift-Enter.",
    ),
    ("r", "Merge recursive calls, or separate them again."),
    ("v", "Reverse stacks, as --reverse does: the functions with self weight first, each with its callers."),
    ("w", "Sort by weight, the default, or by name. The default of a flame chart is the order of time."),
    (
        "o",
        "Charge the self weight of the runtime (standard libraries, kernel, interpreters) to the functions that called it, \
         or undo that. \"No runtime\" above the table does the same.",
    ),
    (
        "e",
        "Unfold all chains of runtime frames, or fold them again. A chain is four or more frames of the standard library, \
         or of a scheduler such as tokio, each of which calls only the next; it is drawn as one frame. A click unfolds one \
         chain.",
    ),
    ("u", "Move the root to the bottom, or back to the top."),
    ("t", "Show or hide the table of functions."),
    ("d", "In a differential graph, show the profile before, the one after, or the difference."),
    ("C", "Copy the table of functions as CSV."),
    ("0", "Reset the zoom."),
    ("Arrows, Tab", "Select a frame: its caller, a callee or a neighbour."),
    ("Escape", "Close the menu, stop a long computation, clear the search, or remove the last filter."),
    (
        "Backspace, Back, Forward",
        "Go to the previous or the next view. The page's address contains the view after its `#`, which also selects \
         the view in a later graph of the profile.",
    ),
    ("?", "List the keys."),
];

/// The man page's section about the file of `--nameattr`.
const NAME_ATTRIBUTES: Entries = &[
    ("title", "Replaces the tooltip of the frame, which shows name, weight and percentage."),
    (
        "href, target",
        "Makes the frame a link, to an http, https, file, mailto or relative address. \
         A click follows the link, and Ctrl-click zooms.",
    ),
    ("id, class", "Attributes of the frame's SVG element."),
    (
        "g_extra, a_extra",
        "Further attributes, written as `key=\"value\"`: g_extra for a frame without a link, a_extra \
                          for one with a link.",
    ),
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

fn section(heading: &'static str, text: &'static str, entries: Entries) -> Section {
    Section { heading, text, entries: entries.to_vec() }
}

/// Returns the sections that only this man page has.
pub fn sections() -> Vec<Section> {
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
