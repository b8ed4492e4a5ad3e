// Types that the viewer's scripts share. They are for the type checker only: no file contains them.

/** A tree of frames in arrays. Node 0 is the root; a caller comes before its callees. */
interface Tree {
    /** The caller of each node. */
    parent: Uint32Array;
    /** The index of each node's name. */
    name: Uint32Array;
    /** The first node after each node's callees. */
    end: Uint32Array;
    /** Weight of the stacks that end in each node. */
    own: Float64Array;
    /** Weight of the stacks through each node. */
    total: Float64Array;
    /** `own` in the profile that this one is compared with; undefined if there is none. */
    ownBefore?: Float64Array;
    /** `total` in the profile that this one is compared with; undefined if there is none. */
    totalBefore?: Float64Array;
    /** The first node of the callers; undefined unless the tree is a sandwich. */
    lower?: number;
    /** True if the tree is about one function, which is node 1. */
    hasPivot?: boolean;
    /** True if what is drawn on a node are its callers. */
    isInverted?: boolean;
    /** When each node started; undefined unless the tree is in the order of time. */
    time?: NodeTimes;
}

/** The times of a tree whose nodes are in the order of time. All weights are nanoseconds. */
interface NodeTimes {
    start: Float64Array;
    /** The thread of each node. */
    lane: Uint32Array;
    laneNames: string[];
    /** The time that the whole width represents. */
    span: number;
}

/** The fields of a tree that have a number for each node. */
type TreeColumn = "parent" | "name" | "end" | "own" | "total" | "ownBefore" | "totalBefore";

interface Profile {
    tree: Tree;
    differential: boolean;
    /**
     * True if the totals before and after are the same, as after `fg-diff -n`: the weights before may be scaled ones,
     * and count nothing.
     */
    isScaled: boolean;
    /** True if it was judged which differences are significant. */
    judged: boolean;
    /**
     * True after `fg-diff --significant`: the weights before are those after unless the difference is significant. Both
     * are then shares of the total after, because the total before is not known.
     */
    isFlattened: boolean;
    /** The weight that the whole width represents. */
    whole: number;
    /** The largest difference of a node, which gets the full colour of the palettes of flamegraph.pl. */
    largestDelta: number;
    names: string[];
    /** The names by which functions are filtered: those of wakers have their suffix, which tells them from others. */
    keys: string[];
    /**
     * Six bytes for each name: red, green, blue, traits, and the index of its module in two bytes. The highest bits of
     * the traits and of the index say that the difference of the self and of the total weight is significant.
     */
    looks: Uint8Array;
    /** The names of modules. Module 0 is that of names without a module. */
    modules: string[];
    /** Elements with attributes of their own, by the index of the name. */
    elements: Map<number, Element>;
    /** Returns the stacks in the order of time; undefined if their times are unknown. */
    buildChart?: (changes: Pick<Changes, "only" | "hide" | "omit" | "recursion">) => Work<Tree>;
}

/** Weights of the functions of a tree, by the index of the name. Recursive calls count once. */
interface Functions {
    /** That of a state of a thread counts for the function that waits, that of the runtime perhaps for its caller. */
    self: Float64Array;
    /** The weights of the nodes with the name alone. */
    leaf: Float64Array;
    total: Float64Array;
    selfBefore?: Float64Array;
    leafBefore?: Float64Array;
    totalBefore?: Float64Array;
    /** Number of nodes with a weight. */
    places: Uint32Array;
}

/** A rectangle of the drawing. */
interface Box {
    node: number;
    row: number;
    x: number;
    width: number;
    /** True if the node is a caller of the node in view. */
    above?: boolean;
    /** The nodes that are too narrow to draw and share this box; undefined for a box of one frame. */
    folded?: number[];
    /** The name of the first frame of the stacks through the box, which has a lane of a flame chart. */
    thread?: number;
    /** True if the box is the first frame itself, drawn as a bar below the lane's name. */
    isSlice?: boolean;
    /** The number of frames in the subtrees of the folded nodes. */
    frames?: number;
    /** The nodes of a chain of runtime frames that share this box; `node` is the first. */
    chain?: number[];
    /** The element of the box, while it is drawn. */
    group?: SVGElement;
    /** The shape in it, which gets the focus. */
    item?: SVGElement;
}

/** The boxes of a picture. */
interface Layout {
    boxes: Box[];
    /** Number of rows. */
    rows: number;
    /** The lanes of a flame chart, and the row with their name. */
    lanes?: { name: number, row: number }[];
    /** Number and weight of the frames that are too narrow to draw. */
    undrawn: { frames: number, weight: number };
}

