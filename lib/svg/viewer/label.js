// Cuts labels of frames to fit, so that the most informative part remains. `lib/svg/label.rs` follows the same rules.

// Generic types that say less than their first type argument.
const WRAPPERS = ["GenFuture", "Pin", "Box", "AssertUnwindSafe", "Instrumented"];

// What compilers append to the name of a part or a copy of a function, and extensions of files.
const SUFFIX = new RegExp("\\.(cold|part|isra|constprop|localalias|lto_priv|llvm|_omp_fn|resume|destroy|cleanup|so|m?js"
    + "|py|rb|php|c|dll|exe)(\\.|$)");

// The kind of code that V8 writes before the name of a function.
const V8_KIND = /^(JS|LazyCompile|Function|Script|Eval|Builtin|BytecodeHandler):(?=[\w$*~^+])/;

// The number of a line or a column.
const SOURCE_LINE = /(?<=[^:]):\d+$/;

// The number of times that a type is unwrapped. Deeper nesting does not help, and a name can be a megabyte of brackets.
const MAX_NESTING = 4;

/**
 * Returns as much of a name as fits. If the whole name does not fit, its last parts remain: the function rather than
 * its namespaces. Type arguments are preferred to the namespaces of their type. If the last part does not fit, its
 * beginning remains.
 *
 * @param {string} name
 * @param {Predicate} fits
 */
function fitLabel(name, fits) {
    if (fits(name)) return name;
    const { text, inner, offset } = simplifyName(name), starts = findParts(text), last = starts.length - 1;
    /** @type {(start: number, inner?: string) => string} */
    const tail = (start, inner) => {
        return inner ? `${text.slice(start, offset)}<${inner}>${text.slice(offset)}` : text.slice(start);
    };
    /** @type {(last: number, inner?: string) => string} */
    const longestTail = (last, inner) => {
        let longest = "";
        for (let part = last; part >= 0 && fits(tail(starts[part], inner)); part--) longest = tail(starts[part], inner);
        return longest;
    };
    const type = starts.findLastIndex(start => start < offset), detailed = inner && longestTail(type, inner);
    if (detailed) return detailed;
    const cut = inner && truncateRight(inner, cut => fits(tail(starts[type], cut)));
    if (cut.length > 8) return tail(starts[type], cut);
    return longestTail(last) || truncateRight(text.slice(starts[last]), fits);
}

/**
 * Returns the beginning of a name that fits, with `…` after it if something is missing.
 *
 * @param {string} name
 * @param {Predicate} fits
 */
function truncateRight(name, fits) {
    if (fits(name)) return name;
    const characters = [...name];
    let low = 0, high = characters.length;
    while (low < high) {
        const middle = (low + high + 1) >> 1;
        if (fits(characters.slice(0, middle).join("") + "…")) low = middle; else high = middle - 1;
    }
    return low > 0 ? characters.slice(0, low).join("") + "…" : "";
}

/**
 * Returns a name without its least informative parts: the hash of a Rust name, a source file in parentheses, the trait
 * in `<Type as Trait>::method`, type arguments. Wrapper types are replaced with what they contain. For a method of
 * a trait, `inner` has the arguments of the type if they say anything, and `offset` says where they belong in `text`.
 *
 * @param {string} name
 */
