// @ts-check
// Selecting in a heat map.

/** @typedef {[column: number, row: number]} Cell a second, and a part of it */

const getCanvas = () => /** @type {HTMLCanvasElement} */ (document.querySelector(".seconds canvas"));
const getMap = () => getElement(".heatmap", document);
const pageIsReady = () => waitFor(() => document.body.matches(".ready"), "the page is ready");

/** @type {(kind: string, cell: Cell, shiftKey: boolean) => void} */
function sendPointerEvent(kind, [column, row], shiftKey) {
    const canvas = getCanvas(), { left, bottom, width, height } = canvas.getBoundingClientRect();
    const clientX = left + (column + 0.5) * width / canvas.width;
    const clientY = bottom - (row + 0.5) * height / canvas.height;
    const options = { clientX, clientY, shiftKey, button: 0, bubbles: true, cancelable: true };
    canvas.dispatchEvent(new PointerEvent(kind, options));
}

/** @type {(from: Cell, to: Cell, shiftKey?: boolean) => void} */
function drag(from, to, shiftKey = false) {
    sendPointerEvent("pointerdown", from, shiftKey);
    sendPointerEvent("pointermove", to, shiftKey);
    sendPointerEvent("pointerup", to, shiftKey);
}

/** Returns the lines that describe the selections. */
const getSelections = () => /** @type {HTMLElement[]} */ ([...document.querySelectorAll("#selections p")]);
const getCommands = () => getSelections().map(line => getElement("code", line).textContent);
const getSampleCounts = () => getSelections().map(line => line.dataset.count ?? "");
const getTitles = () => getFrames().map(getTitle).sort();

/** Shows the map of seconds, and chooses a kind of selection. @param {string} kind */
function chooseKind(kind) {
    click(getElement("[data-value=seconds]"));
    click(getElement(`[data-value=${kind}]`));
}

const getThreadList = () => /** @type {HTMLSelectElement} */ (document.querySelector("#thread"));

/** @param {string} thread */
function chooseThread(thread) {
    getThreadList().value = thread;
    getThreadList().dispatchEvent(new Event("change"));
}

/** @type {(kind: string, from: Cell, to: Cell, command: string, titles: string[]) => Promise<void>} */
async function selectsByDragging(kind, from, to, command, titles) {
    await pageIsReady();
    chooseKind(kind);
    drag(from, to);
    equalLists(getCommands(), [command], "the command");
    equalLists(getTitles(), titles, "the frames");
}

/** @type {(command: string, titles: string[]) => Promise<void>} */
async function showsCommandOfSelection(command, titles) {
    await pageIsReady();
    equalLists(getCommands(), [command], "the command");
    const actual = getFrames().map(getTitle).map(title => title.replace("events", "samples")).sort();
    equalLists(actual, titles, "the frames");
}

/** @param {string} samples number of selected samples */
async function showsNoCommand(samples) {
    await pageIsReady();
    equalLists(getSampleCounts(), [samples], "samples");
    equal(document.querySelectorAll("#selections code").length, 0, "commands");
}

/** @param {string[]} titles titles of the frames of the differential graph */
async function comparesSelections(titles) {
    await pageIsReady();
    chooseKind("span");
    drag([2, 0], [2, 49]);
    drag([7, 0], [7, 49], true);
    const commands = ["5002,5003", "5007,5008"].map(time => `fg-collapse --weight samples --time ${time}`);
    equalLists(getCommands(), commands, "commands");
    // Only the words for the change differ.
    const withoutShares = (/** @type {string} */ title) => title.split(", ")[0];
    equalLists(getTitles().map(withoutShares), titles.map(withoutShares), "the frames");
    equalLists(getChips().map(chip => chip.split(" ")[0]), ["Before", "After"], "both are filters");
    check(getText("legend").includes("Points of the total"), "the legend explains the colours");
    drag([0, 0], [0, 49]);
    drag([2, 0], [2, 49], true);
    equal(getTitle(getFrame("burst")), "burst (200 samples, 0 % → 40.0 % (new, +40.0 points))", "what grew");
    equal(document.querySelectorAll("#frames").length, 1, "the static frames are removed");
    const [swap] = [...document.querySelectorAll("#selections button")].filter(button => button.textContent === "Swap");
    click(swap);
    check(!hasFrame("burst"), "a function without weight has no frame");
    check(location.hash.includes("time2="), "both selections are in the link");
    pressKey("Escape", {}, getMap());
    equal(getChips().length, 1, "Escape removes the second selection first");
    pressKey("Escape", {}, getMap());
    equalLists(getCommands(), ["fg-collapse --weight samples"], "again, it selects everything");
    equal(location.hash, "", "no link");
}

