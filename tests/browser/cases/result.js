// @ts-check
// Cases whose result is a failure, each for another reason.

function passes() {
    check(true, "true");
}

function failsOneCheck() {
    check(true, "true");
    equal("left", "right", "texts");
}

function checksNothing() {}

function throws() {
    check(true, "true");
    getFrame("no such function");
}

async function waitsForever() {
    await waitFor(() => false, "nothing");
}

async function causesErrorElsewhere() {
    check(true, "true");
    setTimeout(() => { throw new Error("in a timer"); });
    Promise.reject(new Error("in a promise"));
    await sleep(100);
}