/** What a layout depends on. */
interface LayoutInput {
    tree: Tree;
    /** Weight of the stacks through each node, on the side that is shown. */
    weights: Float64Array;
    /** Weight of the stacks that end in each node. */
    own: Float64Array;
    /** The weight that the whole width represents, if nothing is zoomed. */
    whole: number;
    zoom: number;
    byWeight: boolean;
    /** True to draw a lane for each first frame. */
    isChart: boolean;
    /** 1 for each name of the runtime, of which long chains are folded; undefined to fold none. */
    runtime?: Uint8Array;
    /** The nodes of the chains that are not folded. */
    unfolded: ReadonlySet<number>;
    width: number;
    minWidth: number;
    /** True if all nodes have a weight. */
    isFull: boolean;
}

/** The options of fg-svg that the viewer follows. */
interface Settings {
    title: string;
    subtitle: string;
    countName: string;
    factor: number;
    rowHeight: number;
    fontSize: number;
    fontFamily: string;
    /** The width of the graph in pixels; 0 to fit the window. */
    width: number;
    minWidth: number;
    /** Not empty if the picture has its root at the top. */
    inverted?: string;
    /** Not empty if the picture has the leaves of stacks as roots. The profile has its stacks as they are. */
    reversed?: string;
    /** True if the input is in the order of time. */
    isChart: boolean;
    bySelf: boolean;
    negate?: string;
    diffusion?: string;
    keepLeft?: string;
}

/** A change of what is shown, as its parameter is called in the link. Values are names of functions, one a line. */
type ChangeName = "only" | "hide" | "omit" | "recursion" | "invert" | "callers" | "callees" | "between" | "sort"
    | "fold" | "root" | "side" | "chart" | "charge";
type Changes = Record<ChangeName, string>;

/** A function, and the node in which it was selected, if any. */
interface Chosen {
    name: number;
    node?: number;
}

type TableColumn = "name" | "self" | "total" | "before" | "after" | "points";

/** What the reader has chosen. Everything that is shown follows from it and the profile. */
interface State {
    changes: Changes;
    /** The node over the whole width. */
    zoom: number;
    search: string;
    /** The nodes of chains of runtime frames that the reader unfolded. */
    unfolded: ReadonlySet<number>;
    selected: Chosen | undefined;
    /** The column that sorts the table; undefined for the default one. */
    column: TableColumn | undefined;
    descending: boolean;
    /** The weights that the table compares in a differential profile. */
    compared: "self" | "total";
    /** The part that a narrow window shows. */
    tab: "graph" | "table";
    hasTable: boolean;
    /** True if the link leads to something that the profile does not have. */
    isLinkStale: boolean;
}

/** What follows from the profile and the state. */
interface View {
    profile: Profile;
    settings: Settings;
    state: State;
    side: "before" | "after" | "difference";
    /** The profile's tree after the filters. */
    filtered: Tree;
    /** What is drawn: the filtered tree, or the callers and callees of a function in it. */
    tree: Tree;
    weights: Float64Array;
    own: Float64Array;
    /** The weight that is 100 %. */
    whole: number;
    /** The weights of which shares before and after are. */
    wholeBefore: number;
    wholeAfter: number;
    /** True if widths are weights before. */
    drawsBefore: boolean;
    functions: Functions;
    /** The weights of the functions of the zoomed stacks, and of all these stacks; of all stacks in a merged tree, whose picture is not the whole. */
    zoomed: { functions: Functions, base: number, isWhole: boolean };
    match: Match;
    rootAtTop: boolean;
}

/** The result of a search. */
interface Match {
    /** 1 for each name that matches; null without a search. */
    names: Uint8Array | null;
    /** Why the pattern is invalid, or empty. */
    error: string;
}

interface Action {
    keys: string[];
    /** Text in the menus. */
    text: string;
    run: (app: App, target: Target, key: string) => void;
    /** Returns why the action is impossible, or an empty text. */
    refuse?: (app: App, target: Target) => string;
    /** The menu that lists the action, and its group there. */
    menu?: "frame" | "more";
    group?: number;
    isOn?: (app: App) => boolean;
}

/** The frame or function that an action is for. */
interface Target {
    /** The index of the name; undefined without a frame and for the root. */
    name?: number;
    node?: number;
    box?: Box;
}

/** A part of the page that draws itself from the view. */
interface Part {
    draw(view: View): void;
}

/** A filter that can be removed. */
type Chip = [kind: string, value: string, remove: () => void];

/** A panel above the graph that chooses the profile. */
interface Panel extends Part {
    /** The title if nothing else has one. */
    readonly title: string;
    element: HTMLElement;
    /** The weight of everything that could be chosen. */
    readonly total: number;
    /** Returns the profile that the link selects. */
    loadProfile(read: (name: string) => string): Profile;
    /** Returns what was selected. */
    chips(): Chip[];
    /** Selects everything. */
    clear(): void;
}

/** The root element of a flame graph. */
type GraphElement = SVGSVGElement;

type Attributes = Record<string, string | number | undefined>;

/** Work that can be interrupted. It yields where it can go on later. */
type Work<Result> = Generator<void, Result, void>;

/** Returns true if a text can be used. */
type Predicate = (text: string) => boolean;
