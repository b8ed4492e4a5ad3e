// @ts-check
// Names that contain markup and scripts.

function showsHostileNamesAsText() {
    equal(getScriptTrace(), undefined, "a script in a name ran");
    equal(getFrames().length, 19, "number of frames");
    check(hasFrame("</title></text></svg><script>window.ran=1</script>"), "markup is shown as it is");
    check(hasFrame("nul\\u{0}esc\\u{1b}[31m del\\u{7f}\tx"), "control characters are escaped");
    check(hasFrame("bidi\\u{202e}evil"), "bidirectional control characters are escaped");
    getFrames().forEach((_, index) => {
        const frame = getFrames()[index];
        pointAt(frame);
        click(frame);
        pressKey("0");
    });
    typePattern("script");
    equal(getScriptTrace(), undefined, "a script in a name ran after a click");
    equal(document.querySelectorAll("script").length, 0, "number of script elements");
}

function fitsLongName() {
    const [frame] = findFrames("n".repeat(10_000));
    pointAt(frame);
    check(getElement(".tip").getBoundingClientRect().height < innerHeight / 3, "the tooltip leaves the graph visible");
    getRect(frame).dispatchEvent(new MouseEvent("contextmenu", { bubbles: true, cancelable: true, button: 2 }));
    const head = getElement(".menu .hd"), { right } = getElement(".menu").getBoundingClientRect();
    const isInMenu = head.scrollWidth <= head.clientWidth && head.getBoundingClientRect().right <= right;
    check(isInMenu, "the menu shows the share");
    pressKey("a");
    const [details, buttons] = [".det", ".acts"].map(selector => getElement(selector).getBoundingClientRect());
    check(buttons.bottom <= details.bottom, "the details show the facts and the buttons");
}
