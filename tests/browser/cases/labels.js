// @ts-check
// Labels of frames.

function fitsLabelsIntoFrames() {
    const labelled = getFrames().filter(frame => frame.querySelector("text"));
    check(labelled.length > 5, `${labelled.length} labels`);
    /** @param {Element} frame */
    const getLabel = frame => /** @type {SVGTextElement} */ (getElement("text", frame));
    for (const frame of labelled) {
        const { width } = getRect(frame).getBBox(), length = getLabel(frame).getComputedTextLength();
        check(length <= width - 3, `${getTitle(frame)}: ${length} in ${width}`);
    }
    /** @param {string} name */
    const getLabelOf = name => getLabel(getFrame(name)).textContent;
    check(getLabelOf("another::function::in::namespaces").endsWith("namespaces"), "the function remains");
    check(/^i+$/.test(getLabelOf("iiiiiiiiiiiiii")), "a name of narrow letters fits");
    check(/^W+…$/.test(getLabelOf("WWWWWWWWWWWWWW")), "a name of wide letters is cut");
}

function leavesOutLabelsOfFewLetters() {
    const labels = getFrames().map(frame => frame.querySelector("text")?.textContent ?? "").filter(Boolean);
    const cut = labels.filter(label => label.endsWith("…"));
    check(cut.length > 1 && cut.every(label => label.length > 4), `labels: ${labels.join(" ")}`);
    check(labels.length < getFrames().length, "some frames have no label");
}

function keepsBeginningOfLabels() {
    const label = getElement("text", getFrame("a::function::in::namespaces")).textContent;
    check(/^a::f.*…$/.test(label), label);
}

/**
 * Compares labels with those that `lib/svg/label.rs` makes.
 *
 * @param {[name: string, room: number, label: string][]} labels `room` is the number of characters that fit
 */
function cutsLabelsAsStaticGraph(labels) {
    check(labels.length > 0, "no labels");
    for (const [name, room, expected] of labels) {
        const label = fitLabel(name, text => [...text].length <= room);
        equal(room < 3 ? "" : label, expected, `${name} in ${room}`);
    }
}

function namesLibrariesWithSourceLines() {
    equalLists(getTexts("#legend span"), ["Self", "app25.0 %", "std, libc75.0 %"], "the legend");
    equalLists(getFunctions(), ["malloc:3329", "main:9", "app"], "the table has names with lines, but no files");
    check(getRow("malloc:./malloc/malloc.c:3329"), "its rows say the whole name");
    click(getRow("main:own.c:9"));
    equal(getTexts(".det .full").join(), "main:own.c:9", "the details, too");
}