/** @param {string[]} titles titles of the frames of the link's selection */
async function selectsByLinkKeysAndThread(titles) {
    await pageIsReady();
    const link = location.hash;
    equal(getThreadList().value, "pool 100/103", "the link's thread");
    equalLists(getTitles(), titles, "the link's frames");
    chooseThread("");
    equalLists(getSampleCounts(), ["1310"], "samples of all threads");
    chooseKind("rectangle");
    for (const key of ["ArrowRight", "ArrowUp", "Enter", "ArrowRight", "ArrowUp", "Enter"]) pressKey(key, {}, getMap());
    const command = "fg-collapse --weight samples --time 5001,5003 --offset 0.02,0.06";
    equalLists(getCommands(), [command], "the command after a selection by keys");
    equalLists(getSampleCounts(), ["4"], "samples after a selection by keys");
    const cell = getElement("#cell", document).textContent;
    equal(cell, "2.03 s – 2.05 s: 1 sample", "the cell under the cursor");
    click(getFrame("main"));
    location.hash = link;
    await waitFor(() => getSampleCounts()[0] === "600", "the link's selection");
    pressKey("Enter", {}, getMap());
    pressKey("Escape", {}, getMap());
    equalLists(getSampleCounts(), ["600"], "samples after a cancelled selection");
    location.hash = "#time=nonsense&offset=9,1&thread=nobody";
    await waitFor(() => getSampleCounts()[0] === "5400", "an invalid link selects everything");
}

async function showsHostileNamesOfSamplesAsText() {
    await pageIsReady();
    equal(getScriptTrace(), undefined, "a script in a name ran");
    equalLists(getSampleCounts(), ["11"], "samples");
    const threads = [...getThreadList().options].map(option => option.value);
    check(threads.length > 11, `${threads.length} threads`);
    threads.forEach(chooseThread);
    chooseKind("span");
    drag([0, 0], [0, 49]);
    equal(getScriptTrace(), undefined, "a script in a name ran after a selection");
    equal(document.querySelectorAll("script").length, 1, "number of script elements");
}

/** Sends a pointer event to the lanes. @type {(kind: string, share: number) => void} */
function pointAtLanes(kind, share) {
    const canvas = getElement(".lanes canvas"), { right, top } = canvas.getBoundingClientRect();
    // The labels of lanes are 160 pixels wide.
    const left = canvas.getBoundingClientRect().left + 160, clientX = left + share * (right - left);
    const options = { clientX, clientY: top + 5, button: 0, bubbles: true, cancelable: true };
    canvas.dispatchEvent(new PointerEvent(kind, options));
}

/** Returns the colours of the first lane. */
function getLaneColours() {
    const canvas = /** @type {HTMLCanvasElement} */ (document.querySelector(".lanes canvas"));
    const context = /** @type {CanvasRenderingContext2D} */ (canvas.getContext("2d"));
    const { data } = context.getImageData(0, 5, canvas.width, 1);
    return [...data].join();
}

