// Computes what is shown from the profile and the state. Each step keeps its last result.

class ViewBuilder {
    /**
     * @param {Profile} profile
     * @param {Settings} settings
     */
    constructor(profile, settings) {
        const { names } = profile;
        this.profile = profile;
        this.settings = settings;
        /** The settings for weights that may count nothing. */
        this.scaled = { ...settings, countName: `scaled ${settings.countName}` };
        /** The settings for durations. */
        this.timed = { ...settings, countName: "ns", factor: 1 };
        this.match = memoize((/** @type {string} */ pattern) => findMatches(names, pattern));
        this.filter = memoizeWork(filterTree);
        this.isolate = memoizeWork(isolateFunction);
        this.sumFunctions = memoizeWork(sumFunctions);
        this.chart = memoizeWork(orderByTime);
    }

    /**
     * Derives the trees that changes lead to, so that `build` finds them.
     *
     * @param {Changes} changes
     * @returns {Work<{ filtered: Tree, tree: Tree }>}
     */
    *derive({ only, hide, omit, recursion, invert, callers, callees, between, chart }) {
        const { profile, profile: { tree: whole, keys: names } } = this;
        if (chart && profile.buildChart && !callers && !callees && !between) {
            const tree = yield* this.chart(profile, only, hide, omit, recursion);
            return { filtered: tree, tree };
        }
        const filtered = yield* this.filter(whole, names, only, hide, omit, recursion);
        const isInverted = invertsStacks(this.settings, invert);
        const tree = yield* this.isolate(filtered, names, isInverted, callers, callees, between);
        return { filtered, tree };
    }

    /**
     * Does all the work that `build` needs for changes.
     *
     * @param {Changes} changes
     * @returns {Work<void>}
     */
    *prepare(changes) {
        const { filtered } = yield* this.derive(changes);
        yield* this.sumFunctions(filtered, this.profile, changes.charge, 0);
    }

    /**
     * Returns what is shown in a state.
     *
     * @param {State} state
     * @returns {View}
     */
    build(state) {
        const { profile, sumFunctions } = this, { changes } = state;
        const side = !profile.differential ? "after"
            : changes.side === "before" || changes.side === "after" ? changes.side : "difference";
        const { filtered, tree } = finish(this.derive(changes));
        const isBefore = side === "before", settings = tree.time ? this.timed
            : isBefore && profile.isScaled ? this.scaled : this.settings;
        const { ownBefore, totalBefore } = tree, isDifference = side === "difference";
        // A difference is as wide as the weights after, unless all is gone.
        const drawsBefore = isBefore || (isDifference && tree.total[0] === 0);
        const [weights = tree.total, own = tree.own] = drawsBefore ? [totalBefore, ownBefore] : [];
        const sumBefore = filtered.totalBefore?.[0] ?? 0;
        // The file says what the whole width represents, for the profile's tree only.
        const wholeAfter = filtered === profile.tree ? profile.whole : filtered.total[0];
        return {
            profile, settings, state, side, filtered, tree, weights, own, wholeAfter, drawsBefore,
            wholeBefore: profile.isFlattened && isDifference ? wholeAfter : sumBefore,
            whole: isBefore || (isDifference && wholeAfter === 0) ? sumBefore : wholeAfter,
            get functions() {
                return finish(sumFunctions(filtered, profile, changes.charge, 0));
            },
            get zoomed() {
                const { zoom } = state, hasOthers = tree.hasPivot || (tree.isInverted && zoom !== 0);
                if (hasOthers || !zoom) return { functions: this.functions, base: this.whole, isWhole: !hasOthers };
                const functions = finish(sumFunctions(tree, profile, changes.charge, zoom));
                return { functions, base: weights[zoom], isWhole: weights[zoom] === this.whole };
            },
            match: this.match(state.search),
            rootAtTop: changes.root !== "bottom",
        };
    }
}

/**
 * Returns true if stacks are shown from their leaves, as they are in a reversed picture until the reader turns them.
 *
 * @param {Settings} settings
 * @param {string} invert
 */
function invertsStacks({ reversed }, invert) {
    return invert ? invert !== "no" : Boolean(reversed);
}

/**
 * Returns a tree after all filters.
 *
 * @param {Tree} tree
 * @param {string[]} names
 * @param {string} only
 * @param {string} hide
 * @param {string} omit
 * @param {string} recursion
 */
