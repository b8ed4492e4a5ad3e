// What of a name fits: all of it, else its last parts (the function rather than its namespaces) with ".." before them,
// else the beginning of its last part.

function label(name, fits) {
    if (fits(name)) return name;
    name = short(name);
    const starts = parts(name);
    let fitting = "";
    for (let part = starts.length - 1; part >= 0; part--) {
        const tail = (starts[part] > 0 ? ".." : "") + name.slice(starts[part]);
        if (!fits(tail)) break;
        fitting = tail;
    }
    if (fitting) return fitting;
    return head(name.slice(starts[starts.length - 1]), fits);
}

// The beginning of a name, as much of it as fits.
function head(name, fits) {
    if (fits(name)) return name;
    const characters = [...name];
    let low = 0, high = characters.length;
    while (low < high) {
        const middle = (low + high + 1) >> 1;
        if (fits(characters.slice(0, middle).join("") + "..")) low = middle; else high = middle - 1;
    }
    return low > 0 ? characters.slice(0, low).join("") + ".." : "";
}

// Types that tell nothing but what is in them.
const WRAPPERS = ["GenFuture", "Pin", "Box", "AssertUnwindSafe", "Instrumented"];

// A name without what is told least by: a Rust name's hash, the trait in `<Type as Trait>::method`, the type parameters
// of all but its last part. What is in a wrapper stands for it, and a closure in one for its only method, too.
function short(name) {
    name = name.replace(/::h[0-9a-f]{16}$/i, "");
    // Types within types: a few are enough, and a name may be a megabyte of brackets.
    for (let times = 0; times < 4; times++) name = withoutTrait(name);
    const starts = parts(name);
    return starts.map((start, at) => {
        if (at === starts.length - 1) return name.slice(start);
        const [, part, separator] = name.slice(start, starts[at + 1]).match(/^(.*?)([:/. ]*)$/s);
        const parameters = part.startsWith("operator") ? -1 : part.indexOf("<");
        return (parameters > 0 ? part.slice(0, parameters) : part) + separator;
    }).join("");
}

// `<Type as Trait>::method` as `Type::method`.
function withoutTrait(name) {
    if (name[0] !== "<") return name;
    for (let at = 1, depth = 1, type = -1; at < name.length; at++) {
        const character = name[at];
        if (character === " " && depth === 1 && type < 0 && name.startsWith(" as ", at)) type = at;
        if ("<([".includes(character)) depth++;
        if (")]".includes(character) || (character === ">" && name[at - 1] !== "-")) depth--;
        if (depth > 0) continue;
        const of = name.slice(1, type < 0 ? at : type), inner = inside(of), rest = name.slice(at + 1);
        return inner !== of && inner.endsWith("}") && !rest.includes("{") ? inner : inner + rest;
    }
    return name;
}

// What is in a wrapper such as `Pin<&mut T, A>`, by its full name; otherwise the type itself.
function inside(type) {
    for (let times = 0; times < 4; times++) {
        const open = type.indexOf("<"), wrapper = type.slice(0, Math.max(open, 0)).split(":").at(-1);
        if (!type.endsWith(">") || !WRAPPERS.includes(wrapper)) return type;
        let end = open + 1;
        for (let depth = 0; end < type.length - 1 && (type[end] !== "," || depth > 0); end++) {
            if ("<([".includes(type[end])) depth++;
            if (">)]".includes(type[end])) depth--;
        }
        const first = type.slice(open + 1, end).replace(/^&*(mut )*/, "");
        if (!first.includes("::") || first.startsWith("dyn ")) return type;
        type = first;
    }
    return type;
}

// Where the parts of a qualified name begin, outside of all brackets. A closure belongs to the part before it, and a C++
// lambda's operator to the lambda.
function parts(name) {
    const dots = !name.includes("::") && !name.includes("/") && name.split(".").length > 2 && /(^|\.)[A-Z]/.test(name);
    const starts = [0], lastDot = name.lastIndexOf(".");
    let depth = 0;
    for (let at = 0; at < name.length; at++) {
        const character = name[at], next = name[at + 1];
        if (!"<>".includes(character) || !/(operator<?|-)$/.test(name.slice(Math.max(0, at - 9), at))) {
            if ("<([{".includes(character)) depth++;
            if (">)]}".includes(character) && depth > 0) depth--;
        } else if (character === "<" && name[at - 1] === "-") depth++;
        const afterColon = name[at - 1] === ":";
        // A type that is returned, as in `int Counter.next`.
        const isType = character === " " && at < lastDot && !name.endsWith("operator", at) && !"[(".includes(next);
        const ends = character === "/" || (character === ":" && afterColon) || (character === "." && (dots || afterColon)) || isType;
        const isOfLambda = name.startsWith("}::operator()", at - 2);
        if (depth === 0 && ends && !isOfLambda && next !== undefined && next !== "{" && next !== ":") starts.push(at + 1);
    }
    return starts;
}
