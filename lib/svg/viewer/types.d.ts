// Types that the viewer's scripts share. They are for the type checker only: no SVG contains them.

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
    /** Number of nodes before each node that have a weight; computed when first needed. */
    weightedBefore?: Uint32Array;
}

/** The fields of a tree that have a number for each node. */
type TreeColumn = "parent" | "name" | "end" | "own" | "total" | "ownBefore" | "totalBefore";

interface Profile {
    tree: Tree;
    differential: boolean;
    /** The weight that the whole width represents. */
    whole: number;
    /** The largest difference of a node, which gets the full colour. */
    largestDelta: number;
    names: string[];
    /** Four bytes for each name: red, green, blue and traits. */
    looks: Uint8Array;
    /** Elements with attributes of their own, by the index of the name. */
    elements: Map<number, HTMLElement>;
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
}

/** A box that has been drawn. */
interface DrawnBox extends Box {
    group: SVGElement;
}

/** What the reader has changed, as written in the link. */
type ChangeName = "callers" | "callees" | "between" | "only" | "hide" | "recursion" | "sort" | "turned";
type Changes = Record<ChangeName, string>;

interface Action {
    keys: string[];
    /** Text in the menu; `{}` stands for the name of the frame. */
    text: string;
    /** Runs the action. `box` is undefined only if there is no current frame. */
    run?: (viewer: Viewer, key: string) => void;
    /** Runs an action that needs a frame. */
    runOnFrame?: (viewer: Viewer, box: DrawnBox, key: string) => void;
}

/** The root element of a flame graph. */
type GraphElement = SVGSVGElement;

type Attributes = Record<string, string | number>;

/** Returns true if a text can be used. */
type Predicate = (text: string) => boolean;
