#!/usr/bin/env node
// Measures the viewer of fg-svg beside inferno-flamegraph and speedscope, in Chromium, on the same stacks.
//
//     benches/viewer.mjs [RUNS] [NAME]        medians of RUNS runs [default: 3] of the rows whose names contain NAME
//
// The stacks are generated (scripts/generate.rs) and kept in target/bench, or in $BENCH; speedscope is installed there by
// npm. $FG_SVG is the fg-svg to measure [default: a release build], $DEMO a small graph of fg-svg. Programs that are not
// installed are left out.
//
// Each step is timed in the page from the input to the second animation frame after it, when the answer is on the screen.
// For work in slices that is the first answer, and a second number is the time until the result is there. A page is loaded
// at the second animation frame after its graph can be clicked; "paint" is the first time that a graph is on the screen, and
// "table" the time at which the functions are there, too. The time of an empty SVG is what the browser needs for any page. "slowest" is the longest animation frame while the graph
// scrolls. Times are in milliseconds. Other work on the machine falsifies them: the load is printed.

import { execFileSync, spawn } from "node:child_process";
import { createReadStream, existsSync, mkdirSync, mkdtempSync, rmSync, statSync, writeFileSync } from "node:fs";
import { createServer } from "node:http";
import { cpus, loadavg, tmpdir } from "node:os";
import { join, resolve } from "node:path";

const RUNS = Number(process.argv[2] ?? 3);
const NAME = process.argv[3] ?? "";
const HOME = resolve(import.meta.dirname, "..");
const TARGET = process.env.CARGO_TARGET_DIR ?? join(HOME, "target");
const BENCH = process.env.BENCH ?? join(TARGET, "bench");
const TIMEOUT = 180_000;

/** Runs in the page before its scripts: remembers when the graph can be clicked and is on the screen. */
function watchLoad() {
    const isReady = () => document.querySelector(".fg #frames > g")
        || (document.readyState === "complete" && document.querySelector("g.func_g, #frames g > title"))
        || (document.title.includes("speedscope") && document.title !== "speedscope" && document.querySelector("canvas"));
    const look = () => {
        if (!isReady()) return setTimeout(look, 1);
        requestAnimationFrame(() => requestAnimationFrame(() => window.benchLoaded = performance.now()));
        const lookForTable = () => {
            if (!document.querySelector(".fg [aria-rowcount]")) return setTimeout(lookForTable, 1);
            window.benchTable = performance.now();
        };
        lookForTable();
    };
    look();
}

