// What of a name fits: all of it, else its last parts (the function rather than its namespaces) with ".." before them,
// else the beginning of its last part. What is in a type comes before the namespaces that the type is in.

function label(name, fits) {
    if (fits(name)) return name;
    const { text, inner, at } = short(name), starts = parts(text);
    const tail = (start, inner) => (start > 0 ? ".." : "") + (inner ? `${text.slice(start, at)}<${inner}>${text.slice(at)}` : text.slice(start));
    const longest = (last, inner) => {
        let fitting = "";
        for (let part = last; part >= 0 && fits(tail(starts[part], inner)); part--) fitting = tail(starts[part], inner);
        return fitting;
    };
    const last = starts.length - 1, type = starts.findLastIndex(start => start < at);
    const detailed = inner && longest(type, inner);
    const cut = inner && !detailed ? head(inner, cut => fits(tail(starts[type], cut))) : "";
    return detailed || (cut.length > 8 ? tail(starts[type], cut) : longest(last) || head(text.slice(starts[last]), fits));
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
// of all but its last part. What is in a wrapper stands for it, and a closure in one for its only method, too. Of a
// trait's method also what was in the type, if that tells anything, and where.
function short(name) {
    name = name.replace(/::h[0-9a-f]{16}$/i, "");
    const whole = name;
    // Types within types: a few are enough, and a name may be a megabyte of brackets.
    for (let times = 0; times < 4; times++) name = withoutTrait(name);
    const starts = parts(name), last = starts.length - 1;
    let text = "", inner = "", at = 0;
    starts.slice(0, last).forEach((start, number) => {
        const [, part, separator] = name.slice(start, starts[number + 1]).match(/^(.*?)([:/. ]*)$/s);
        const parameters = part.startsWith("operator") ? -1 : part.indexOf("<");
        text += parameters > 0 ? part.slice(0, parameters) : part;
        if (parameters > 0 && number === last - 1 && name !== whole) [inner, at] = [part.slice(parameters + 1, -1), text.length];
        text += separator;
    });
    return { text: text + name.slice(starts[last]), inner: inner.includes("::") ? plain(inner) : "", at };
}

// Types without the paths of the standard library, and of `dyn Trait<A> + B` only the trait. Where some have a path then,
// those that have none tell nothing.
function plain(types) {
    types = types.replace(/\b(core|alloc|std)::(\w+::)*(?=\w)/g, "");
    let text = "", at = 0;
    for (let found = types.indexOf("dyn "); found >= 0; found = types.indexOf("dyn ", at)) {
        let end = found + 4;
        while (end < types.length && /[\w:]/.test(types[end])) end++;
        text += types.slice(at, end);
        at = endOfArgument(types, end);
    }
    const all = argumentsOf(text + types.slice(at)), tells = type => type.includes("::");
    return all.map(type => (tells(type) || !all.some(tells) ? type : "_")).join(", ");
}

// Types that are set apart by commas.
function argumentsOf(types) {
    const all = [];
    for (let at = 0; at < types.length;) {
        const end = endOfArgument(types, at);
        all.push(types.slice(at, end).trim());
        at = end + 1;
    }
    return all;
}

// Where a type ends: at a comma or bracket that is not within it.
function endOfArgument(types, at) {
    for (let depth = 0; at < types.length; at++) {
        if (types[at] === ">" && types[at - 1] === "-") continue;
        if (depth === 0 && ">)],".includes(types[at])) break;
        if ("<([".includes(types[at])) depth++;
        if (">)]".includes(types[at])) depth--;
    }
    return at;
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
        const first = type.slice(open + 1, endOfArgument(type, open + 1)).replace(/^&*(mut )*/, "");
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
