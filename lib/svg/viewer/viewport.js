// Places the graph and its controls on the page, and scrolls.

class Viewport {
    /** @param {Viewer} viewer */
    constructor(viewer) {
        const { root, picture } = viewer;
        this.viewer = viewer;
        this.root = root;
        this.picture = picture;
        this.legend = root.querySelector("#legend");
        /** The pixels of the margin that are cut off, across and down. */
        this.cut = [0, 0];
        this.windowSize = [0, 0];
        /** The height of the controls above the frames. */
        this.upperHeight = 0;
        this.isPrinting = false;
        /** The bars behind the controls at the top and at the bottom. */
        this.bars = [createSvg("rect", { class: "bar hide" }), createSvg("rect", { class: "bar hide" })];
        picture.frames.after(...this.bars);
    }

    /**
     * Puts texts and the legend in front of the bars.
     *
     * @param {Element[]} texts
     */
    bringToFront(texts) {
        this.bars[1].after(...texts, ...(this.legend ? [this.legend] : []));
    }

    /** Measures the window. Returns true if the width of the graph changed. */
    measure() {
        const { picture, root } = this, before = picture.width;
        if (root.dataset.fluid) {
            root.setAttribute("width", "100%");
            picture.width = Math.max(root.getBoundingClientRect().width, 200);
        }
        // Kept, because reading it after a change makes the browser compute the layout.
        this.windowSize = [innerWidth, innerHeight];
        picture.bottom = picture.fontSize * (this.isNarrow ? 3.3 : 2) + 10;
        return picture.width !== before;
    }

    get isNarrow() {
        return this.picture.width < 640;
    }

    /** True if the page is only the graph. */
    get isStandalone() {
        return this.root === /** @type {Element} */ (document.documentElement);
    }

    /** Scrolls to the base if the page is only the graph: the top of a deep graph is almost empty. */
    showBase() {
        if (this.isStandalone) this.reveal();
    }

    /**
     * Scrolls as little as is needed to show a box. The function of a sandwich goes to the middle of the window.
     *
     * @param {DrawnBox} [box]
     */
    reveal(box = this.viewer.baseBox()) {
        if (!box) return;
        const { top, bottom } = box.group.getBoundingClientRect();
        const first = this.upperHeight, last = innerHeight - this.picture.bottom;
        if (top >= first - 1 && bottom <= last + 1) return;
        const isPivot = this.picture.tree.lower && box.node === 1;
        window.scrollBy(0, isPivot ? (top + bottom - first - last) / 2 : top < first ? top - first : bottom - last);
        this.placeControls();
    }

    handleResize() {
        if (this.measure()) return this.viewer.draw();
        this.updateViewBox();
        this.placeControls();
    }

    /** @param {boolean} isPrinting */
    setPrinting(isPrinting) {
        this.isPrinting = isPrinting;
        this.placeControls();
    }

    /** Sets the size of the graph. If it is a few pixels larger than the window, part of its margin is cut off. */
    updateViewBox() {
        const { root, windowSize: [windowWidth, windowHeight], picture: { width, height } } = this;
        const isFluid = root.dataset.fluid;
        /** @type {(size: number, available: number, limit: number) => number} */
        const excess = (size, available, limit) =>
            (this.isStandalone && size > available && size <= available + limit ? size - available : 0);
        // A scroll bar takes space from the other direction.
        if (!isFluid) setAttributes(root, { height });
        const available = height > windowHeight + SIDE ? root.clientWidth : windowWidth;
        const x = isFluid ? 0 : excess(width, available, 1.6 * SIDE);
        const y = excess(height, width - x > windowWidth ? root.clientHeight : windowHeight, SIDE);
        this.cut = [x, y];
        if (!isFluid) setAttributes(root, { width: width - x });
        setAttributes(root, { height: height - y, viewBox: `${x / 2} ${y} ${width - x} ${height - y}` });
    }

