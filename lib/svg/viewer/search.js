// Looking for frames by a regular expression.

class Search {
    constructor(viewer) {
        Object.assign(this, { viewer, pattern: "", fault: "", at: 0 });
        this.input = html("input", { type: "text", placeholder: "regular expression", spellcheck: "false",
            "aria-label": "Search frames by regular expression" });
        this.place = element("foreignObject", { width: 200, height: 24, class: "hide" }, this.input);
        this.input.addEventListener("input", () => this.set(this.input.value));
        this.input.addEventListener("keydown", event => this.key(event));
    }

    key(event) {
        if (isFind(event)) return;
        event.stopPropagation();
        if (event.key === "Escape") this.close();
        if (event.key === "Enter") this.viewer.step(event.shiftKey ? -1 : 1);
    }

    get isOpen() {
        return !this.place.classList.contains("hide");
    }

    open() {
        this.place.classList.remove("hide");
        this.viewer.texts.search.classList.add("hide");
    }

    close() {
        this.place.classList.add("hide");
        this.viewer.texts.search.classList.remove("hide");
        this.input.value = "";
        this.set("");
        this.viewer.focus(this.viewer.picture.base);
    }

    // Looks for a pattern.
    set(pattern) {
        this.compile(pattern);
        this.viewer.draw();
        this.viewer.remember(false);
    }

    // Finds the names that match. A pattern that is not valid is told, and finds nothing.
    compile(pattern) {
        const { picture } = this.viewer;
        let expression = null;
        this.fault = "";
        try {
            if (pattern) expression = new RegExp(pattern, "i");
        } catch (error) {
            // Browsers put the pattern before the reason.
            this.fault = error.message.slice(error.message.lastIndexOf(": ") + 1).trim();
        }
        this.input.setCustomValidity(this.fault);
        this.pattern = pattern;
        this.at = 0;
        picture.matches = expression && Uint8Array.from(picture.profile.names, name => expression.test(name));
    }

    // The nodes that are looked through, from and up to: those of the view; of a sandwich without zoom both halves.
    spans() {
        const { tree, view } = this.viewer.picture, { lower, end, parent } = tree;
        return view === 0 && lower ? [[1, lower], [lower, parent.length]] : [[Math.max(view, 1), end[view]]];
    }

    // How many frames of a span match, drawn or not, and how much they weigh; what stands on a match weighs with it.
    count([first, last]) {
        const { tree, matches } = this.viewer.picture;
        let frames = 0, weight = 0;
        for (let node = first, within = first; node < last; node++) {
            if (!matches[tree.name[node]] || tree.total[node] <= 0) continue;
            frames++;
            if (node < within) continue;
            weight += tree.total[node];
            within = tree.end[node];
        }
        return { frames, weight };
    }

    // All frames that match, drawn or not, from the left, a caller before what it calls.
    found() {
        const { picture } = this.viewer, { tree, matches, byWeight } = picture;
        const known = this.list, now = [tree, matches, byWeight];
        if (known && now.every((part, at) => part === known.of[at])) return known.nodes;
        const nodes = picture.inOrder().filter(node => matches?.[tree.name[node]]);
        this.list = { of: now, nodes };
        return nodes;
    }

    // The next match, or the one before. The first one is the first of the view, if there is one.
    step(by) {
        const found = this.found(), [[first, last]] = this.spans();
        if (found.length === 0) return undefined;
        const isInView = node => node >= first && node < last;
        if (this.at > 0) this.at = (this.at - 1 + by + found.length) % found.length + 1;
        else this.at = 1 + Math.max(0, by > 0 ? found.findIndex(isInView) : found.findLastIndex(isInView));
        return found[this.at - 1];
    }

    // What is to be told of it: all of the view.
    report() {
        const { picture } = this.viewer, { view } = picture;
        if (this.fault) return `Not a pattern: ${this.fault}`;
        if (!picture.matches) return " ";
        const counts = this.spans().map(span => this.count(span)), [here, callers] = counts;
        const frames = counts.reduce((sum, { frames }) => sum + frames, 0), at = this.at > 0 ? `${this.at} of ` : "";
        const told = count => `${picture.counts.format(count)} ${count === 1 ? "frame" : "frames"}`;
        const share = ({ weight }) => picture.percent(weight, picture.weight(view));
        if (view !== 0) return `Matched in the view: ${share(here)} · ${told(frames)} (${at}${picture.counts.format(this.found().length)} in all)`;
        return `Matched: ${share(here)}${callers ? ` of callees, ${share(callers)} of callers` : ""} · ${at}${told(frames)}`;
    }
}

function isFind(event) {
    return event.key === "F3" || ((event.ctrlKey || event.metaKey) && event.key.toLowerCase() === "f");
}
