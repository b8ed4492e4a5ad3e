// @ts-check
// What a page shows first.

/** What could be seen and done when the graph was there for the first time. */
let first = { hasTable: true, tip: "", tabs: 0 };

const observer = new MutationObserver(() => {
    const frame = document.querySelector("#frames > g [aria-label^=parse]");
    if (!frame) return;
    observer.disconnect();
    pointAt(frame);
    const graph = /** @type {HTMLElement} */ (document.querySelector(".fg"));
    first = { hasTable: graph.querySelector("[aria-rowcount]") !== null,
        tip: getTexts(".tip:not([hidden])", graph).join(), tabs: graph.querySelectorAll(".seg button").length };
});
observer.observe(document, { childList: true, subtree: true });

function answersBeforeFunctionsAreSummed() {
    check(first.tip.startsWith("parse"), `the frame under the pointer is described: ${first.tip}`);
    check(first.tabs > 2, "the page has its tools");
    check(!first.hasTable, "the table is not there yet");
    equalLists(getFunctions(), ["read", "write", "main", "parse"], "the table comes after");
    check(getTexts("#legend b").length > 0, "the legend comes after");
}
