// Where a dollar goes: one table for words, colours, patterns and letters. The words are those of the
// command line; the colours are variables of style.css, so that both themes share the meaning; the
// pattern says the same to whoever does not see the colour.

export type Pattern = "solid" | "rising" | "level" | "cross" | "falling" | "dots" | "upright" | "brick";

export interface Category {
    id: string; // the figure's name in machine formats
    words: string;
    letter: string; // in the strings of the fleet picture
    pattern: Pattern;
    who: string;
    meaning: string;
    nodeIdle: boolean;
}

const row = (
    id: string, words: string, letter: string, pattern: Pattern, who: string, meaning: string,
): Category => ({ id, words, letter, pattern, who, meaning, nodeIdle: id.startsWith("node_idle_") });

export const CATEGORIES: Category[] = [
    row("used", "used", "U", "solid", "nobody: it is what was bought", "held and at work: cost times the work ratio"),
    row("slack", "slack", "S", "rising", "the holder's team: rightsize, share, tune", "held and at work: the rest of the cost"),
    row("held_idle", "held idle", "I", "level", "the holder's team: stop, scale to zero", "held while next to no kernel ran"),
    row("node_idle_empty", "empty", "E", "solid", "the platform team", "held by nobody: nothing of the node is held"),
    row("node_idle_stranded", "stranded", "T", "falling", "the platform team", "held by nobody: something else of the node is held"),
    row("node_idle_unpartitioned", "unpartitioned", "P", "upright", "the platform team", "held by nobody: the part of a GPU that no MIG instance has"),
    row("node_idle_cordoned", "cordoned", "C", "cross", "the platform team", "held by nobody: the node takes no pods"),
    row("node_idle_starting", "starting", "B", "dots", "the platform team", "held by nobody: from the node's creation to its first pod"),
    row("unhealthy", "unhealthy", "H", "cross", "the platform team or the vendor", "the GPU was lost (XID) or not allocatable"),
    row("unobserved", "unobserved", "N", "brick", "whoever runs the telemetry", "no telemetry covers it: not known, not idle"),
    row("unattributed", "unattributed", "A", "dots", "find the process: outside Kubernetes, or labels were lost", "at work while nobody held it"),
];

export const NODE_IDLE = CATEGORIES.filter((c) => c.nodeIdle);

export const byId = new Map(CATEGORIES.map((c) => [c.id, c]));
export const byLetter = new Map(CATEGORIES.map((c) => [c.letter, c]));

/** "node idle: empty" where the cause stands alone, as the command line says it. */
export const fullWords = (c: Category) => (c.nodeIdle ? `node idle: ${c.words}` : c.words);

/** The name of a CSS variable, and of the class that sets it. */
export const colourClass = (c: Category) => "cat-" + c.id.replace(/_/g, "-");
