// What the views work on: a report as numbers, and sums of its rows.

import { CATEGORIES, NODE_IDLE } from "./categories";

export type Figures = Record<string, number | null>;

export interface Row {
    keys: Record<string, string | null>; // by the key's word: "instance-type"; null: none
    figures: Figures;
    flags: string[];
}

export interface Note {
    code: string;
    level: "missing" | "caution" | "info";
    text: string;
    subject?: string;
    gpu_hours?: number;
    cost?: string;
}

export interface Report {
    window: { from: string; to: string; tz: string };
    recorded: { from: string; to: string } | null;
    currency: string;
    by: string[];
    fleet: { gpus: number; nodes: number; node_hours: number };
    totals: Figures;
    flags: string[];
    rowsTotal: number;
    rows: Row[];
    balance: { price: number; booked: number; balanced: boolean } | null;
    notes: Note[];
    filters: string[]; // "team=search": of the ledger, before anything on the page
}

const word = (machine: string) => machine.replace(/_/g, "-");
const machine = (key: string) => key.replace(/-/g, "_");

/** Money comes as decimal text, so that no reader loses a digit by accident; a screen shows doubles. */
function figuresOf(raw: Record<string, unknown>, skip: Set<string>): Figures {
    const figures: Figures = {};
    for (const name in raw) {
        if (skip.has(name) || name === "flags") continue;
        const value = raw[name];
        figures[name] = value == null ? null : Number(value);
    }
    return figures;
}

export function readReport(raw: any): Report {
    const by: string[] = raw.by.map(word);
    const names = new Set(by.map(machine));
    const flags = (of: Record<string, unknown>) => Object.keys((of.flags as object) ?? {});
    return {
        window: raw.window,
        recorded: raw.recorded,
        currency: raw.currency,
        by,
        fleet: raw.fleet,
        totals: figuresOf(raw.totals, new Set()),
        flags: flags(raw.totals),
        rowsTotal: raw.rows_total,
        rows: raw.rows.map((r: Record<string, unknown>) => ({
            keys: Object.fromEntries(by.map((key) => [key, (r[machine(key)] as string | null) ?? null])),
            figures: figuresOf(r, names),
            flags: flags(r),
        })),
        balance: raw.balance && {
            price: Number(raw.balance.price), booked: Number(raw.balance.booked), balanced: raw.balance.balanced,
        },
        notes: raw.notes,
        filters: (raw.filters ?? []).map((f: { key: string; not: boolean; value: string }) => `${word(f.key)}${f.not ? "!=" : "="}${f.value}`),
    };
}

const HELD = ["used", "slack", "held_idle"];
const RATIOS = new Set(["utilisation", "coverage", "efficiency", "effective_price", "memory_avg_bytes"]);

/** Adds rows up. Sums add; ratios are divided anew, each by what it was divided by in its row: a ratio
 *  of ratios would weigh an hour as much as a month. */
export function sum(rows: Figures[]): Figures {
    const total: Figures = {};
    let seenU = 0, heldCost = 0, memory = 0, memoryHours = 0;
    for (const f of rows) {
        for (const name in f) {
            const value = f[name];
            if (value == null || RATIOS.has(name)) continue;
            const before = total[name];
            total[name] = before == null ? value : name === "memory_max_bytes" ? Math.max(before, value) : before + value;
        }
        if (f.utilisation != null)
            seenU += f.utilisation > 0 ? (f.useful_gpu_hours ?? 0) / f.utilisation : f.held_observed_gpu_hours ?? 0;
        if (f.efficiency != null)
            heldCost += f.efficiency > 0 ? (f.used ?? 0) / f.efficiency : HELD.reduce((s, name) => s + (f[name] ?? 0), 0);
        if (f.memory_avg_bytes != null) {
            memory += f.memory_avg_bytes * (f.gpu_hours ?? 0);
            memoryHours += f.gpu_hours ?? 0;
        }
    }
    const useful = total.useful_gpu_hours ?? 0, held = total.held_gpu_hours ?? 0;
    total.utilisation = seenU > 0 ? useful / seenU : null;
    total.coverage = held > 0 ? (total.held_observed_gpu_hours ?? 0) / held : null;
    total.efficiency = heldCost > 0 ? (total.used ?? 0) / heldCost : null;
    total.effective_price = useful > 0 ? HELD.reduce((s, name) => s + (total[name] ?? 0), 0) / useful : null;
    total.memory_avg_bytes = memoryHours > 0 ? memory / memoryHours : null;
    return total;
}

export interface Part {
    id: string;
    value: number;
}

/** The split of a cost, by category, in the order of the command line. */
export const split = (f: Figures): Part[] => CATEGORIES.map((c) => ({ id: c.id, value: f[c.id] ?? 0 }));
export const nodeIdle = (f: Figures) => NODE_IDLE.reduce((s, c) => s + (f[c.id] ?? 0), 0);
export const heldCost = (f: Figures) => HELD.reduce((s, name) => s + (f[name] ?? 0), 0);

/** "(not held)" is what the command line says where a row has no such key. */
export const NOT_HELD = "(not held)";
export const keyText = (value: string | null) => value ?? NOT_HELD;