async function showsLanesAboveGraph() {
    await pageIsReady();
    equal(getTexts("h1").join(), "Samples over time", "the title");
    const names = ["app 100/100", "app 100/101", "app 100/102", "pool 100/103"];
    equalLists(getTexts(".lanes title"), names, "a lane for each thread");
    equal(getTexts(".heat").join(), "Samples per 200 ms  108 samples", "the key of the colours");
    const { left, right, bottom } = getElement(".lanes canvas").getBoundingClientRect();
    check(left >= 0 && right <= innerWidth && right - left > 0.9 * innerWidth, "the lanes have the whole width");
    const visible = getFrames().filter(frame => getBounds(frame).width > 40 && getBounds(frame).bottom < innerHeight);
    check(visible.length > 6, `${visible.length} wide frames are in the window at first`);
    check(visible.every(frame => getBounds(frame).top > bottom), "below the lanes");
    // In the middle of cells: Firefox rounds positions to whole pixels.
    pointAtLanes("pointerdown", 0.1033);
    pointAtLanes("pointermove", 0.1967);
    equal(getText("cell"), "5.8 s – 6.0 s: 10 samples, 10 samples in app 100/100", "the cell under the pointer");
    pointAtLanes("pointerup", 0.1967);
    equalLists(getChips(), ["Time 3.00 s – 6.00 s"], "the filter has the time");
    click(getElement("[data-value=seconds]"));
    equalLists(getChips(), ["Time 3.00 s – 6.00 s"], "in both pictures");
    click(getElement("[data-value=lanes]"));
    const top = getBounds(getFrame("all")).top;
    check(top > bottom && top < innerHeight, "the graph of the selection is in the window");
    const before = getLaneColours();
    typePattern("burst");
    check(getLaneColours() !== before, "a search shows when a function ran");
    check(getTexts(".heat").join().startsWith("Matches per"), "and the key says so");
    click(getElement("[data-value=cpus]"));
    equalLists(getTexts(".lanes title"), ["CPU 0"], "a lane for each CPU");
    click(getElement("[data-value=lanes]"));
    click(getElement(".chip button"));
    equalLists(getSampleCounts(), ["5400"], "a button removes the filter");
}

async function keepsIdsOfThreads() {
    await pageIsReady();
    const getLabels = () => [...svg.querySelectorAll(".lanes text:has(title)")]
        .map(label => label.firstChild?.textContent);
    resize("400px");
    await waitFor(() => getLabels()[0]?.includes("…"), "the labels are shortened");
    equalLists(getLabels().map(String), ["tokio-rt… 51002", "tokio-rt… 51003"], "labels of a pool");
}

/** @type {(cell: string, ticks: string[]) => Promise<void>} */
async function labelsScale(cell, ticks) {
    await pageIsReady();
    check(getTexts(".heat").join().startsWith(`${cell} `), `the duration of a cell: ${getTexts(".heat")}`);
    const labels = [...svg.querySelectorAll(".lanes .tick + text")], texts = labels.map(label => label.textContent);
    equalLists(texts.slice(0, ticks.length), ticks, "the first ticks");
    let end = 0;
    for (const label of labels) {
        const { left, right } = label.getBoundingClientRect();
        check(left > end, `${label.textContent} does not touch its neighbour`);
        end = right;
    }
}

async function beginsAtFirstSample() {
    await pageIsReady();
    chooseKind("span");
    const { left } = getCanvas().getBoundingClientRect(), column = getCanvas().getBoundingClientRect().width / 9;
    const [first] = svg.querySelectorAll(".cells .tick + text");
    equalLists(getTexts(".cells .tick + text").slice(0, 2), ["0 s", "1 s"], "the scale begins at the first sample");
    const place = (Number(first.getAttribute("x")) - (getCanvas().getBoundingClientRect().left - left)) / column;
    check(Math.abs(place - 0.7) < 0.02, `which is late in its second: ${place}`);
    sendPointerEvent("pointermove", [0, 5], false);
    equal(getText("cell"), "Before the first sample", "nothing is before it");
    drag([0, 0], [0, 49]);
    equalLists(getChips(), ["Time 0 ms – 300 ms"], "a selection begins with it");
    check(decodeURIComponent(location.hash).includes("time=1.7,2"), `the link: ${location.hash}`);
    location.hash = "#time=0.5,1.2";
    await waitFor(() => getSampleCounts()[0] === "0", "a link to the time before it");
    equalLists(getChips(), ["Time 0 µs – 0 µs"], "no time is negative");
}

