// Searches for frames by a regular expression.

class Search {
    /** @param {Viewer} viewer */
    constructor(viewer) {
        this.viewer = viewer;
        this.pattern = "";
        /** Why the pattern is invalid, or empty. */
        this.error = "";
        /** The position of the current match among all matches, from 1; 0 if there is none. */
        this.position = 0;
        /** @type {{ tree: Tree, names: Uint8Array | null, byWeight: boolean, nodes: number[] } | undefined} */
        this.cache = undefined;
        this.input = createHtml("input", { type: "text", placeholder: "regular expression", spellcheck: "false",
            "aria-label": "Search frames by regular expression" });
        this.container = createSvg("foreignObject", { width: 200, height: 24, class: "hide" }, this.input);
        this.input.addEventListener("input", () => this.setPattern(this.input.value));
        this.input.addEventListener("keydown", event => this.handleKey(event));
    }

    /** @param {KeyboardEvent} event */
    handleKey(event) {
        if (isFindKey(event)) return;
        event.stopPropagation();
        if (event.key === "Escape") this.close();
        if (event.key === "Enter") this.viewer.goToMatch(event.shiftKey ? -1 : 1);
    }

    get isOpen() {
        return !this.container.classList.contains("hide");
    }

    open() {
        this.container.classList.remove("hide");
        this.viewer.texts.search.classList.add("hide");
    }

    close() {
        this.container.classList.add("hide");
        this.viewer.texts.search.classList.remove("hide");
        this.input.value = "";
        this.setPattern("");
        this.viewer.focusNode(this.viewer.picture.base);
    }

    /** @param {string} pattern */
    setPattern(pattern) {
        this.compile(pattern);
        this.viewer.draw();
        this.viewer.updateLink(false);
    }

    /**
     * Finds the names that match a pattern. An invalid pattern sets `error` and matches nothing.
     *
     * @param {string} pattern
     */
    compile(pattern) {
        const { picture } = this.viewer;
        this.error = "";
        this.pattern = pattern;
        this.position = 0;
        picture.matches = null;
        try {
            const expression = new RegExp(pattern, "i"), { names } = picture.profile;
            if (pattern) picture.matches = Uint8Array.from(names, name => Number(expression.test(name)));
        } catch (error) {
            // Browsers write the pattern before the reason.
            const message = String(/** @type {Error} */ (error).message);
            this.error = message.slice(message.lastIndexOf(": ") + 1).trim();
        }
        this.input.setCustomValidity(this.error);
    }

    /**
     * Returns the first and the end node of each range to search: the view, or both halves of a sandwich without zoom.
     *
     * @returns {[number, number][]}
     */
    ranges() {
        const { tree, view } = this.viewer.picture, { lower, end, parent } = tree;
        return view === 0 && lower ? [[1, lower], [lower, parent.length]] : [[Math.max(view, 1), end[view]]];
    }

    /**
     * Returns the number of matching frames in a range, drawn or not, and the weight of the stacks through them.
     *
     * @param {[number, number]} range
     */
    countMatches([first, end]) {
        const { tree, matches } = this.viewer.picture;
        let frames = 0, weight = 0;
        for (let node = first, countedEnd = first; node < end; node++) {
            if (!matches?.[tree.name[node]] || tree.total[node] <= 0) continue;
            frames++;
            if (node < countedEnd) continue;
            weight += tree.total[node];
            countedEnd = tree.end[node];
        }
        return { frames, weight };
    }

    /** Returns all matching nodes, drawn or not, from left to right, a caller before its callees. */
    matchingNodes() {
        const { picture } = this.viewer, { tree, matches: names, byWeight } = picture, { cache } = this;
        if (cache && cache.tree === tree && cache.names === names && cache.byWeight === byWeight) return cache.nodes;
        const nodes = picture.nodesInOrder().filter(node => names?.[tree.name[node]]);
        this.cache = { tree, names, byWeight, nodes };
        return nodes;
    }

    /**
     * Advances to the next or previous match and returns its node. The first match is the first one in the view, if
     * any.
     *
     * @param {number} step 1 or -1
     */
    advance(step) {
        const nodes = this.matchingNodes(), [[first, end]] = this.ranges();
        if (nodes.length === 0) return undefined;
        /** @param {number} node */
        const isInView = node => node >= first && node < end;
        if (this.position > 0) this.position = (this.position - 1 + step + nodes.length) % nodes.length + 1;
        else this.position = 1 + Math.max(0, step > 0 ? nodes.findIndex(isInView) : nodes.findLastIndex(isInView));
        return nodes[this.position - 1];
    }

    /** Returns the number and weight of the matches in the view as a text. */
    summary() {
        const { picture } = this.viewer, { view } = picture;
        if (this.error) return `Invalid pattern: ${this.error}`;
        if (!picture.matches) return " ";
        const counts = this.ranges().map(range => this.countMatches(range)), [{ weight }, callers] = counts;
        const count = counts.reduce((sum, { frames }) => sum + frames, 0);
        const position = this.position > 0 ? `${this.position} of ` : "";
        const frames = `${picture.countFormat.format(count)} ${count === 1 ? "frame" : "frames"}`;
        const share = picture.formatPercent(weight, picture.weight(view));
        const all = picture.countFormat.format(this.matchingNodes().length);
        if (view !== 0) return `Matched in the view: ${share} · ${frames} (${position}${all} in all)`;
        const ofCallers = callers && picture.formatPercent(callers.weight, picture.weight(view));
        return `Matched: ${share}${ofCallers ? ` of callees, ${ofCallers} of callers` : ""} · ${position}${frames}`;
    }
}

/** @param {KeyboardEvent} event */
function isFindKey(event) {
    return event.key === "F3" || ((event.ctrlKey || event.metaKey) && event.key.toLowerCase() === "f");
}
