// What the tests in the browser have at hand. Each test is an async function; its verdict is written into the document.

const svg = document.querySelector("svg.flame-graph");
const faults = [];
window.addEventListener("error", event => faults.push(`uncaught: ${event.message}`));
window.addEventListener("unhandledrejection", event => faults.push(`unhandled: ${event.reason}`));

function check(truth, what) {
    if (!truth) faults.push(what);
}

function equal(actual, expected, what) {
    check(actual === expected, `${what}: expected ${JSON.stringify(expected)}, got ${JSON.stringify(actual)}`);
}

const pause = milliseconds => new Promise(resolve => setTimeout(resolve, milliseconds));

async function until(condition, what) {
    for (let tries = 0; tries < 100; tries++) {
        if (condition()) return;
        await pause(20);
    }
    throw new Error(`waited in vain: ${what}`);
}

const byId = (id, graph = svg) => graph.querySelector(`#${id}`);
const text = (id, graph = svg) => byId(id, graph).textContent.trim();
const groups = (graph = svg) => [...graph.querySelectorAll("#frames > g")];
const title = group => group.querySelector("title").textContent;
const frame = (name, graph = svg) => groups(graph).find(group => title(group).startsWith(`${name} (`));
const rect = group => group.querySelector("rect").getBoundingClientRect();
const width = name => Math.round(rect(frame(name)).width);
const shown = element => getComputedStyle(element).visibility !== "hidden";

function click(element) {
    element.dispatchEvent(new MouseEvent("click", { bubbles: true, cancelable: true }));
}

function key(name, options = {}, target = document.activeElement ?? document.documentElement) {
    const event = new KeyboardEvent("keydown", { key: name, bubbles: true, cancelable: true, ...options });
    target.dispatchEvent(event);
    return event;
}

function type(pattern) {
    const input = svg.querySelector("input");
    input.value = pattern;
    input.dispatchEvent(new Event("input", { bubbles: true }));
}

async function judge(test) {
    try {
        await until(() => document.readyState === "complete", "the whole page");
        await until(() => [...document.querySelectorAll("svg.flame-graph")].every(graph => graph.matches(".live")), "life");
        await test();
    } catch (error) {
        faults.push(String(error));
    }
    const verdict = document.createElementNS("http://www.w3.org/2000/svg", "desc");
    verdict.id = "verdict";
    verdict.textContent = faults.length === 0 ? "fine" : faults.join("\n");
    document.documentElement.append(verdict);
}