/** @param {string[]} threads */
async function listsThreadsWithSamples(threads) {
    await pageIsReady();
    equalLists(getTexts(".lanes title"), threads, "the lanes");
}

/** @type {(weight: string, command: string) => Promise<void>} */
async function namesUnitOfInput(weight, command) {
    await pageIsReady();
    equal(getTexts("#total").join(), weight, "the total in the unit of the input");
    check(getTexts(".heat").join().startsWith("Weight per "), `the key: ${getTexts(".heat")}`);
    location.hash = "#time=0,9999999999";
    await waitFor(() => getCommands().length > 0, "the command");
    check(getCommands().join().startsWith(command), `the command: ${getCommands()}`);
}

async function marksTimesOnPhone() {
    await pageIsReady();
    resize("400px");
    const getTimes = () => getTexts(".lanes .tick + text").join();
    await waitFor(() => getTimes() === "0 s,2 s,4 s,6 s,8 s", `times on the scale: ${getTimes()}`);
    equal(getTimes(), "0 s,2 s,4 s,6 s,8 s", "times on the scale");
}

async function scrollsAtEdge() {
    await pageIsReady();
    chooseKind("span");
    const scroller = getElement(".cells"), canvas = getCanvas();
    const { left, right, top } = scroller.getBoundingClientRect();
    check(canvas.getBoundingClientRect().width > 2 * (right - left), "the map is wider than the window");
    /** @type {(kind: string, clientX: number) => boolean} */
    const point = (kind, clientX) => canvas.dispatchEvent(new PointerEvent(kind,
        { clientX, clientY: top + 5, button: 0, bubbles: true, cancelable: true }));
    point("pointerdown", left + 100);
    point("pointermove", left + 200);
    equal(scroller.scrollLeft, 0, "a selection in the middle does not scroll");
    for (let step = 0; step < 20; step++) point("pointermove", right - 5);
    check(scroller.scrollLeft > 200, `a selection at the edge scrolls: ${scroller.scrollLeft}`);
    point("pointerup", right - 5);
    const [, length] = getNumbers(getChips().join());
    check(length > 0, `the selection is beyond the first window: ${getChips()}`);
}

async function zoomsTimeAxis() {
    await pageIsReady();
    const getScale = () => getTexts(".heat").join().replace(/ms.*/, "ms"), all = getScale();
    const getTicks = () => getTexts(".lanes .tick + text");
    equal(all, "Samples per 200 ms", "the scale of all");
    pointAtLanes("pointerdown", 0.1033);
    pointAtLanes("pointermove", 0.1967);
    pointAtLanes("pointerup", 0.1967);
    pressKey("+", {}, getMap());
    equal(getScale(), "Samples per 20 ms", "the selection has the whole width");
    equalLists(getChips().sort(), ["Axis 3.00 s – 6.00 s", "Time 3.00 s – 6.00 s"], "the part is a filter");
    equal(getTicks()[0], "3.0 s", "times are those since the first sample");
    equal(getSampleCounts().join(), "300", "the samples are those of the selection");
    pointAtLanes("pointerdown", 0.1);
    pointAtLanes("pointermove", 0.2);
    pointAtLanes("pointerup", 0.2);
    check(getChips().includes("Time 3.30 s – 3.62 s"), `a finer selection: ${getChips()}`);
    history.go(-2);
    await waitFor(() => getScale() === all, "Back returns");
    const canvas = getElement(".lanes canvas"), { left, top } = canvas.getBoundingClientRect();
    const wheel = new WheelEvent("wheel", { ctrlKey: true, deltaY: -100, clientX: left + 500, clientY: top + 5,
        bubbles: true, cancelable: true });
    for (let turn = 0; turn < 6; turn++) canvas.dispatchEvent(wheel);
    check(wheel.defaultPrevented && getScale() !== all, `the wheel zooms: ${getScale()}`);
    pressKey("-", {}, getMap());
    equal(getScale(), all, "a key shows all");
}