/** Runs in the page: times all steps of a flame graph in SVG. */
async function measureGraph() {
    const shown = () => new Promise(done => requestAnimationFrame(() => requestAnimationFrame(() => done(0))));
    const isOurs = document.querySelector(".fg") !== null, times = {};
    const pause = milliseconds => new Promise(done => setTimeout(done, milliseconds));
    const time = async (name, step) => {
        await pause(300);
        const start = performance.now();
        step();
        await shown();
        times[name] = performance.now() - start;
        if (!document.querySelector("[aria-busy=true]")) return;
        while (document.querySelector("[aria-busy=true]")) await pause(1);
        await shown();
        times[`${name} done`] = performance.now() - start;
    };
    const send = (target, type, Kind, options = {}) =>
        target.dispatchEvent(new Kind(type, { bubbles: true, cancelable: true, ...options }));
    const click = target => send(target, "click", MouseEvent);
    const press = key => send(document.querySelector(".fg"), "keydown", KeyboardEvent, { key });
    // The frame that is nearest to a fifth of the total.
    const middle = () => {
        const label = group => group.getAttribute("aria-label") ?? group.querySelector("title")?.textContent;
        const share = group => Number(label(group)?.match(/, ([0-9.]+)%\)$/)?.[1] ?? 0);
        const groups = [...document.querySelectorAll("#frames > g, #frames g:has(> title), g.func_g")];
        const distances = groups.map(group => [Math.abs(share(group) - 20), group]);
        return distances.reduce((best, other) => (other[0] < best[0] ? other : best))[1];
    };
    const hover = group => {
        const { left, top } = group.getBoundingClientRect();
        for (const kind of ["mouseover", "pointermove"]) {
            send(group.querySelector("rect"), kind, PointerEvent, { clientX: left + 9, clientY: top + 5 });
        }
    };
    const look = pattern => {
        if (!isOurs) return window.search(pattern);
        const input = document.querySelector("input");
        input.value = pattern;
        send(input, "input", Event);
    };
    times.paint = performance.getEntriesByName("first-contentful-paint")[0]?.startTime;
    while (isOurs && !window.benchTable) await pause(1);
    times.table = window.benchTable;
    times.elements = document.querySelectorAll("#frames *").length;
    const frame = middle();
    await time("hover", () => hover(frame));
    await time("zoom", () => click(frame.querySelector("rect")));
    await time("reset", () => (isOurs ? press("0") : click(document.querySelector("#unzoom"))));
    await time("search", () => look("lock"));
    look("");
    if (!isOurs) return times;
    for (const [name, key] of [["sort", "w"], ["hide", "h"], ["recursion", "r"], ["invert", "v"]]) {
        if (name === "hide") middle().focus();
        await time(name, () => press(key));
        await pause(200);
        press(name === "hide" ? "Escape" : key);
        while (document.querySelector("[aria-busy=true]")) await pause(1);
        await shown();
    }
    const graph = document.querySelector(".graph"), frames = [];
    for (let step = 0, last = performance.now(); step < 60; step++) {
        graph.scrollTop += step < 30 ? 60 : -60;
        await new Promise(requestAnimationFrame);
        frames.push(performance.now() - last);
        last = performance.now();
    }
    times.slowest = Math.max(...frames.slice(1));
    return times;
}

/** Runs in the page: times the steps of speedscope that have an equal. */
async function measureSpeedscope() {
    const shown = () => new Promise(done => requestAnimationFrame(() => requestAnimationFrame(() => done(0))));
    const canvas = [...document.querySelectorAll("canvas")].at(-1), times = {};
    const { left, top, width, height } = canvas.getBoundingClientRect();
    const place = { bubbles: true, clientX: left + width / 4, clientY: top + height / 3 };
    const target = document.elementFromPoint(place.clientX, place.clientY);
    for (const [name, kinds] of [["hover", ["mousemove"]], ["zoom", ["mousedown", "mouseup", "click", "dblclick"]]]) {
        await new Promise(done => setTimeout(done, 300));
        const start = performance.now();
        for (const kind of kinds) target.dispatchEvent(new MouseEvent(kind, place));
        await shown();
        times[name] = performance.now() - start;
    }
    return times;
}

process.env.PATH += `:${join(BENCH, "peers/bin")}`;

/** A Chromium that is controlled through a pipe. */
class Browser {
    constructor(profile) {
        const flags = ["headless", "no-sandbox", "disable-gpu", "disable-background-networking", "disable-sync",
            "disable-component-update", "no-first-run", "disable-dev-shm-usage", "allow-file-access-from-files",
            "window-size=1220,800", "remote-debugging-pipe", `user-data-dir=${profile}`];
        const program = ["chromium", "chromium-browser", "google-chrome"].find(isInstalled);
        this.process = spawn(program, flags.map(flag => `--${flag}`),
            { stdio: ["ignore", "ignore", "ignore", "pipe", "pipe"] });
        this.waiting = new Map();
        this.last = 0;
        let text = "";
        this.process.stdio[4].setEncoding("utf8").on("data", chunk => {
            const messages = (text + chunk).split("\0");
            text = messages.pop();
            for (const message of messages.map(JSON.parse)) {
                this.waiting.get(message.id)?.(message);
                this.waiting.delete(message.id);
            }
        });
    }

