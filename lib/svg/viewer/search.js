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
            this.fault = error.message.replace(/^Invalid regular expression: /, "");
        }
        this.input.setCustomValidity(this.fault);
        this.pattern = pattern;
        this.at = 0;
        picture.matches = expression && Uint8Array.from(picture.profile.names, name => expression.test(name));
    }

    // The share of the view that is in matching frames; what stands on a match is counted with it.
    share() {
        const { picture } = this.viewer, { tree, view, matches } = picture;
        let sum = 0, node = Math.max(view, 1);
        const end = tree.end[view];
        while (node < end) {
            const matching = matches[tree.name[node]];
            if (matching) sum += tree.total[node];
            node = matching ? tree.end[node] : node + 1;
        }
        return picture.percent(sum, picture.weight(view));
    }

    // The drawn frames that match, from the left, a caller before what it calls.
    found() {
        const { tree, matches, drawn } = this.viewer.picture;
        if (!matches) return [];
        return drawn.filter(box => !box.folded && box.node > 0 && matches[tree.name[box.node]])
            .sort((a, b) => a.x - b.x || a.row - b.row);
    }

    // The next match, or the one before.
    step(by) {
        const found = this.found();
        if (found.length === 0) return undefined;
        this.at = this.at === 0 && by < 0 ? found.length : (this.at - 1 + by + found.length) % found.length + 1;
        return found[this.at - 1];
    }

    // What is to be told of it.
    report() {
        if (this.fault) return `Not a pattern: ${this.fault}`;
        if (!this.viewer.picture.matches) return " ";
        const count = this.found().length, frames = count === 1 ? "1 frame" : `${count} frames`;
        return `Matched: ${this.share()} · ${this.at > 0 && count > 0 ? `${this.at} of ` : ""}${frames}`;
    }
}

function isFind(event) {
    return event.key === "F3" || ((event.ctrlKey || event.metaKey) && event.key.toLowerCase() === "f");
}
