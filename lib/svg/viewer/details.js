// Describes the selected function below the table, and the frame under the pointer beside it.

/** @implements {Part} */
class Details {
    /** @param {App} app */
    constructor(app) {
        this.app = app;
        this.element = createHtml("section",
            { class: "det", id: "details", "aria-label": "Details", "aria-live": "polite" });
        this.tip = createHtml("div", { class: "tip", role: "tooltip" });
        this.tip.hidden = true;
    }

    /** @param {View} view */
    draw(view) {
        const { selected } = view.state;
        this.element.classList.toggle("open", Boolean(selected));
        if (!selected) {
            const hint = "Click a frame or a function to see its details. Right-click for more.";
            this.element.replaceChildren(createHtml("p", { class: "hint" }, hint));
            return;
        }
        const name = view.profile.names[selected.name], target = { name: selected.name, node: selected.node };
        const buttons = ["s", "f", "i", "y"].map(key => createActionButton(this.app, findAction(key), target));
        const close = createButton("×", () => this.app.select(undefined),
            { class: "close", "aria-label": "Close the details" });
        const label = labelOfName(name).join("");
        this.element.replaceChildren(close, createHtml("h2", {}, label),
            createHtml("div", { class: "full mono" }, label === name ? "" : name),
            createFacts(describeSelection(view, selected)), createHtml("div", { class: "acts" }, ...buttons));
    }

    /**
     * Shows the facts about a box beside the pointer, or nothing.
     *
     * @param {Box | undefined} box
     * @param {{ clientX: number, clientY: number }} [place]
     */
    point(box, place) {
        const { tip, app: { view, graph } } = this;
        tip.hidden = !box;
        if (!box || !place) return;
        const name = box.folded ? graph.painter.describeFolded(box, view)
            : box.chain ? `${describeChain(box.chain, view)}. Click to unfold.`
            : nameOfNode(view, box.node).replace(/^--$/, "woken by");
        const custom = box.folded ? null
            : view.profile.elements.get(view.tree.name[box.node])?.getAttribute("data-title");
        // A chain has the total of its first frame.
        const facts = box.folded || custom ? [] : describeFrame(view, box.node).slice(0, box.chain ? 1 : undefined);
        tip.replaceChildren(createHtml("b", {}, custom ?? name), createFacts(facts));
        const { offsetWidth: width, offsetHeight: height } = tip, { clientX: x, clientY: y } = place;
        const below = y + 18 + height > innerHeight - 4 ? Math.max(4, y - height - 10) : y + 18;
        tip.style.transform = `translate(${Math.max(4, Math.min(x + 14, innerWidth - width - 6))}px, ${below}px)`;
    }
}

/** @param {[label: string, value: string, extra: string][]} facts */
function createFacts(facts) {
    const list = createHtml("dl");
    for (const [label, value, extra] of facts) {
        list.append(createHtml("dt", {}, label), createHtml("dd", {}, value, createHtml("small", {}, extra)));
    }
    return list;
}

/**
 * Describes a frame.
 *
 * @param {View} view
 * @param {number} node
 * @returns {[label: string, value: string, extra: string][]}
 */
function describeFrame(view, node) {
    const { settings, whole, tree, weights, state: { zoom } } = view, measured = measureNode(view, node);
    const { total, totals } = measured, { self, selves, ofFunction } = measureSelf(view, node);
    if (view.side === "difference" && node > 0) {
        const name = tree.name[node], { profile } = view;
        return [...describeChange("Total", totals, profile, name), ...describeChange("Self", selves, profile, name),
            describeWeights(view, measured.weights), ...describeModule(view, tree.name[node])];
    }
    const caller = tree.parent[node], shares = [formatShare(total, whole)];
    if (zoom !== 0 && node > zoom) shares.push(`${formatShare(total, weights[zoom])} of the view`);
    if (node > 0 && caller > 0) {
        const other = hasCallersOn(tree, node) ? "callee" : "caller";
        shares.push(`${formatShare(total, weights[caller])} of its ${other}`);
    }
    /** @type {[string, string, string][]} */
    const facts = [["Total", formatWeight(total, settings), shares.join(" · ")]];
    if (node === 0) return facts;
    const place = ofFunction ? " in all places" : "";
    return [...facts, ["Self", formatWeight(self, settings), formatShare(self, whole) + place],
        ...describeModule(view, tree.name[node])];
}

/**
 * Describes a function, with all its places.
 *
 * @param {View} view
 * @param {Chosen} selection
 * @returns {[label: string, value: string, extra: string][]}
 */
function describeSelection(view, { name, node }) {
    const { functions: { self, total, places: counts, selfBefore = self, totalBefore = total }, whole, wholeBefore,
        settings } = view;
    /** @type {[string, string, string][]} */
    const facts = [], count = counts[name];
    /** @type {(before: Float64Array, after: Float64Array) => number[]} */
    const shares = (before, after) => [before[name] / (wholeBefore || 1), after[name] / (whole || 1)];
    if (view.side === "difference") {
        facts.push(...describeChange("Self", shares(selfBefore, self), view.profile, name),
            ...describeChange("Total", shares(totalBefore, total), view.profile, name));
        facts.push(describeWeights(view, [totalBefore[name], total[name]]));
    } else {
        const side = weightsOnSide(view);
        facts.push(["Self", formatWeight(side.self[name], settings), formatShare(side.self[name], whole)]);
        facts.push(["Total", formatWeight(side.total[name], settings), formatShare(side.total[name], whole)]);
        if (node !== undefined && count > 1) {
            const weight = view.weights[node];
            facts.push(["Here", formatWeight(weight, settings), formatShare(weight, whole)]);
        }
    }
    const isDrawn = view.drawsBefore || weightsOnSide(view).total[name] > 0;
    const places = isDrawn ? `${formatThings(count, "places")} in the graph` : "not in the graph";
    return [...facts, ...describeModule(view, name, places)];
}

/**
 * Describes the weights before and after, only the latter if the former are scaled.
 *
 * @param {View} view
 * @param {number[]} weights
 * @returns {[label: string, value: string, extra: string]}
 */
function describeWeights({ settings, profile: { isScaled } }, weights) {
    /** @param {number} weight */
    const format = weight => formatWeight(weight, settings), [before, after] = weights;
    return isScaled ? ["Weight", format(after), "after"]
        : ["Weight", weights.map(format).join(" → "), formatSigned(after - before, format)];
}

/**
 * @param {"Self" | "Total"} label
 * @param {number[]} shares
 * @param {Profile} profile
 * @param {number} name
 * @returns {[label: string, value: string, extra: string][]}
 */
function describeChange(label, [before, after], profile, name) {
    if (before === 0 && after === 0) return [[label, "–", "no samples"]];
    const { judged, isFlattened } = profile;
    const isReal = isFlattened ? before !== after : isSignificant(profile, name, label === "Self" ? "self" : "total");
    const judgement = !judged && !isFlattened ? "" : isReal ? " · significant" : " · may be noise";
    const points = formatPoints(before, after) + judgement;
    return [[label, `${formatShare(before, 1)} → ${formatShare(after, 1)}`, points]];
}

/**
 * @param {View} view
 * @param {number} name
 * @param {string} [extra]
 * @returns {[label: string, value: string, extra: string][]}
 */
function describeModule({ profile }, name, extra = "") {
    const module = moduleOfName(profile, name);
    return module || extra ? [["Module", module || "–", extra]] : [];
}
