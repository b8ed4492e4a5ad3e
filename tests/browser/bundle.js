// Bundles the scripts and styles of the viewers, without comments and with short names, for `fg-svg` and `fg-heatmap`:
// `node bundle.js` writes the bundles, and `node bundle.js --check` fails if they are out of date.

import { readFileSync, writeFileSync } from "node:fs";
import { minify } from "terser";

// The scripts share one scope. Those with constants come before those that need them at once.
const VIEWER = ["dom", "work", "format", "label", "profile", "transform", "functions", "layout", "link", "search",
    "view", "box", "graph", "table", "details", "legend", "target", "filters", "navigation", "actions", "menu", "page",
    "events", "app", "mount"]
    .map(name => `svg/viewer/${name}.js`);
const HEATMAP = ["samples", "chart", "command", "lanes", "map", "panel", "start"]
    .map(name => `heatmap/viewer/${name}.js`);

const BUNDLES = {
    "svg/viewer.min.js": [...VIEWER, "svg/viewer/start.js"],
    "svg/viewer.min.css": ["svg/viewer/viewer.css"],
    "heatmap/viewer.min.js": [...VIEWER, ...HEATMAP],
    "heatmap/viewer.min.css": ["heatmap/viewer/heatmap.css"],
};

/** @param {string} file path in `lib` */
const pathOf = file => new URL(`../../lib/${file}`, import.meta.url);

/**
 * Returns the FNV-1a hash of the sources. A unit test of `lib/svg/write.rs` computes it, too.
 *
 * @param {string} text
 */
function hash(text) {
    const hash = Buffer.from(text).reduce((hash, byte) => Math.imul(hash ^ byte, 0x01000193), 0x811c9dc5);
    return (hash >>> 0).toString(16).padStart(8, "0");
}

// Names of fields that something outside of the scripts has (`dataset`, options of DOM functions that terser does not
// know), or that are in texts. All other names in camel case become short.
const FIXED_NAMES = ["countName", "frameHeight", "largestDelta", "keepLeft", "fromBase64", "preventScroll",
    "focusVisible", "ownBefore"];

// Names of fields of one word that become short, too: nothing else has them.
const SHORT_NAMES = ["badges", "boxes", "builder", "chips", "column", "compared", "derive", "descending",
    "differential", "drawn", "filtered", "functions", "hasher", "hovered", "leaf", "looks", "modules",
    "painter", "panel", "prepare", "refuse", "report", "reported", "settings", "sides", "slots", "tasks", "tree",
    "undrawn", "unfolded", "weights"];

/** @param {string} script */
async function minifyScript(script) {
    const compress = { ecma: 2020, passes: 3, keep_fargs: false, unsafe: true, unsafe_arrows: true, inline: 1,
        hoist_funs: true, pure_getters: true };
    const regex = new RegExp(`^([a-z]+[A-Z]|(${SHORT_NAMES.join("|")})$)`);
    const mangle = { properties: { regex, reserved: FIXED_NAMES } };
    const options = { format: { max_line_len: 2000 }, compress, mangle };
    const { code } = await minify(`(() => {\n"use strict";\n${script}})();\n`, options);
    return `${code}\n`;
}

/** @param {string} style */
function minifyStyle(style) {
    const compact = style.replace(/\/\*.*?\*\//gs, "").replace(/\s+/g, " ").replace(/ ?([{};,]) ?/g, "$1");
    return `${compact.replace(/: /g, ":").replace(/\b0\./g, ".")
        .replace(/;\}/g, "}").replace(/\}(?!\})/g, "}\n").trim()}\n`;
}

for (const [bundle, files] of Object.entries(BUNDLES)) {
    const source = files.map(file => readFileSync(pathOf(file), "utf8")).join("");
    const text = bundle.endsWith(".js") ? await minifyScript(source) : minifyStyle(source);
    const content = `/* ${hash(source)} */\n${text}`;
    if (!process.argv.includes("--check")) {
        writeFileSync(pathOf(bundle), content);
    } else if (readFileSync(pathOf(bundle), "utf8") !== content) {
        console.error(`lib/${bundle} is out of date; run: npm run --prefix tests/browser bundle`);
        process.exitCode = 1;
    }
}