/** Returns the left edges of the frames of a function, in hundredths of the graph's width. @param {string} name */
const getPlaces = name => {
    const { left, width } = getBounds(getFrame("all"));
    const places = findFrames(name).map(frame => Math.round(100 * (getBounds(frame).left - left) / width));
    return places.sort((a, b) => a - b);
};
const getAxis = () => getTexts(".axis text");
const getLanes = () => getTexts("#frames > .lane");

async function drawsFlameChart() {
    await pageIsReady();
    equalLists(getLanes(), [], "the graph has no lanes");
    click(getButton("Flame chart"));
    equalLists(getLanes(), ["app 100/100", "db 100/200"], "a lane for each thread");
    // The samples of 1.69 s.
    equalLists(getPlaces("parse"), [0, 88], "parse runs at the start and at the end");
    equalLists(getPlaces("write"), [17], "write runs after it");
    equalLists(getPlaces("query"), [11], "another thread in between");
    equalLists(getPlaces("main"), [0, 88], "nothing is drawn while nothing runs");
    equal(getTitle(findFrames("write")[0]), "write (200 ms, 22.47%)", "a frame has a duration");
    equal(getTexts(".stat").join(), "1.69 s elapsed, 890 ms in 2 threads", "the header says what the sums are");
    check(/^0,0\.\d s,/.test(getAxis().join()), `the axis is time: ${getAxis()}`);
    const last = findFrames("parse").find(frame => getBounds(frame).left > getBounds(getFrame("write")).left);
    if (!last) throw new Error("parse does not run again");
    click(last);
    check(getAxis()[0].startsWith("1.5"), `the axis begins with the zoomed frame: ${getAxis()}`);
    const link = location.hash;
    click(getButton("Flame graph"));
    equalLists(getLanes(), [], "the graph of merged stacks");
    location.hash = link;
    await waitFor(() => getAxis()[0]?.startsWith("1.5"), "a link leads to this frame, not to the first");
}

async function drawsFlameChartOfSelection() {
    await pageIsReady();
    equalLists(getLanes(), ["app 100/100", "db 100/200"], "a lane for each thread");
    check(!hasFrame("parse"), "only the selected time");
    equalLists(getPlaces("write"), [0], "write has all of it");
    check(getAxis()[0].startsWith("300"), `times are those since the first sample: ${getAxis()}`);
    pressKey("v");
    check(getMessage().includes("order of time"), `a chart cannot be inverted: ${getMessage()}`);
    pointAt(getFrame("write"));
    pressKey("s");
    check(getChips().includes("Sandwich write"), `the sandwich of a frame: ${getChips()}`);
    click(getButton("Flame chart"));
    equalLists(getPlaces("write"), [0], "back in the order of time");
}

async function showsRowsOnPhone() {
    await pageIsReady();
    click(getButton("Flame chart"));
    Object.assign(svg.style, { width: "400px", height: "500px" });
    const { height } = getElement(".graph").getBoundingClientRect();
    check(height >= 200, `the graph has several rows: ${height}`);
    check(svg.scrollHeight > svg.clientHeight && getComputedStyle(svg).overflowY === "auto", "the page scrolls");
}

async function refusesFlameChartOfComparison() {
    await pageIsReady();
    equalLists(getChips(), ["Before 0 ms – 300 ms", "After 300 ms – 500 ms"], "two times are compared");
    click(getButton("Flame chart"));
    check(getMessage().includes("of one time"), `the page says why: ${getMessage()}`);
    equalLists(getLanes(), [], "the difference remains");
}

