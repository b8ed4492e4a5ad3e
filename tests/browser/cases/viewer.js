// @ts-check
// Pointing, zooming, links, accessibility.

function drawsAllFrames() {
    equal(getFrames().length, 9, "number of frames");
    equal(svg.querySelectorAll("#frames").length, 1, "the static frames are removed");
    equal(getTitle(getFrame("all")), "all (200 samples, 100%)", "title of the root");
    equal(getTitle(getFrame("parse")), "parse (50 samples, 25.00%)", "title of a function");
    equal(getWidth("all"), innerWidth - 20, "width of the root");
    equal(getWidth("idle"), Math.round((innerWidth - 20) / 2), "width of half the weight");
    equal(getElement("text", getFrame("idle")).textContent, "idle", "label");
    check(getBounds(getFrame("main")).top < getBounds(getFrame("all")).top, "callers are below callees");
    check(!isVisible(byId("unzoom")), "no button to reset the zoom");
}

function describesFrameUnderPointer() {
    pointAt(getFrame("write"));
    const details = "Function: write (50 samples, 25.00%) · self 20.00% · 50.00% of its caller";
    equal(getText("details"), details, "details");
    resize("300px");
    equal(getWidth("all"), 280, "width of the root in a narrow window");
    equal(getText("details"), "Function: write (50 samples, 25.00%)", "details that fit a narrow window");
    resize("");
    byId("frames").dispatchEvent(new MouseEvent("mouseleave"));
    equal(getText("details"), "", "details without a frame");
}

function zoomsToClickedFrame() {
    /** @param {string} colour */
    const brightness = colour => getNumbers(colour).reduce((sum, channel) => sum + channel, 0);
    const widthBefore = getWidth("parse");
    const [mainBefore, parseBefore] = ["main", "parse"].map(name => getFill(getFrame(name)));
    click(getRect(getFrame("parse")));
    check(brightness(getFill(getFrame("main"))) > brightness(mainBefore) + 50, "callers are paler");
    equal(getFill(getFrame("parse")), parseBefore, "colour of the zoomed frame");
    equal(getWidth("parse"), getWidth("all"), "width of the zoomed frame");
    equal(getWidth("main"), getWidth("all"), "width of its caller");
    check(!hasFrame("idle"), "other frames are removed");
    equal(getWidth("scan"), Math.round(0.4 * getWidth("all")), "width of a callee");
    check(getFrame("main").matches(".parent"), "callers have a class");
    check(isVisible(byId("unzoom")), "a button resets the zoom");
    pointAt(getFrame("scan"));
    const details = getText("details");
    check(details.endsWith(" · 40.00% of its caller · 40.00% of the view"), `details: ${details}`);
    click(byId("unzoom"));
    equal(getWidth("parse"), widthBefore, "width after the reset");
    check(!isVisible(byId("unzoom")), "no button to reset the zoom again");
    equal(location.hash, "", "link after the reset");
}

function zoomsWithKeys() {
    getFrame("write").focus();
    equal(getText("details").split(" ")[1], "write", "details of the focused frame");
    pressKey("Enter");
    equal(getWidth("write"), getWidth("all"), "Enter zooms");
    pressKey("Escape");
    check(getWidth("write") < getWidth("all"), "Escape resets the zoom");
    check(pressKey("F3").defaultPrevented, "F3 is handled");
    equal(document.activeElement, getSearchField(), "F3 moves the focus to the search field");
}

async function describesTouchedFrame() {
    /** @type {(kind: string, name: string) => boolean} */
    const touch = (kind, name) => getRect(getFrame(name))
        .dispatchEvent(new PointerEvent(kind, { bubbles: true, cancelable: true, pointerType: "touch" }));
    const widthBefore = getWidth("write");
    touch("pointerdown", "write");
    await waitFor(() => getText("details").startsWith("Function: write (50 samples"), "details after a long touch");
    check(!touch("contextmenu", "write"), "the browser's menu is suppressed");
    touch("pointerup", "write");
    click(getRect(getFrame("write")));
    equal(getWidth("write"), widthBefore, "a long touch does not zoom");
    click(byId("menu"));
    const menu = getElement(".menu").textContent;
    check(menu.includes("copy the name of write"), "a long touch makes the frame the current one");
    pressKey("Escape");
    touch("pointerdown", "parse");
    touch("pointercancel", "parse");
    await sleep(700);
    check(!getText("details").includes("parse"), "a touch that scrolls shows no details");
    touch("pointerdown", "parse");
    touch("pointerup", "parse");
    click(getRect(getFrame("parse")));
    equal(getWidth("parse"), getWidth("all"), "a short touch zooms");
}

async function followsLinks() {
    click(getFrame("parse"));
    const first = location.hash;
    click(getFrame("scan"));
    check(first.length > 1 && location.hash !== first, "each zoom has a link of its own");
    history.back();
    await waitFor(() => getWidth("parse") === getWidth("all") && getWidth("scan") < getWidth("all"), "back");
    equal(location.hash, first, "link after going back");
    history.forward();
    await waitFor(() => getWidth("scan") === getWidth("all"), "forward");
    location.hash = "#zoom=nonsense&search=next";
    await waitFor(() => getText("matched") === "Matched: 10.00% · 1 frame", "the link's search");
    equal(getWidth("main"), Math.round(getWidth("all") / 2), "an unknown frame in a link shows the whole graph");
    location.hash = first;
    await waitFor(() => getWidth("parse") === getWidth("all"), "the link's zoom");
}