    send(method, params = {}, sessionId = undefined) {
        const id = ++this.last;
        this.process.stdio[3].write(`${JSON.stringify({ id, method, params, sessionId })}\0`);
        return new Promise((done, fail) => {
            const timer = setTimeout(() => fail(new Error(`${method} takes too long`)), TIMEOUT);
            this.waiting.set(id, message => {
                clearTimeout(timer);
                if (message.error) fail(new Error(message.error.message)); else done(message.result);
            });
        });
    }

    /** Opens an address and returns the times of its steps. */
    async visit(address, measure) {
        const { targetId } = await this.send("Target.createTarget", { url: "about:blank" });
        const { sessionId } = await this.send("Target.attachToTarget", { targetId, flatten: true });
        const evaluate = async expression => {
            const params = { expression, awaitPromise: true, returnByValue: true };
            const { result, exceptionDetails } = await this.send("Runtime.evaluate", params, sessionId);
            if (exceptionDetails) throw new Error(exceptionDetails.exception?.description ?? exceptionDetails.text);
            return result.value;
        };
        await this.send("Page.enable", {}, sessionId);
        await this.send("Page.addScriptToEvaluateOnNewDocument", { source: `(${watchLoad})()` }, sessionId);
        await this.send("Page.navigate", { url: address }, sessionId);
        const start = Date.now();
        let load;
        while (!(load = await evaluate("window.benchLoaded"))) {
            if (Date.now() - start > TIMEOUT) throw new Error("the page does not load");
            await new Promise(done => setTimeout(done, 20));
        }
        const times = await evaluate(`(${measure})()`);
        await this.send("Target.closeTarget", { targetId });
        return { load, ...times };
    }
}

function isInstalled(program) {
    return (process.env.PATH ?? "").split(":").some(folder => existsSync(join(folder, program)));
}

/** Writes what a command prints to a file of the bench's folder, once. */
function make(name, program, args) {
    const file = join(BENCH, name);
    if (!existsSync(file)) {
        writeFileSync(file, execFileSync(program, args, { maxBuffer: 2 ** 30, stdio: ["ignore", "pipe", "ignore"] }));
    }
    return file;
}

function makeStacks(count) {
    const generator = join(BENCH, "generate"), source = join(HOME, "scripts/generate.rs");
    if (!existsSync(generator)) execFileSync("rustc", ["-O", "--edition", "2024", "-o", generator, source]);
    const start = join(BENCH, `picture-${count}.`);
    if (!existsSync(`${start}0`)) execFileSync(generator, ["folded", String(count), "1", start]);
    return `${start}0`;
}

/** Serves speedscope and the stacks on a port. */
function serve(folder) {
    const types = { html: "text/html", js: "text/javascript", css: "text/css" };
    const server = createServer((request, response) => {
        const path = new URL(request.url, "http://x").pathname;
        const file = path.startsWith("/stacks/") ? join(BENCH, path.slice(8)) : join(folder, path);
        if (!existsSync(file)) return response.writeHead(404).end();
        response.setHeader("Content-Type", types[file.split(".").at(-1)] ?? "text/plain");
        createReadStream(file).pipe(response);
    });
    return new Promise(done => server.listen(0, "127.0.0.1", () => done(server)));
}