function* filterTree(tree, names, only, hide, omit, recursion) {
    for (const name of splitLines(only)) tree = filterStacks(tree, findNames(names, name), true);
    if (hide) tree = filterStacks(tree, findNames(names, hide), false);
    if (omit) tree = yield* omitFrames(tree, findNames(names, omit), names);
    return recursion ? yield* mergeRecursion(tree, names) : tree;
}

/**
 * Returns the stacks in the order of time.
 *
 * @param {Profile} profile
 * @param {string} only
 * @param {string} hide
 * @param {string} omit
 * @param {string} recursion
 */
function* orderByTime({ buildChart, tree }, only, hide, omit, recursion) {
    return buildChart ? yield* buildChart({ only, hide, omit, recursion }) : tree;
}

/**
 * Returns the tree of a function's callers or callees, or of both, if there is one to be shown.
 *
 * @param {Tree} tree
 * @param {string[]} names
 * @param {boolean} invert
 * @param {string} callers
 * @param {string} callees
 * @param {string} between
 */
function* isolateFunction(tree, names, invert, callers, callees, between) {
    if (callers) return yield* buildCallerTree(tree, findNames(names, callers), names);
    if (callees) return yield* buildCalleeTree(tree, findNames(names, callees), names);
    if (between) return yield* buildSandwich(tree, findNames(names, between), names);
    return invert ? yield* invertTree(tree, names) : tree;
}

/**
 * Returns the weight and the share of a node and of what it is compared with.
 *
 * @param {View} view
 * @param {number} node
 */
function measureNode(view, node) {
    const { tree, weights, whole } = view, before = tree.totalBefore?.[node] ?? 0, after = tree.total[node];
    return { total: node === 0 ? whole : weights[node], totals: sharesOfWeights(view, before, after),
        weights: [before, after] };
}

/**
 * Returns the self weight of a node and its shares before and after. The stacks through a caller end in its callees:
 * there the weight is that of the function, with all its places.
 *
 * @param {View} view
 * @param {number} node
 */
function measureSelf(view, node) {
    const { tree, drawsBefore } = view, ofFunction = node > 0 && hasCallersOn(tree, node);
    const { leaf, leafBefore } = ofFunction ? view.functions : { leaf: tree.own, leafBefore: tree.ownBefore };
    const index = ofFunction ? tree.name[node] : node, before = leafBefore?.[index] ?? 0, after = leaf[index];
    return { self: drawsBefore ? before : after, selves: sharesOfWeights(view, before, after), ofFunction };
}

/**
 * Returns the shares of weights before and after.
 *
 * @param {View} view
 * @param {number} before
 * @param {number} after
 */
function sharesOfWeights({ whole, wholeBefore }, before, after) {
    return [wholeBefore > 0 ? before / wholeBefore : 0, whole > 0 ? after / whole : 0];
}

/** @param {View} view @param {number} node */
function nameOfNode({ tree, profile }, node) {
    return node === 0 ? "all" : profile.names[tree.name[node]];
}

/**
 * Returns the class of colours of a name, or -1 if its colour is its own.
 *
 * @param {{ looks: Uint8Array }} profile
 * @param {number} name
 */
function classOfName({ looks }, name) {
    return ((looks[LOOKS * name + 3] & ~SIGNIFICANT) >> CLASS_SHIFT) - 1;
}

/**
 * Returns true unless it was judged that a function's difference may be noise.
 *
 * @param {Profile} profile
 * @param {number} name
 * @param {"self" | "total"} kind
 */
function isSignificant({ judged, looks }, name, kind) {
    return !judged || (looks[LOOKS * name + (kind === "self" ? 3 : 5)] & SIGNIFICANT) !== 0;
}

/**
 * @param {{ looks: Uint8Array, modules: string[] }} profile
 * @param {number} name
 */
function moduleOfName({ looks, modules }, name) {
    return modules[looks[LOOKS * name + 4] + 256 * (looks[LOOKS * name + 5] & ~SIGNIFICANT)] ?? "";
}

/**
 * Returns the style of a name's colour.
 *
 * @param {Profile} profile
 * @param {number} name
 */
function colourOfName(profile, name) {
    const kind = classOfName(profile, name), { looks } = profile, offset = LOOKS * name;
    return kind >= 0 ? `var(--c${kind})` : `rgb(${looks.slice(offset, offset + 3).join()})`;
}
