// Starts the page of the graph that contains the script.

const graph = /** @type {GraphElement} */ (document.currentScript?.closest("svg.flame-graph"));
const container = /** @type {HTMLElement} */ (document.querySelector(".heatmap"));
/** @type {number[]} */
const leaves = [];
Promise.all([readProfile(graph, leaves), readSamples(graph)])
    .then(([profile, samples]) => new TimePanel(graph, profile, Uint32Array.from(leaves), samples, container))
    .catch(error => {
        graph.classList.remove("scripted");
        const details = graph.querySelector("#details");
        if (details) details.textContent = `Not interactive: ${error.message}`;
    });