/** Returns the graphs to be measured: what draws them, their address, and what measures them. */
async function prepare() {
    const few = makeStacks(57_000), many = makeStacks(1_000_000), graphs = [];
    let fg = process.env.FG_SVG;
    if (!fg) {
        execFileSync("cargo", ["build", "--release", "--locked", "--quiet", "--bin", "fg-svg"], { cwd: HOME });
        fg = join(TARGET, "release/fg-svg");
    }
    const demo = process.env.DEMO ?? join(TARGET, "demo.svg");
    if (existsSync(demo)) graphs.push(["fg-svg, demo", demo]);
    for (const [name, options, stacks] of [["110k frames", ["--minwidth", "0"], few], ["1M stacks", [], many]]) {
        const file = `fg-${name.replace(" ", "-")}.svg`;
        rmSync(join(BENCH, file), { force: true });
        graphs.push([`fg-svg, ${name}`, make(file, fg, [...options, stacks])]);
        if (!isInstalled("inferno-flamegraph")) continue;
        graphs.push([`inferno, ${name}`, make(`inferno-${name.replace(" ", "-")}.svg`, "inferno-flamegraph",
            ["-q", ...options, stacks])]);
    }
    // What a browser needs for any page.
    const empty = join(BENCH, "empty.svg");
    writeFileSync(empty, `<svg xmlns="http://www.w3.org/2000/svg" class="fg"><g id="frames"><g/></g></svg>`);
    graphs.unshift(["empty SVG", empty, () => ({})]);
    const rows = graphs.map(([name, file, measure = measureGraph]) => ({ name, address: `file://${file}`, measure,
        size: statSync(file).size, isSlow: name.startsWith("inferno, 110k") }));
    if (!isInstalled("npm")) return { rows };
    const folder = join(BENCH, "speedscope");
    if (!existsSync(folder)) execFileSync("npm", ["install", "--silent", "--prefix", folder, "speedscope@1.25.0"]);
    const server = await serve(join(folder, "node_modules/speedscope/dist/release"));
    const { port } = server.address();
    for (const [name, stacks] of [["110k frames", few], ["1M stacks", many]]) {
        const profile = encodeURIComponent(`http://127.0.0.1:${port}/stacks/${stacks.split("/").at(-1)}`);
        rows.push({ name: `speedscope, ${name}`, measure: measureSpeedscope, size: statSync(stacks).size, isSlow: true,
            address: `http://127.0.0.1:${port}/index.html#profileURL=${profile}` });
    }
    return { rows, server };
}

const COLUMNS = ["paint", "load", "table", "hover", "zoom", "reset", "search", "sort", "hide", "recursion", "invert", "slowest",
    "elements"];

/** Returns the medians of a column, with the time until the result is there after a slash. */
function cell(runs, column) {
    const median = name => {
        const values = runs.map(run => run[name]).filter(value => value !== undefined).sort((a, b) => a - b);
        return values.length > 0 ? String(Math.round(values[values.length >> 1])) : "";
    };
    const done = median(`${column} done`);
    return median(column) + (done && ` / ${done}`) || "-";
}

mkdirSync(BENCH, { recursive: true });
const { rows, server } = await prepare(), width = Math.max(...rows.map(({ name }) => name.length));
console.log(`${cpus().length} CPUs, ${RUNS} runs, load ${loadavg()[0].toFixed(2)}\n`);
console.log(`| ${"ms".padEnd(width)} | MB | ${COLUMNS.join(" | ")} |`);
console.log(`|${"-".repeat(width + 2)}|--:|${COLUMNS.map(() => "--:|").join("")}`);
for (const { name, address, measure, size, isSlow } of rows.filter(row => row.name.includes(NAME))) {
    const runs = [];
    for (let run = 0; run < (isSlow ? 1 : RUNS); run++) {
        const profile = mkdtempSync(join(tmpdir(), "fg-bench-")), browser = new Browser(profile);
        try {
            runs.push(await browser.visit(address, measure));
        } catch (error) {
            console.error(`${name}: ${error.message}`);
        } finally {
            const ended = new Promise(done => browser.process.once("exit", done));
            await browser.send("Browser.close").catch(() => browser.process.kill());
            await ended;
            rmSync(profile, { recursive: true, force: true, maxRetries: 9, retryDelay: 200 });
        }
    }
    const cells = COLUMNS.map(column => cell(runs, column));
    console.log(`| ${name.padEnd(width)} | ${(size / 1e6).toFixed(1)} | ${cells.join(" | ")} |`);
}
server?.close();