    /** Breaks the legend into lines that fit into the window, and makes room for them. */
    placeLegend() {
        const { picture, root } = this, { fontSize } = picture;
        let x = SIDE, line = 0;
        for (const text of /** @type {NodeListOf<SVGTextElement>} */ (root.querySelectorAll("#legend text"))) {
            const width = text.getComputedTextLength() + 1.4 * fontSize;
            if (x > SIDE && x + width > picture.width - SIDE) [x, line] = [SIDE, line + 1];
            const transform = `translate(0 ${1.5 * line * fontSize})`;
            if (text.previousElementSibling) setAttributes(text.previousElementSibling, { x, transform });
            setAttributes(text, { x: x + 1.4 * fontSize, transform });
            x += width + fontSize;
        }
        picture.top = Number(root.dataset.top) + 1.5 * line * fontSize;
        this.upperHeight = 2 * fontSize + 10 + (this.legend ? 1.5 * (line + 1) * fontSize : 0);
    }

    /** Places the controls and the legend in the visible part of the graph; on paper around the whole graph. */
    placeControls() {
        const { picture, isPrinting, isNarrow } = this, { height, fontSize } = picture;
        const place = this.root.getBoundingClientRect(), scale = place.width / (picture.width - this.cut[0]) || 1;
        const top = isPrinting ? 0 : Math.min(Math.max(0, -place.top / scale), height - 4 * fontSize);
        const visibleEnd = isPrinting ? height : Math.min(height, (innerHeight - place.top) / scale + this.cut[1]);
        const bottom = Math.max(top + 4 * fontSize, visibleEnd), line = top + 2 * fontSize;
        this.placeBars(top, bottom);
        // In a narrow window each text below the frames has its own line.
        const hasNote = this.viewer.texts.undrawn.textContent !== " ";
        const undrawn = bottom - fontSize * (isNarrow ? 1.8 : 0.45);
        const details = bottom - (isNarrow ? fontSize / 2 : hasNote ? 1.75 * fontSize : picture.bottom / 2);
        this.placeTexts({ line, undrawn, details, matched: isNarrow ? undrawn - 1.3 * fontSize : details });
        const legendShift = Math.max(0, line + 1.6 * fontSize - (Number(this.root.dataset.top) - 1.2 * fontSize));
        this.legend?.setAttribute("transform", `translate(0 ${top > 0 ? legendShift : 0})`);
        this.placeInputs(line, bottom);
    }

    /**
     * Places the bars behind the controls. They are hidden at the ends of the graph, where no frames are behind them.
     *
     * @param {number} top
     * @param {number} bottom
     */
    placeBars(top, bottom) {
        const { upperHeight, bars: [upper, lower], picture } = this, { width, height } = picture;
        setAttributes(upper, { y: top, width, height: upperHeight });
        setAttributes(lower, { y: bottom - picture.bottom, width, height: picture.bottom });
        upper.classList.toggle("hide", top <= 0);
        lower.classList.toggle("hide", bottom >= height);
    }

    /**
     * Places the texts around the frames, at these heights.
     *
     * @param {{ line: number, details: number, matched: number, undrawn: number }} heights
     */
    placeTexts({ line, details, matched, undrawn }) {
        const { picture: { width, fontSize }, viewer: { texts } } = this, right = width - SIDE;
        const changesLeft = texts.unzoom.classList.contains("hide") ? SIDE : SIDE + 7 * fontSize;
        /** @type {[string, number, number][]} */
        const places = [
            ["unzoom", SIDE, line], ["changes", changesLeft, line],
            ["search", right - 4.5 * fontSize, line], ["menu", right, line],
            ["details", SIDE, details], ["matched", right, matched], ["undrawn", right, undrawn],
        ];
        for (const [id, x, y] of places) {
            setAttributes(texts[id], { x, y, "text-anchor": x > width / 2 ? "end" : "start" });
        }
    }

    /**
     * Places the search field and the menu.
     *
     * @param {number} line
     * @param {number} bottom
     */
    placeInputs(line, bottom) {
        const { picture: { width, fontSize }, viewer: { search, menu } } = this;
        setAttributes(search.container, { x: width - SIDE - 4 * fontSize - 204, y: line - 1.3 * fontSize });
        setAttributes(menu, {
            x: Math.max(SIDE, width - 400 - SIDE),
            y: line + fontSize,
            width: Math.min(400, width - 2 * SIDE),
            height: Math.max(bottom - line - fontSize, 100),
        });
    }
}
