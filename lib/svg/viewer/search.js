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
    // A name in brackets is no class of characters.
    if (matches.includes(1) || /^\[[^\]]*]$/.test(pattern)) return { names: matches, error: "" };
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
 * Returns the weight of the stacks through matching functions in a range.
 *
 * @param {View} view
 * @param {[number, number]} range
 * @param {Uint8Array} seen gets 1 for each function with such a stack
 */
function countMatches({ tree: { name, end }, weights, match: { names } }, [first, last], seen) {
    let weight = 0;
    if (!names) return weight;
    for (let node = first, countedEnd = first; node < last; node++) {
        if (names[name[node]] === 0 || !(weights[node] > 0)) continue;
        seen[name[node]] = 1;
        if (node < countedEnd) continue;
        weight += weights[node];
        countedEnd = end[node];
    }
    return weight;
}

/**
 * Returns the result of the search in words.
 *
 * @param {View} view
 */
function describeMatches(view) {
    const { match, weights, whole, state: { zoom } } = view;
    if (!match.names) return "";
    const seen = new Uint8Array(match.names.length);
    const weight = Math.max(...findRanges(view).map(range => countMatches(view, range, seen)));
    const count = seen.reduce((sum, isSeen) => sum + isSeen, 0);
    if (match.error && count === 0) return `Invalid: ${match.error}`;
    if (count === 0) return "No match";
    const share = formatShare(weight, zoom ? weights[zoom] : whole);
    return `${share}${zoom ? " of the view" : ""} in ${formatThings(count, "functions")}`;
}