function followsLinkOfAnotherGraph() {
    equal(getWidth("parse"), getWidth("all"), "the link's frame");
    equal(getWidth("main"), getWidth("all"), "its caller");
    equal(getText("matched"), "Matched in the view: 32.26% · 1 frame (1 in all)", "the link's search");
}

function describesItselfToScreenReaders() {
    const frames = byId("frames");
    equal(frames.getAttribute("role"), "tree", "role of the frames");
    equal(frames.getAttribute("aria-label"), "Where the time goes", "name of the frames");
    for (const [name, level] of [["all", "1"], ["main", "2"], ["parse", "3"]]) {
        equal(getFrame(name).getAttribute("role"), "treeitem", `role of ${name}`);
        equal(getFrame(name).getAttribute("aria-level"), level, `level of ${name}`);
    }
    for (const id of ["unzoom", "search", "menu"]) equal(byId(id).getAttribute("role"), "button", `role of ${id}`);
    equal(byId("menu").getAttribute("tabindex"), "0", "the Tab key stops at buttons");
    byId("menu").focus();
    pressKey("Enter");
    check(svg.querySelector(".menu[role=dialog][aria-label]"), "Enter opens the menu, a dialog with a name");
    pressKey("Escape");
    check(getSearchField().getAttribute("aria-label"), "the search field has a name");
}

function outlinesThreadStates() {
    /** @param {string} name */
    const dashes = name => getComputedStyle(getRect(getFrame(name))).strokeDasharray;
    check(dashes("[off-cpu]") !== "none", "[off-cpu] is outlined");
    check(dashes("[lost]") !== "none", "[lost] is outlined");
    equal(dashes("work"), "none", "functions are not outlined");
    check(byId("legend").textContent.includes("[lost] 15.25%"), "the legend has shares");
    resize("220px");
    const [first, last] = [...svg.querySelectorAll("#legend text")].map(text => text.getBoundingClientRect());
    check(last.right <= 220 && last.top > first.bottom, "the legend wraps");
    check(last.bottom < getBounds(getFrame("[off-cpu]")).top, "the legend is above the frames");
}

/**
 * Compares pixels of an image with frames of the SVG document.
 *
 * @param {{ name: string, fill: string, left: number, x: number, y: number }[]} frames the left edge of each, and a
 * point without label
 */
async function drawsStaticImage(frames) {
    const image = /** @type {HTMLImageElement} */ (document.querySelector("img"));
    const canvas = document.createElement("canvas");
    await image.decode();
    [canvas.width, canvas.height] = [image.naturalWidth, image.naturalHeight];
    const context = /** @type {CanvasRenderingContext2D} */ (canvas.getContext("2d"));
    context.drawImage(image, 0, 0);
    for (const { name, fill, left, x, y } of frames) {
        const pixel = [...context.getImageData(x, y, 1, 1).data].slice(0, 3);
        equal(`#${pixel.map(channel => channel.toString(16).padStart(2, "0")).join("")}`, fill, `colour of ${name}`);
        // The label is dark on a light colour or light on a dark one.
        const pixels = context.getImageData(left + 2, y, 30, 10).data;
        const different = pixels.filter((channel, i) => i % 4 === 1 && Math.abs(channel - pixel[1]) > 60).length;
        check(different > 20, `${name} has a label: ${different} pixels differ`);
    }
}

async function keepsGraphsOfOnePageApart() {
    const [first, second] = /** @type {NodeListOf<SVGSVGElement>} */ (document.querySelectorAll("svg.flame-graph"));
    const globals = Object.keys(window);
    const bareWindow = document.body.appendChild(document.createElement("iframe")).contentWindow ?? {};
    click(getFrame("parse", second));
    check(hasFrame("idle", first), "the first graph is not zoomed");
    check(!hasFrame("idle", second), "the second graph is zoomed");
    getFrames(second)[0].focus();
    pressKey("f", { ctrlKey: true });
    equal(document.activeElement, getSearchField(second), "Ctrl-F searches the graph with the focus");
    click(getFrame("idle", first));
    check(!hasFrame("idle", second) && !hasFrame("main", first), "each graph has its own zoom");
    const link = location.hash;
    location.hash = "";
    await waitFor(() => hasFrame("main", first) && hasFrame("idle", second), "both graphs are reset");
    location.hash = link;
    await waitFor(() => !hasFrame("main", first) && !hasFrame("idle", second), "one link zooms both graphs");
    // A global class is not a property of the window.
    for (const name of ["Picture", "Search", "Viewer"]) {
        equal(new Function(`return typeof ${name};`)(), "undefined", `${name} is not global`);
    }
    equalLists(globals.filter(name => !(name in bareWindow)), [], "global variables of the graphs");
}

function drawsBeforeStaticFramesAreLoaded() {
    equal(getFrames().length, 9, "number of frames");
    equal(getWidth("idle"), Math.round((innerWidth - 20) / 2), "width of half the weight");
}
