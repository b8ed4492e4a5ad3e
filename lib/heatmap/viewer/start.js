// Starts the page of the graph that contains the script.

const graph = /** @type {GraphElement} */ (document.currentScript?.closest("svg.flame-graph"));
/** @type {number[]} */
const leaves = [];
Promise.all([readProfile(graph, leaves), readSamples(graph)])
    .then(([profile, samples]) => new HeatMapPage(graph, profile, Uint32Array.from(leaves), samples))
    .catch(error => {
        graph.classList.remove("scripted");
        getElement("cell").textContent = `Not interactive: ${error.message}`;
    });