function simplifyName(name) {
    name = name.replace(/::h[0-9a-f]{16}$/i, "").replace(/(?<=.) \([^()]*[./:][^()]*\)$/, "");
    if (SOURCE_LINE.test(name)) name = removeSource(name);
    name = name.replace(V8_KIND, "");
    const original = name;
    for (let depth = 0; depth < MAX_NESTING; depth++) name = removeTrait(name);
    const starts = findParts(name), last = starts.length - 1;
    let text = "", inner = "", offset = 0;
    starts.slice(0, last).forEach((start, index) => {
        const [, part = "", separator = ""] = name.slice(start, starts[index + 1]).match(/^(.*?)([:/. \\`!]*)$/s) ?? [];
        const bracket = part.startsWith("operator") || part.endsWith("<locals>") ? -1 : part.indexOf("<");
        text += bracket > 0 ? part.slice(0, bracket).replace(/::$/, "") : part;
        if (bracket > 0 && index === last - 1 && name !== original) {
            inner = part.slice(bracket + 1, -1);
            offset = text.length;
        }
        text += separator;
    });
    text += removeTurbofish(name.slice(starts[last]));
    return { text, inner: inner.includes("::") ? simplifyTypes(inner) : "", offset };
}

/**
 * Removes the source line from `JS:*parse /app/x.js:3:7` and `main:src/main.rs:3`.
 *
 * @param {string} name
 */
function removeSource(name) {
    const start = name.search(/(?<=[\w$>)\]]) (\/|[\w-]+:(?!:))/);
    if (start > 0) return name.slice(0, start);
    name = name.replace(SOURCE_LINE, "");
    const end = name.search(/(?<=[^:]):(?![:*~^+])/);
    return end > 0 && /[./<>]/.test(name.slice(end)) ? name.slice(0, end) : name;
}

/**
 * Removes the type arguments of a Rust function: `to_vec::<T>` becomes `to_vec`.
 *
 * @param {string} part
 */
function removeTurbofish(part) {
    const start = part.indexOf("::<");
    if (start <= 0 || part.startsWith("<impl", start + 2)) return part;
    const end = findListEnd(part, start + 3);
    return part.slice(0, start) + part.slice(end + 1);
}

/**
 * Returns the offset of the bracket that closes a list of types.
 *
 * @param {string} types
 * @param {number} offset start of the list
 */
function findListEnd(types, offset) {
    for (let end = findArgumentEnd(types, offset); ; end = findArgumentEnd(types, end + 1)) {
        if (types[end] !== ",") return end;
    }
}

/**
 * Removes the paths of the standard library from types, and all but the trait from `dyn Trait<A> + B`. If some types
 * still have a path, those without one become `_`.
 *
 * @param {string} types
 */
function simplifyTypes(types) {
    types = types.replace(/\b(core|alloc|std)::(\w+::)*(?=\w)/g, "");
    let text = "", offset = 0;
    for (let found = types.indexOf("dyn "); found >= 0; found = types.indexOf("dyn ", offset)) {
        let end = found + 4;
        while (end < types.length && /[\w:]/.test(types[end])) end++;
        text += types.slice(offset, end);
        offset = findArgumentEnd(types, end);
    }
    const args = splitArguments(text + types.slice(offset)), isAnyQualified = args.some(type => type.includes("::"));
    return args.map(type => (isAnyQualified && !type.includes("::") ? "_" : type)).join(", ");
}

/** @param {string} types types separated by commas */
function splitArguments(types) {
    const args = [];
    for (let offset = 0; offset < types.length;) {
        const end = findArgumentEnd(types, offset);
        args.push(types.slice(offset, end).trim());
        offset = end + 1;
    }
    return args;
}

/**
 * Returns the end of a type: the next comma or closing bracket that is not part of it.
 *
 * @param {string} types
 * @param {number} offset
 */
function findArgumentEnd(types, offset) {
    for (let depth = 0; offset < types.length; offset++) {
        if (types[offset] === ">" && types[offset - 1] === "-") continue;
        if (depth === 0 && ">)],".includes(types[offset])) break;
        if ("<([".includes(types[offset])) depth++;
        if (">)]".includes(types[offset])) depth--;
    }
    return offset;
}

/**
 * Turns `<Type as Trait>::method` into `Type::method`.
 *
 * @param {string} name
 */
function removeTrait(name) {
    if (name[0] !== "<") return name;
    for (let offset = 1, depth = 1, typeEnd = -1; offset < name.length; offset++) {
        const character = name[offset];
        if (character === " " && depth === 1 && typeEnd < 0 && name.startsWith(" as ", offset)) typeEnd = offset;
        if ("<([".includes(character)) depth++;
        if (")]".includes(character) || (character === ">" && name[offset - 1] !== "-")) depth--;
        if (depth > 0) continue;
        // Other names can be in brackets, too: `<module> (main.py:12)`.
        if (!name.startsWith("::", offset + 1)) return name;
        const outer = name.slice(1, typeEnd < 0 ? offset : typeEnd), inner = unwrapType(outer);
        const rest = name.slice(offset + 1);
        // The only method of a wrapped closure says nothing.
        return inner !== outer && inner.endsWith("}") && !rest.includes("{") ? inner : inner + rest;
    }
    return name;
}

/**
 * Returns the qualified type in a wrapper such as `Pin<&mut T, A>`, or the type itself.
 *
 * @param {string} type
 */
function unwrapType(type) {
    for (let depth = 0; depth < MAX_NESTING; depth++) {
        const open = type.indexOf("<"), wrapper = type.slice(0, Math.max(open, 0)).split(":").at(-1) ?? "";
        if (!type.endsWith(">") || !WRAPPERS.includes(wrapper)) return type;
        const first = type.slice(open + 1, findArgumentEnd(type, open + 1)).replace(/^&*(mut )*/, "");
        if (!first.includes("::") || first.startsWith("dyn ")) return type;
        type = first;
    }
    return type;
}

/**
 * Returns the offsets of the parts of a qualified name, outside of all brackets. A closure belongs to the part before
 * it, and the call operator of a C++ lambda to the lambda.
 *
 * @param {string} name
 */
function findParts(name) {
    // A name in angle brackets, as Python has them, is one part.
    if (/^<[^<>]*>$/.test(name)) return [0];
    const starts = [0], lastDot = name.lastIndexOf("."), firstDot = findFirstDot(name), arity = name.search(ARITY);
    let depth = 0;
    for (let offset = 0; offset < name.length; offset++) {
        const character = name[offset], next = name[offset + 1];
        if (!"<>".includes(character) || !/(operator<?|-)$/.test(name.slice(Math.max(0, offset - 9), offset))) {
            if ("<([{".includes(character)) depth++;
            if (">)]}".includes(character) && depth > 0) depth--;
        } else if (character === "<" && name[offset - 1] === "-") depth++;
        const isAfterColon = name[offset - 1] === ":";
        // The space after a return type, as in `int Counter.next`.
        const isAfterType = character === " " && offset < lastDot
            && !name.endsWith("operator", offset) && !"[(".includes(next);
        const isColon = character === ":" && (isAfterColon || arity > 0);
        const isDot = character === "."
            && (isAfterColon || (offset >= firstDot && !CLOSURE_OF_GO.test(name.slice(offset))));
        const isSeparator = (character === "/" && offset !== arity) || isColon || isDot || isAfterType
            || ("\\`!".includes(character) && /[a-z]/i.test(next));
        const isCallOperator = name.startsWith("}::operator()", offset - 2);
        const isTurbofish = next === "<" && !name.startsWith("<impl", offset + 1);
        const isPartNext = next !== undefined && next !== "{" && next !== ":" && !isTurbofish;
        if (depth === 0 && isSeparator && !isCallOperator && isPartNext) starts.push(offset + 1);
    }
    return starts;
}

// The number of arguments of an Erlang function, `lists:map/2`, and what says nothing alone.
const ARITY = /\/\d+$/, CLOSURE_OF_GO = /^\.(func|gowrap|deferwrap)?\d/;

/**
 * Returns the offset from which on dots separate the parts of a name, as in `com.example.Main.run`, `main.run` and
 * `net/http.(*conn).serve`.
 *
 * @param {string} name
 */
function findFirstDot(name) {
    const slash = name.replace(ARITY, "").lastIndexOf("/"), isFile = slash >= 0 && /^\/|:\d+$/.test(name);
    return isFile || name.includes("::") || SUFFIX.test(name.slice(slash + 1).replace(ARITY, "")) ? Infinity : slash;
}
