// What of a name fits: all of it, else its last parts (the function rather than its namespaces) with ".." before them,
// else the beginning of its last part.

function label(name, fits) {
    if (fits(name)) return name;
    name = name.replace(/::h[0-9a-f]{16}$/i, "");
    const starts = parts(name);
    let fitting = "";
    for (let part = starts.length - 1; part >= 0; part--) {
        const tail = (starts[part] > 0 ? ".." : "") + name.slice(starts[part]);
        if (!fits(tail)) break;
        fitting = tail;
    }
    if (fitting) return fitting;
    const last = [...name.slice(starts[starts.length - 1])];
    let low = 0, high = last.length;
    while (low < high) {
        const middle = (low + high + 1) >> 1;
        if (fits(last.slice(0, middle).join("") + "..")) low = middle; else high = middle - 1;
    }
    return low > 0 ? last.slice(0, low).join("") + ".." : "";
}

// Where the parts of a qualified name begin, outside of all brackets. A closure belongs to the part before it.
function parts(name) {
    const dots = !name.includes("::") && !name.includes("/") && name.split(".").length > 2 && /(^|\.)[A-Z]/.test(name);
    const starts = [0];
    let depth = 0;
    for (let at = 0; at < name.length; at++) {
        const character = name[at], next = name[at + 1];
        if ("<([{".includes(character)) depth++;
        if (">)]}".includes(character) && depth > 0) depth--;
        const ends = (character === ":" && name[at - 1] === ":") || character === "/" || (dots && character === ".");
        if (depth === 0 && ends && next !== undefined && next !== "{" && next !== ":") starts.push(at + 1);
    }
    return starts;
}
