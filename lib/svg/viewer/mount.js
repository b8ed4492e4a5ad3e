// Puts the viewer in the place of the picture.

/**
 * Reads the options of fg-svg that the viewer follows.
 *
 * @param {GraphElement} root
 * @returns {Settings}
 */
function readSettings(root) {
    const { dataset } = root;
    const caption = (/** @type {string} */ id) => root.querySelector(`:scope > #${id}`)?.textContent ?? "";
    return {
        ...dataset,
        title: dataset.titled ? caption("title") : "",
        subtitle: caption("subtitle"),
        countName: dataset.countName ?? "",
        factor: Number(dataset.factor),
        rowHeight: Number(dataset.frameHeight),
        fontSize: Number(root.getAttribute("font-size")),
        fontFamily: root.getAttribute("font-family") ?? "",
        width: dataset.fluid ? 0 : Number(root.getAttribute("width")),
        minWidth: Number(dataset.narrowest),
        isChart: Boolean(dataset.chart),
        bySelf: Boolean(dataset.self),
    };
}

/**
 * Replaces the picture by the viewer. A file of its own becomes an HTML document, which scrolls and fits phones. In a
 * frame of another page the picture remains, because its size is that of the frame. Returns true if the page is only
 * the graph.
 *
 * @param {GraphElement} root
 * @param {HTMLElement} element
 */
function mount(root, element) {
    const isPage = document.documentElement.localName === "svg";
    const style = root.querySelector("style");
    const family = `${root.getAttribute("font-family")}`;
    element.style.setProperty("--label", `${root.getAttribute("font-size")}px ${family}`);
    if (!isPage) {
        const isWhole = document.body.classList.contains("fg-page");
        element.classList.add(isWhole ? "whole" : "inline");
        if (style) document.head.append(style);
        root.replaceWith(element);
        return isWhole;
    }
    if (window.parent !== window) {
        const object = createSvg("foreignObject", {}, element);
        const fit = () => setAttributes(object, { width: innerWidth, height: innerHeight });
        // The size of the picture remains: a page may give the frame that size.
        root.removeAttribute("viewBox");
        root.style.overflow = "hidden";
        root.replaceChildren(...(style ? [style] : []), object);
        window.addEventListener("resize", fit);
        fit();
        return true;
    }
    const viewport = createHtml("meta", { name: "viewport", content: "width=device-width,initial-scale=1" });
    const head = createHtml("head", {}, viewport, createHtml("title"));
    if (style) head.append(style);
    element.classList.add("whole");
    const page = createHtml("html", { lang: "en" }, head, createHtml("body", {}, element));
    document.replaceChild(page, document.documentElement);
    for (const name of ["pointermove", "wheel", "keydown"]) window.addEventListener(name, stopReading, { once: true });
    return true;
}

/**
 * Stops reading the rest of the picture, which nobody sees and which can be many megabytes. The first action of the
 * reader does it: programs that print the page wait until all is read.
 */
function stopReading() {
    if (document.readyState === "loading") window.stop();
}
