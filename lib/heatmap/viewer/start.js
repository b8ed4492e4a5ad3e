// The script stands in the graph that it is for.

const root = document.currentScript.closest("svg.flame-graph"), leaves = [];
Promise.all([readProfile(root, leaves), readSamples(root)])
    .then(([profile, samples]) => new Page(root, profile, Uint32Array.from(leaves), samples))
    .catch(error => {
        root.classList.remove("scripted");
        document.getElementById("cell").textContent = `Not interactive: ${error.message}`;
    });
