// Starts the viewer of the graph that contains the script.

const root = /** @type {GraphElement} */ (document.currentScript?.closest("svg.flame-graph"));
readProfile(root).then(profile => new App(root, profile)).catch(error => {
    root.classList.remove("scripted");
    const details = root.querySelector("#details");
    if (details) details.textContent = `Not interactive: ${error.message}`;
});
