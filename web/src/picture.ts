// The picture of the fleet as it is drawn: GPUs in order, grouped by node, a letter and a use for every
// hour. Pure; the canvas that shows it is ui/fleet-canvas.tsx.

import { byLetter, CATEGORIES } from "./categories";
import type { Fleet, FleetGpu, FleetNode, Holder } from "./data";

export interface GpuRow {
    gpu: FleetGpu;
    node: FleetNode;
    index: number; // on its node
}
export interface Band { node: FleetNode; first: number; n: number }
export interface Picture {
    hours: number[]; // ms
    rows: GpuRow[];
    bands: Band[];
    holders: Holder[];
}

export const LETTERS = CATEGORIES.map((c) => c.letter).join("");

/** Rows that `keep` wants, nodes in the given order. */
export function picture(fleet: Fleet, keep: (node: FleetNode, gpu: FleetGpu) => boolean = () => true, order?: (a: FleetNode, b: FleetNode) => number): Picture {
    const rows: GpuRow[] = [], bands: Band[] = [];
    for (const node of order ? [...fleet.nodes].sort(order) : fleet.nodes) {
        const first = rows.length;
        node.gpus.forEach((gpu, index) => keep(node, gpu) && rows.push({ gpu, node, index }));
        if (rows.length > first) bands.push({ node, first, n: rows.length - first });
    }
    return { hours: fleet.hours.map((h) => Date.parse(h)), rows, bands, holders: fleet.holders ?? [] };
}

/** A base-36 digit of 0..35 as 0..1; "-" is not known. */
export const digit = (c: string | undefined): number | null => {
    const value = c === undefined || c === "-" ? NaN : parseInt(c, 36);
    return Number.isNaN(value) ? null : value / 35;
};

export function holderAt(p: Picture, gpu: FleetGpu, hour: number): Holder | null {
    const runs = gpu.runs ?? [];
    for (let i = 0; i + 2 < runs.length; i += 3)
        if (hour >= runs[i] && hour < runs[i] + runs[i + 1]) return p.holders[runs[i + 2]] ?? null;
    return null;
}

export interface Cell {
    row: GpuRow;
    hour: number; // index
    at: number; // ms
    category: string | null; // id
    use: number | null;
    memory: number | null; // bytes
    power: number | null; // W
    holder: Holder | null;
}

export function cellAt(p: Picture, row: number, hour: number): Cell | null {
    const found = p.rows[row];
    if (!found || hour < 0 || hour >= p.hours.length) return null;
    const gpu = found.gpu as FleetGpu & { memory?: string; memory_total?: number; power?: string; power_top?: number };
    const memory = digit(gpu.memory?.[hour]), power = digit(gpu.power?.[hour]);
    return {
        row: found, hour, at: p.hours[hour],
        category: byLetter.get(gpu.hours[hour])?.id ?? null,
        use: digit(gpu.use[hour]),
        memory: memory === null || !gpu.memory_total ? null : memory * gpu.memory_total,
        power: power === null || !gpu.power_top ? null : power * gpu.power_top,
        holder: holderAt(p, gpu, hour),
    };
}

/** How many cells of each letter a node has. */
export function tally(node: FleetNode): Record<string, number> {
    const counts: Record<string, number> = {};
    for (const gpu of node.gpus) for (const letter of gpu.hours) counts[letter] = (counts[letter] ?? 0) + 1;
    return counts;
}

/** A colour as a pixel of a canvas. */
export const pack = ([r, g, b]: [number, number, number]) => ((255 << 24) | (b << 16) | (g << 8) | r) >>> 0;

/** Pixels of hours x rows, RGBA; `colour` of a letter. The first of a row of ever smaller pictures. */
export function pixels(p: Picture, colour: (letter: string) => [number, number, number]): Uint32Array {
    const table = new Uint32Array(128);
        for (const letter of LETTERS + ".") table[letter.charCodeAt(0)] = pack(colour(letter));
    const width = p.hours.length, out = new Uint32Array(width * p.rows.length);
    p.rows.forEach(({ gpu }, y) => {
        const text = gpu.hours, at = y * width;
        for (let x = 0; x < width; x++) out[at + x] = table[text.charCodeAt(x) & 127];
    });
    return out;
}

/** Half as many rows: of two the one or the other, whole, so that colours keep their meaning and rows
 *  their stretches (means of colours are colours of nothing). What must not be lost (`keep`: a lost GPU
 *  among hundreds) goes before what is next to it. */