async function filtersFlameChart() {
    await pageIsReady();
    click(getButton("Flame chart"));
    pointAt(getFrame("write"));
    pressKey("i");
    equalLists(getPlaces("main"), [0, 88], "stacks are dropped");
    check(!hasFrame("write"), "write is dropped");
    pointAt(getFrame("main"));
    pressKey("h");
    check(!hasFrame("main") && getPlaces("parse").length === 2, "frames are hidden");
    chooseThread("db 100/200");
    equalLists(getTexts(".lane"), ["db 100/200"], "one thread");
}

async function scrollsManyLanes() {
    await pageIsReady();
    const names = Array.from({ length: 30 }, (_, index) => `app 100/${100 + index}`);
    equalLists(getTexts(".lanes title"), names, "a lane for each thread");
    const map = getElement(".heatmap"), { top, bottom } = map.getBoundingClientRect();
    check(map.scrollHeight > map.clientHeight + 100 && bottom - top < innerHeight / 3, "they scroll");
    const getTick = () => getElement(".lanes .tick + text").getBoundingClientRect();
    check(getTick().bottom <= bottom, "the times can be seen");
    map.scrollTop = 1e4;
    await waitFor(() => map.scrollTop > 100, "the end");
    check(getTick().bottom <= bottom && getTick().top > top, "the times stay");
    const canvas = getElement(".lanes canvas"), lanes = canvas.getBoundingClientRect();
    const clientX = lanes.right - 8, clientY = lanes.bottom - 8;
    canvas.dispatchEvent(new PointerEvent("pointermove", { clientX, clientY, bubbles: true }));
    check(getText("cell").includes("in app 100/129"), `the last lane: ${getText("cell")}`);
}

async function showsSecondsOfAxis() {
    await pageIsReady();
    chooseKind("span");
    equalLists(getChips(), ["Axis 9.99 s – 14.99 s"], "the part that is shown");
    const ticks = getTexts(".cells .tick + text");
    equalLists([ticks[0], ticks.at(-1) ?? ""], ["10 s", "14 s"], "the seconds");
    equal(getCanvas().width, 5, "a column for each");
    drag([1, 0], [2, 49]);
    equalLists(getChips(), ["Axis 9.99 s – 14.99 s", "Time 10.99 s – 12.99 s"], "the selection");
    const { left, right } = getCanvas().getBoundingClientRect(), column = (right - left) / 5;
    const outline = getElement(".cells .first").getBoundingClientRect();
    // Firefox counts the stroke.
    const offsets = [outline.left - left - column, outline.right - left - 3 * column];
    check(offsets.every(offset => Math.abs(offset) < column / 20), `its outline is off by ${offsets.join()} px`);
    click(getButton("×", getElement(".chip")));
    equal(getCanvas().width, 30, "all seconds");
}

/** @param {string} total */
async function countsInUnitOfEvent(total) {
    await pageIsReady();
    equal(getText("total"), total, "the total");
    pointAt(getFrame("main"));
    check(getTip().includes(total), `a card: ${getTip()}`);
}

async function printsPictureOfTime() {
    await pageIsReady();
    const rules = [...document.styleSheets].flatMap(sheet => [...sheet.cssRules])
        .filter(rule => rule instanceof CSSMediaRule && rule.media.mediaText === "print");
    const style = document.createElement("style");
    style.textContent = rules.flatMap(rule => [.../** @type {CSSMediaRule} */ (rule).cssRules])
        .map(rule => rule.cssText).join("\n");
    document.body.append(style);
    /** @param {string} selector */
    const isPrinted = selector => getElement(selector).getBoundingClientRect().height > 0;
    check(isPrinted(".lanes canvas") && isPrinted(".heat"), "the picture and its key are printed");
    check(!isPrinted(".timebar .seg") && !isPrinted(".bar"), "the tools are not");
}
