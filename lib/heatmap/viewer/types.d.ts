// Types that the scripts of the heat map share. They are for the type checker only: no page contains them.

/** The samples of a page in the order of their times. */
interface Samples {
    /** The second of the first sample on the recording's clock. */
    base: number;
    /** Rows in a second. */
    rows: number;
    /** Number of samples that the recording lost. */
    lost: number;
    count: number;
    /** Time of each sample, in nanoseconds since `base`. */
    times: Float64Array;
    /** Index of each sample's stack. */
    stacks: Uint32Array;
    /** Index of each sample's thread. */
    threads: Uint32Array;
    weights: Float64Array;
    /** Names of the threads. */
    names: string[];
}

/**
 * A selection, in nanoseconds: from `from` up to, but not including, `to`; of each second only from `low` up to, but
 * not including, `high`.
 */
interface TimeSelection {
    from: number;
    to: number;
    low: number;
    high: number;
}

/** A cell of the map. */
interface Cell {
    second: number;
    row: number;
}

/** The weight of selected samples. */
interface Sums {
    /** Weight of each node's own samples. */
    own: Float64Array;
    count: number;
    weight: number;
}
