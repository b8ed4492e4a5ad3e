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
