// The idle scan as the page shows it: GPUs by node, a letter a day. Pure; views/idle.tsx draws it.

import type { IdleDays, IdleGpu, IdleNode } from "./data";

/** What a letter of a day says, and which pattern (ui/patterns.tsx) is its picture. */
export const LETTERS: Record<string, { words: string; host: string; fill: string }> = {
    I: { words: "idle", host: "quiet", fill: "held_idle" },
    P: { words: "idle, as far as could be checked", host: "quiet, as far as could be checked", fill: "idle_part" },
    U: { words: "not idle", host: "at work", fill: "used" },
    N: { words: "not enough data", host: "not enough data", fill: "unobserved" },
    ".": { words: "not there", host: "not there", fill: "" },
    "-": { words: "not known", host: "not known", fill: "" },
};

/** Standing still is what the table of the command line lists: idle, partly idle, or for three days up to now. */
export const SHOWN: [string, string][] = [["", "standing still"], ["idle", "idle"], ["partly idle", "partly idle"], ["not idle", "not idle"], ["not enough data", "not enough data"], ["all", "all"]];

const still = (of: { verdict: string; idle_since: IdleGpu["idle_since"] }) =>
    of.verdict === "idle" || of.verdict === "partly idle" || !!of.idle_since?.finding;
export const fits = (gpu: IdleGpu, shown: string) => shown === "all" || (shown ? gpu.verdict === shown : still(gpu));

export interface IdleRow { node: IdleNode; gpu: IdleGpu; key: string }
const cost = (row: { idle_since: IdleGpu["idle_since"] }) => Number(row.idle_since?.cost ?? 0);

/** The GPUs that are asked for; nodes whole and dearest first, as they stand still; then by name. */
export function rowsOf(scan: IdleDays, shown: string): IdleRow[] {
    const nodes = scan.nodes.map((node) => {
        const gpus = node.devices.filter((gpu) => fits(gpu, shown));
        return { node, gpus, cost: gpus.reduce((sum, gpu) => sum + cost(gpu), 0) };
    }).filter((n) => n.gpus.length);
    nodes.sort((a, b) => Number(b.node.verdict === "idle") - Number(a.node.verdict === "idle") || b.cost - a.cost);
    return nodes.flatMap(({ node, gpus }) => gpus.map((gpu) => ({ node, gpu, key: `${node.cluster}/${node.node}/${gpu.gpu}` })));
}

export interface Counts { gpus: number; idle: number; partly: number; not: number; unknown: number; nodes: number; still: number; stillCost: number | null }
export function countsOf(scan: IdleDays): Counts {
    const counts: Counts = { gpus: 0, idle: 0, partly: 0, not: 0, unknown: 0, nodes: 0, still: 0, stillCost: null };
    for (const node of scan.nodes) {
        counts.nodes += Number(node.verdict === "idle");
        for (const gpu of node.devices) {
            counts.gpus++;
            counts[gpu.verdict === "idle" ? "idle" : gpu.verdict === "partly idle" ? "partly" : gpu.verdict === "not idle" ? "not" : "unknown"]++;
            if (!gpu.idle_since?.finding) continue;
            counts.still++;
            if (gpu.idle_since.cost !== null) counts.stillCost = (counts.stillCost ?? 0) + Number(gpu.idle_since.cost);
        }
    }
    return counts;
}

/** "cpu of 10 nodes, power of 12 GPUs": what no threshold could be held against. */
export function uncheckedOf(scan: IdleDays): string[] {
    const count = new Map<string, number>();
    const add = (name: string, of: string) => count.set(`${name}|${of}`, (count.get(`${name}|${of}`) ?? 0) + 1);
    for (const node of scan.nodes) {
        node.unchecked.forEach((name) => add(name, "node"));
        node.devices.forEach((gpu) => gpu.unchecked.forEach((name) => add(name, "GPU")));
    }
    const words: Record<string, string> = { cpu: "CPU", util: "GPU_UTIL" };
    return [...count].map(([key, n]) => {
        const [name, of] = key.split("|");
        return `${words[name] ?? name} of ${n} ${of}${n === 1 ? "" : "s"}`;
    });
}

/** The highest day, over those on which the day's letter says that there was enough data. */
export function highest(values: (number | null)[], days: string): number | null {
    const known = values.filter((v, i): v is number => v !== null && "IPU".includes(days[i]));
    return known.length ? Math.max(...known) : null;
}

/** "idle on 5 days, not idle on 2 days" */
export function daysWords(days: string, host = false): string {
    const count = new Map<string, number>();
    for (const letter of days) count.set(letter, (count.get(letter) ?? 0) + 1);
    return [...count].map(([letter, n]) => `${LETTERS[letter]?.[host ? "host" : "words"] ?? letter} on ${n} ${n === 1 ? "day" : "days"}`).join(", ");
}
