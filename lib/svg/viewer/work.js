// Does long work in slices, so that the page answers in between.

// The number of nodes that work goes through before it yields. Work on a smaller tree does not yield at all.
const SLICE = 1 << 16;

// The number of nodes between two reports.
const REPORT_DISTANCE = 4 * SLICE;

// The time that a slice takes, in milliseconds.
const SLICE_TIME = 20;

/**
 * Does all the work at once.
 *
 * @template Result
 * @param {Work<Result>} work
 * @returns {Result}
 */
function finish(work) {
    for (;;) {
        const step = work.next();
        if (step.done) return step.value;
    }
}

/**
 * Returns a function that keeps its last two results, so that the view before a change is there without new work.
 *
 * @template {unknown[]} Arguments
 * @template Result
 * @param {(...inputs: Arguments) => Work<Result>} compute
 * @returns {(...inputs: Arguments) => Work<Result>}
 */
function memoizeWork(compute) {
    /** @type {{ inputs: Arguments, result: Result }[]} */
    let kept = [];
    return function* (...inputs) {
        const known = kept.find(other => inputs.every((input, index) => input === other.inputs[index]));
        const entry = known ?? { inputs, result: yield* compute(...inputs) };
        kept = [entry, ...kept.filter(other => other !== entry)].slice(0, 2);
        return entry.result;
    };
}

/** Tasks that are done in their order, each in slices. */
class WorkQueue {
    /** @param {(nodes: number | undefined) => void} report gets the number of nodes so far; undefined at the end */
    constructor(report) {
        this.report = report;
        /** @type {{ start: () => Work<unknown>, end: () => void }[]} */
        this.tasks = [];
        /** @type {Work<unknown> | undefined} */
        this.current = undefined;
        /** The number of nodes gone through since the queue was empty, and the number that was reported last. */
        this.nodes = this.reported = 0;
        /** @type {ReturnType<typeof setTimeout> | undefined} */
        this.timer = undefined;
    }

    /**
     * Does work now, or after the tasks that wait. If it takes no longer than a slice, it is done on return.
     *
     * @param {() => Work<unknown>} start
     * @param {() => void} end called when the work is done
     */
    add(start, end) {
        this.tasks.push({ start, end });
        if (this.tasks.length === 1) this.run();
    }

    /** Drops the tasks that are not done. Returns true if there are any. */
    cancel() {
        const isBusy = this.tasks.length > 0;
        clearTimeout(this.timer);
        this.tasks = [];
        this.current = undefined;
        this.reportEnd();
        return isBusy;
    }

    run() {
        try {
            this.runSlice();
        } catch (error) {
            this.cancel();
            throw error;
        }
    }

    /** Works for the time of a slice. */
    runSlice() {
        const deadline = performance.now() + SLICE_TIME;
        for (let task = this.tasks[0]; task; task = this.tasks[0]) {
            this.current ??= task.start();
            while (!this.current.next().done) {
                this.nodes += SLICE;
                if (performance.now() < deadline) continue;
                if (this.nodes > this.reported + REPORT_DISTANCE) this.report(this.reported = this.nodes);
                this.timer = setTimeout(() => this.run());
                return;
            }
            this.current = undefined;
            this.tasks.shift();
            task.end();
        }
        this.reportEnd();
    }

    reportEnd() {
        if (this.reported > 0) this.report(undefined);
        this.nodes = this.reported = 0;
    }
}
