// What can be done, by key and from the sheet that lists it. An action that needs a frame gets the current one's box.

const ACTIONS = [
    { keys: ["Enter"], what: "zoom to {}", frame: true, run: (viewer, box) => viewer.open(box) },
    { keys: ["Escape"], what: "go back: the search, the zoom, then what else was changed", run: viewer => viewer.goBack() },
    { keys: ["ArrowUp", "ArrowDown", "ArrowLeft", "ArrowRight"], what: "go to a neighbour of {}", frame: true,
        run: (viewer, box, key) => viewer.goTo(viewer.picture.neighbour(box, key.slice(5).toLowerCase())) },
    { keys: ["/"], what: "search (also Ctrl-F)", run: viewer => viewer.openSearch() },
    { keys: ["n", "N"], what: "next, previous match", run: (viewer, box, key) => viewer.step(key === "n" ? 1 : -1) },
    { keys: ["c"], what: "only {} and its callers, all together", frame: true,
        run: (viewer, box) => viewer.lookAt("callers", box) },
    { keys: ["e"], what: "only {} and what it calls, all together", frame: true,
        run: (viewer, box) => viewer.lookAt("callees", box) },
    { keys: ["b"], what: "{} between its callers and what it calls", frame: true,
        run: (viewer, box) => viewer.lookAt("between", box) },
    { keys: ["o"], what: "only stacks through {}", frame: true, run: (viewer, box) => viewer.addTo("only", box) },
    { keys: ["h"], what: "hide stacks through {}", frame: true, run: (viewer, box) => viewer.addTo("hide", box) },
    { keys: ["r"], what: "merge recursion, or not", run: viewer => viewer.toggle("recursion", "merged") },
    { keys: ["s"], what: "sort by weight, or by name", run: viewer => viewer.toggle("sort", "weight") },
    { keys: ["i"], what: "turn upside down", run: viewer => viewer.toggle("turned", "yes") },
    { keys: ["y"], what: "copy the name of {}", frame: true, run: (viewer, box) => viewer.copy(viewer.nameOf(box)) },
    { keys: ["Y"], what: "copy the stack of {}", frame: true, run: (viewer, box) => viewer.copy(viewer.stackOf(box)) },
    { keys: ["?"], what: "show or hide this sheet", run: viewer => viewer.toggleSheet() },
];

const KEY_NAMES = { ArrowUp: "↑", ArrowDown: "↓", ArrowLeft: "←", ArrowRight: "→", Escape: "Esc" };

function html(name, attributes, ...children) {
    const made = document.createElementNS("http://www.w3.org/1999/xhtml", name);
    for (const key in attributes) made.setAttribute(key, attributes[key]);
    made.append(...children);
    return made;
}

// The sheet: a button for each action, with its keys.
function makeSheet(viewer, box) {
    const name = box ? viewer.nameOf(box) : "a frame";
    const shown = name.length > 40 ? `${name.slice(0, 38)}..` : name;
    const rows = ACTIONS.filter(action => box || !action.frame).map(action => {
        const keys = action.keys.map(key => html("kbd", {}, KEY_NAMES[key] ?? key));
        const button = html("button", { type: "button" }, html("span", {}, ...keys), action.what.replace("{}", () => shown));
        button.addEventListener("click", () => {
            viewer.closeSheet();
            action.run(viewer, box, action.keys[0]);
        });
        return button;
    });
    const hint = box ? [] : [html("p", {}, "Choose a frame, by a click or with Tab and the arrows, for more.")];
    return html("div", { class: "sheet", role: "dialog", "aria-label": "What can be done" }, ...rows, ...hint);
}
