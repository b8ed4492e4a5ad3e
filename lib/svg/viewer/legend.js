// The legend: what the colours mean, with shares that are true for the view.

// The classes of colours from which all modules share an entry, with its label.
const FIRST_SHARED_CLASS = 8, RUNTIME_CLASS = 9, KERNEL_CLASS = 10, VM_CLASS = 11, THREAD_CLASS = 14, WAKER_CLASS = 18;
// The least share of a function without self weight for which its colour is explained.
const CALLER_SHARE = 0.01;
const SHARED_CLASSES = ["other modules", "std, libc", "kernel", "interpreter, VM", "generated code", "unknown",
    "threads", "off-CPU", "runnable", "unsampled", "wakers"];

/**
 * Creates the entries of the legend.
 *
 * @param {View} view
 * @param {(kind: number | undefined) => void} highlight called with a class of colours when its entry is pointed at or
 *     has the focus
 */
function createLegend(view, highlight) {
    if (view.side === "difference") return createDifferenceLegend(view);
    const { profile, zoomed: { base, isWhole } } = view;
    if (view.settings.diffusion) return createDiffusionLegend();
    const shares = sumByColour(view);
    const entries = shares.map(({ label, name, weight, kind }) => {
        const swatch = createHtml("i");
        const entry = createHtml("span", {}, swatch, createHtml("b", {}, label),
            weight > 0 ? formatShare(weight, base) : "");
        swatch.style.background = colourOfName(profile, name);
        if (kind >= 0) {
            entry.tabIndex = 0;
            for (const name of ["mouseenter", "focus"]) entry.addEventListener(name, () => highlight(kind));
            for (const name of ["mouseleave", "blur"]) entry.addEventListener(name, () => highlight(undefined));
        }
        return entry;
    });
    const title = isWhole ? "Self" : base === view.whole ? "Self in the profile" : "Self in the view";
    return entries.length > 0 ? [createHtml("span", {}, title), ...entries] : [];
}

/**
 * Returns the self weights of functions by what their colour says: the module, or the marker in palettes without
 * modules. A colour that only callers have comes with the weight 0.
 *
 * @param {View} view
 */
function sumByColour(view) {
    const { profile, zoomed: { functions, base }, side, state: { changes } } = view, { names, looks } = profile;
    const { leaf, leafBefore = leaf } = functions, { total, self: charged } = weightsOnSide({ functions, side });
    // The table leaves the runtime out.
    const self = changes.charge ? charged : side === "before" ? leafBefore : leaf;
    /** @type {Map<string, { label: string, name: number, weight: number, kind: number }>} */
    const sums = new Map();
    for (let name = 0; name < names.length; name++) {
        const kind = classOfName(profile, name), isMarker = Boolean(looks[LOOKS * name + 3] & STATE);
        const isCaller = total[name] >= CALLER_SHARE * base && kind >= 0 && kind !== THREAD_CLASS;
        if (!(isCaller || (self[name] > 0 && (kind >= 0 || isMarker)))) continue;
        const label = kind >= FIRST_SHARED_CLASS && !isMarker ? SHARED_CLASSES[kind - FIRST_SHARED_CLASS]
            : isMarker ? names[name] : moduleOfName(profile, name) || "program";
        const sum = sums.get(label);
        if (sum) sum.weight += self[name]; else sums.set(label, { label, name, weight: self[name], kind });
    }
    const sorted = [...sums.values()].sort((a, b) =>
        Number(a.kind >= FIRST_SHARED_CLASS) - Number(b.kind >= FIRST_SHARED_CLASS) || b.weight - a.weight);
    return sorted.filter(({ weight, kind }, index) =>
        weight > 0 || sorted.findIndex(other => other.kind === kind) === index);
}

/** Explains colours that are shares of the total. */
function createDiffusionLegend() {
    const entries = [1, 10, 25, 50, 100].map(percent => {
        const swatch = createHtml("i");
        swatch.style.background = colourOfShare(percent / 100);
        return createHtml("span", {}, swatch, createHtml("b", {}, `${percent} %`));
    });
    return [createHtml("span", {}, "Share of the total"), ...entries];
}

/** @param {View} view */
function createDifferenceLegend({ settings: { negate }, profile: { judged, isFlattened }, filtered, drawsBefore }) {
    const { total, totalBefore } = filtered, colours = ["fell3", "fell2", "fell1", "same", "grew1", "grew2", "grew3"];
    const labels = [...STEPS.toReversed().map(step => `−${step}`), "0", ...STEPS.map(step => `+${step}`)];
    const swatches = colours.map((colour, index) => {
        const swatch = createHtml("i");
        swatch.style.background = `var(--${negate && index !== 3 ? colours[6 - index] : colour})`;
        return createHtml("span", {}, swatch, createHtml("b", {}, labels[index]));
    });
    const gone = drawsBefore ? 0
        : totalBefore?.reduce((sum, before, node) => sum + Number(before > 0 && total[node] === 0), 0) ?? 0;
    const note = gone > 0 ? `${formatThings(gone, "frames")} gone, shown in Before` : "";
    const words = (/** @type {string} */ text) => createHtml("span", {}, text);
    const noise = judged || isFlattened ? "Grey: no change, or it may be noise" : "";
    return [words(`Points of the total${isFlattened ? " after" : ""}`), ...swatches,
        words(`Width: ${drawsBefore ? "before" : "after"}`), words(noise), words(note)];
}
