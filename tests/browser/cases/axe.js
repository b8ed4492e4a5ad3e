// @ts-check
// Accessibility, as axe-core checks it.

/** Checks the page with everything closed, and with a selection and a menu. */
async function hasNoSeriousViolation() {
    await checkPage("at first");
    click(/** @type {Element} */ (getFrames().at(-1)));
    await checkPage("zoomed");
    click(getButton("More"));
    await checkPage("with a menu");
    pressKey("Escape");
    pressKey("?");
    await checkPage("with the keys");
}

/** @param {string} state */
async function checkPage(state) {
    const { axe } = /** @type {any} */ (window);
    const { violations } = await axe.run(document, { resultTypes: ["violations"] });
    check(Array.isArray(violations), "axe ran");
    for (const { id, impact, nodes } of violations) {
        /** @type {string[]} */
        const places = nodes.map((/** @type {{ html: string }} */ node) => node.html.slice(0, 160));
        check(impact !== "serious" && impact !== "critical", `${state}, ${id} (${impact}): ${places.slice(0, 3)}`);
    }
}
