// Finds functions by a text or a regular expression.

/**
 * Finds the names that contain a text, ignoring case. If there is none, the text is a regular expression.
 *
 * @param {string[]} names
 * @param {string} pattern
 * @returns {Match}
 */
function findMatches(names, pattern) {
    if (!pattern) return { names: null, error: "" };
    const text = pattern.toLowerCase();
    const matches = Uint8Array.from(names, name => Number(name.toLowerCase().includes(text)));
    if (matches.includes(1)) return { names: matches, error: "" };
    try {
        const expression = new RegExp(pattern, "i");
        return { names: Uint8Array.from(names, name => Number(expression.test(name))), error: "" };
    } catch (error) {
        // Browsers write the pattern before the reason.
        const { message } = /** @type {Error} */ (error);
        return { names: matches, error: message.slice(message.lastIndexOf(": ") + 1).trim() };
    }
}

/**
 * Returns the first and the end node of each range to search: the zoomed subtree, or both halves of a sandwich.
 *
 * @param {View} view
 * @returns {[number, number][]}
 */
function findRanges({ tree, state: { zoom } }) {
    const { lower, end, parent } = tree;
    return zoom === 0 && lower ? [[PIVOT, lower], [lower, parent.length]] : [[Math.max(zoom, 1), end[zoom]]];
}

/**
 * Returns the number of matching functions in a range, and the weight of the stacks through them.
 *
 * @param {View} view
 * @param {[number, number]} range
 */
function countMatches({ tree: { name, end }, weights, match }, [first, last]) {
    const { names } = match, seen = new Set();
    let weight = 0;
    if (!names) return { functions: seen, weight };
    for (let node = first, countedEnd = first; node < last; node++) {
        if (names[name[node]] === 0 || !(weights[node] > 0)) continue;
        seen.add(name[node]);
        if (node < countedEnd) continue;
        weight += weights[node];
        countedEnd = end[node];
    }
    return { functions: seen, weight };
}

/**
 * Returns the result of the search in words.
 *
 * @param {View} view
 */
function describeMatches(view) {
    const { match, weights, whole, state: { zoom } } = view;
    if (!match.names) return "";
    const [result, callers] = findRanges(view).map(range => countMatches(view, range));
    const count = new Set([...result.functions, ...callers?.functions ?? []]).size;
    if (match.error && count === 0) return `Invalid: ${match.error}`;
    if (count === 0) return "No match";
    const weight = Math.max(result.weight, callers?.weight ?? 0);
    const share = formatShare(weight, zoom ? weights[zoom] : whole);
    return `${share}${zoom ? " of the view" : ""} in ${formatThings(count, "functions")}`;
}