export function halve(from: Uint32Array, width: number, rows: number, keep: Set<number>): Uint32Array {
    const half = Math.ceil(rows / 2), out = new Uint32Array(width * half);
    for (let y = 0; y < half; y++) {
        let a = y * 2 * width, b = y * 2 + 1 < rows ? a + width : a;
        if ((Math.imul(y, 0x9e3779b1) >>> 28) & 1) [a, b] = [b, a]; // neither always the first nor in step
        for (let x = 0, to = y * width; x < width; x++, to++) out[to] = keep.has(from[b + x]) ? from[b + x] : from[a + x];
    }
    return out;
}

/** Hours [from, to) of a day of the zone, by the texts of the hours' days. */
export function dayRange(days: string[], day: string): [number, number] | null {
    const from = days.indexOf(day);
    return from < 0 ? null : [from, days.lastIndexOf(day) + 1];
}

export interface Stretch { from: number; to: number; holder: Holder; row: GpuRow }

/** Who held the rows, each stretch once, the newest first. */
export function stretches(p: Picture): Stretch[] {
    const out: Stretch[] = [];
    const end = (hour: number) => (hour < p.hours.length ? p.hours[hour] : p.hours[p.hours.length - 1] + 3_600_000);
    for (const row of p.rows) {
        const runs = row.gpu.runs ?? [];
        for (let i = 0; i + 2 < runs.length; i += 3) {
            const holder = p.holders[runs[i + 2]];
            if (holder) out.push({ from: p.hours[runs[i]], to: end(runs[i] + runs[i + 1]), holder, row });
        }
    }
    return out.sort((a, b) => b.from - a.from || b.to - a.to);
}

/** Value at a share of the sorted list (nearest rank). */
export const quantile = (sorted: number[], share: number): number | null =>
    sorted.length ? sorted[Math.min(sorted.length - 1, Math.max(0, Math.ceil(share * sorted.length) - 1))] : null;

export interface Series {
    t: number[]; // ms
    lines: { name: string; unit: "ratio" | "bytes" | "W" | string; v: (number | null)[] }[];
}

/** The lines of use by hour: name, unit, and what a cell has of it. */
const KINDS: { name: string; unit: string; of: (c: Cell) => number | null }[] = [
    { name: "use", unit: "ratio", of: (c) => c.use },
    { name: "SM activity", unit: "ratio", of: (c) => digit(extra(c, "sm")?.[c.hour]) },
    { name: "tensor activity", unit: "ratio", of: (c) => digit(extra(c, "tensor")?.[c.hour]) },
    { name: "memory", unit: "bytes", of: (c) => c.memory },
    { name: "power", unit: "W", of: (c) => c.power },
];
const extra = (c: Cell, field: "sm" | "tensor") => (c.row.gpu as FleetGpu & { sm?: string; tensor?: string })[field];

/** What the GPUs did hour by hour: mean, and from the tenth to the ninetieth of a hundred where there
 *  are several. `holds`: only hours in which such a holder had the GPU. */
export function seriesOf(p: Picture, holds?: (h: Holder) => boolean): Series {
    const hours = p.hours.length;
    const values = KINDS.map(() => Array.from({ length: hours }, (): number[] => []));
    let rows = 0;
    p.rows.forEach((_, row) => {
        let any = false;
        for (let hour = 0; hour < hours; hour++) {
            const cell = cellAt(p, row, hour)!;
            if (holds && !(cell.holder && holds(cell.holder))) continue;
            any = true;
            KINDS.forEach((kind, k) => {
                const value = kind.of(cell);
                if (value !== null) values[k][hour].push(value);
            });
        }
        if (any) rows++;
    });
    const mean = (list: number[]) => (list.length ? list.reduce((s, v) => s + v, 0) / list.length : null);
    const lines: Series["lines"] = [];
    KINDS.forEach(({ name, unit }, k) => {
        if (!values[k].some((list) => list.length)) return;
        lines.push({ name: rows > 1 ? `${name}, mean` : name, unit, v: values[k].map(mean) });
        if (rows < 3 || name.endsWith("activity")) return; // a chart of nine lines says nothing
        const ranked = values[k].map((list) => [...list].sort((a, b) => a - b));
        lines.push({ name: `${name}, 10th percentile of GPUs`, unit, v: ranked.map((l) => quantile(l, 0.1)) });
        lines.push({ name: `${name}, 90th percentile of GPUs`, unit, v: ranked.map((l) => quantile(l, 0.9)) });
    });
    return { t: p.hours, lines };
}
