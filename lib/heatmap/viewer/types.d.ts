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
    /** Number of each sample's CPU; undefined if the recording has none. */
    cpus: Uint32Array | undefined;
    /** Names of the threads, those with the most samples first. */
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

/** A cell of the map of seconds. */
interface Cell {
    second: number;
    row: number;
}

/** What the lanes of a picture are for. */
interface LaneKind {
    /** The lane of each sample, from 0. */
    lanes: Uint32Array;
    /** The names of all lanes, those to be shown first. */
    names: string[];
    /** What lanes are called in a number of them. */
    things: string;
}

/** The weight of selected samples. */
interface Sums {
    /** Weight of each node's own samples. */
    own: Float64Array;
    count: number;
    weight: number;
}

/** Which frames and stacks are shown. Arrays have 1 for each of the names. */
interface StackFilter {
    /** A stack needs a name of each. */
    only: Uint8Array[];
    /** A stack has none of these. */
    hide: Uint8Array;
    /** Frames that are left out. */
    omit: Uint8Array;
    mergesRecursion: boolean;
}

/** What a picture of the samples shows. */
interface Shown {
    /** The index of a thread; undefined for all threads. */
    thread: number | undefined;
    /** 1 for each stack that counts; null for all. */
    stacks: Uint8Array | null;
    /** Colours from no weight to the largest. */
    colours: string[];
}

/** The outlined parts of a picture. */
interface Marks {
    selections: (TimeSelection | undefined)[];
    /** The cell with the cursor. */
    cursor: number | undefined;
}

/** A picture of the samples over time. Its cells have numbers. */
interface TimePicture {
    element: HTMLElement;
    /** The duration of a cell in nanoseconds. */
    readonly cellDuration: number;
    /** Paints the samples and returns the largest weight of a cell. */
    paint(shown: Shown): number;
    mark(marks: Marks): void;
    cellAt(event: MouseEvent): number;
    /** Returns the name of the lane at the pointer and its weight in a cell, if there are several lanes. */
    laneAt?(event: MouseEvent, cell: number): { name: string, weight: number } | undefined;
    /** Returns the cell beside another one in the direction of an arrow key, or undefined for other keys. */
    step(cell: number, key: string): number | undefined;
    select(from: number, to: number, isRectangle: boolean): TimeSelection;
    /** Returns the time of a cell. */
    timesOf(cell: number): TimeSelection;
    weight(cell: number): number;
    /** Shows a part of the time. */
    show(part: TimeSelection): void;
    /** Returns the part of the time that is shown if the scale changes by a factor around the pointer. */
    zoomAround?(event: MouseEvent, factor: number): TimeSelection;
    scroller: HTMLElement;
}
