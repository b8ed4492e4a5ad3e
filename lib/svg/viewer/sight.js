// Where the graph and the words around it stand on the page, and what of it is in sight.

class Sight {
    constructor(viewer) {
        const { root, picture } = viewer;
        Object.assign(this, { viewer, root, picture, legend: root.querySelector("#legend"), cut: [0, 0], isPrinted: false });
        this.bars = [element("rect", { class: "bar hide" }), element("rect", { class: "bar hide" })];
        picture.frames.after(...this.bars);
    }

    // Puts words, and the legend, in front of the bars, which keep them apart from the frames.
    raise(texts) {
        this.bars[1].after(...texts, ...(this.legend ? [this.legend] : []));
    }

    // Takes the width of the window, if it is to. Tells whether that changed.
    measure() {
        const { picture, root } = this, before = picture.width;
        if (root.dataset.fluid) {
            root.setAttribute("width", "100%");
            picture.width = Math.max(root.getBoundingClientRect().width, 200);
        }
        // Kept: to ask for it after a change has the browser lay everything out.
        this.room = [innerWidth, innerHeight];
        picture.bottom = picture.fontSize * (this.isNarrow ? 3.3 : 2) + 10;
        return picture.width !== before;
    }

    get isNarrow() {
        return this.picture.width < 640;
    }

    // Whether the page is nothing but the graph.
    get isAlone() {
        return document.documentElement === this.root;
    }

    // Where the page is nothing but the graph, it opens at the base: of a deep graph the top is all but empty.
    showBase() {
        if (this.isAlone) this.reveal();
    }

    // Scrolls as little as it takes to see a box; to the middle of the window where it has others on both sides.
    reveal(box = this.viewer.baseBox()) {
        if (!box) return;
        const { top, bottom } = box.group.getBoundingClientRect(), [first, last] = [this.upperHeight, innerHeight - this.picture.bottom];
        if (top >= first - 1 && bottom <= last + 1) return;
        const isBetween = this.picture.tree.lower && box.node === 1;
        window.scrollBy(0, isBetween ? (top + bottom - first - last) / 2 : top < first ? top - first : bottom - last);
        this.stick();
    }

    // Adapts to the window.
    refit() {
        if (this.measure()) return this.viewer.draw();
        this.place();
        this.stick();
    }

    // Takes its place on the page. Where a few pixels do not fit into the window, it does without some of its margin.
    place() {
        const { root, room: [roomAcross, roomDown], picture: { width, height } } = this, isFluid = root.dataset.fluid;
        const over = (size, room, most) => (this.isAlone && size > room && size <= room + most ? size - room : 0);
        // A scroll bar takes room from the other direction.
        if (!isFluid) root.setAttribute("height", height);
        const x = isFluid ? 0 : over(width, height > roomDown + SIDE ? root.clientWidth : roomAcross, 1.6 * SIDE);
        const y = over(height, width - x > roomAcross ? root.clientHeight : roomDown, SIDE);
        this.cut = [x, y];
        if (!isFluid) root.setAttribute("width", width - x);
        root.setAttribute("height", height - y);
        root.setAttribute("viewBox", `${x / 2} ${y} ${width - x} ${height - y}`);
    }

    // Breaks the legend where the window ends, and makes room for its lines.
    placeLegend() {
        const { picture, root } = this, { fontSize } = picture;
        let x = SIDE, lines = 0;
        for (const text of root.querySelectorAll("#legend text")) {
            const width = text.getComputedTextLength() + 1.4 * fontSize;
            if (x > SIDE && x + width > picture.width - SIDE) [x, lines] = [SIDE, lines + 1];
            for (const [part, left] of [[text.previousElementSibling, x], [text, x + 1.4 * fontSize]]) {
                part.setAttribute("x", left);
                part.setAttribute("transform", `translate(0 ${1.5 * lines * fontSize})`);
            }
            x += width + fontSize;
        }
        picture.top = Number(root.dataset.top) + 1.5 * lines * fontSize;
        this.upperHeight = 2 * fontSize + 10 + (this.legend ? 1.5 * (lines + 1) * fontSize : 0);
    }

    // Keeps the controls and the legend within the part of the graph that is in sight; on paper that is all of it.
    stick() {
        const { picture, upperHeight, viewer: { texts, search, sheet } } = this, { width, height, fontSize, bottom } = picture;
        const place = this.root.getBoundingClientRect(), scale = place.width / (width - this.cut[0]) || 1;
        const top = this.isPrinted ? 0 : Math.min(Math.max(0, -place.top / scale), height - 4 * fontSize);
        const inSight = this.isPrinted ? height : Math.min(height, (innerHeight - place.top) / scale + this.cut[1]);
        const low = Math.max(top + 4 * fontSize, inSight), [upper, lower] = this.bars, line = top + 2 * fontSize;
        // In a narrow window each has a line of its own: what was found, what is left out, what is told of a frame.
        const isNoted = texts.undrawn.textContent !== " ", undrawn = low - fontSize * (this.isNarrow ? 1.8 : 0.45);
        const last = low - (this.isNarrow ? fontSize / 2 : isNoted ? 1.75 * fontSize : bottom / 2);
        const above = this.isNarrow ? undrawn - 1.3 * fontSize : last;
        for (const [bar, y, tall, shown] of [[upper, top, upperHeight, top > 0], [lower, low - bottom, bottom, low < height]]) {
            for (const [key, value] of Object.entries({ y, width, height: tall })) bar.setAttribute(key, value);
            bar.classList.toggle("hide", !shown);
        }
        const below = Math.max(0, line + 1.6 * fontSize - (Number(this.root.dataset.top) - 1.2 * fontSize));
        this.legend?.setAttribute("transform", `translate(0 ${top > 0 ? below : 0})`);
        const left = texts.unzoom.classList.contains("hide") ? SIDE : SIDE + 7 * fontSize;
        const places = { unzoom: [SIDE, line], changes: [left, line], search: [width - SIDE - 4.5 * fontSize, line],
            menu: [width - SIDE, line], details: [SIDE, last], matched: [width - SIDE, above], undrawn: [width - SIDE, undrawn] };
        for (const id in places) {
            texts[id].setAttribute("x", places[id][0]);
            texts[id].setAttribute("y", places[id][1]);
            texts[id].setAttribute("text-anchor", places[id][0] > width / 2 ? "end" : "start");
        }
        search.place.setAttribute("x", width - SIDE - 4 * fontSize - 204);
        search.place.setAttribute("y", line - 1.3 * fontSize);
        sheet.setAttribute("x", Math.max(SIDE, width - 400 - SIDE));
        sheet.setAttribute("y", line + fontSize);
        sheet.setAttribute("width", Math.min(400, width - 2 * SIDE));
        sheet.setAttribute("height", Math.max(low - line - fontSize, 100));
    }
}
