// The script stands in the graph that it is for.

const root = document.currentScript.closest("svg.flame-graph");
readProfile(root).then(profile => new Viewer(root, profile).sight.showBase()).catch(error => {
    root.classList.remove("scripted");
    root.querySelector("#details").textContent = `Not interactive: ${error.message}`;
});
