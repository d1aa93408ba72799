// A report in a file has no server to ask, so the file holds the ledger summed by a few sets of keys
// ("cubes"), and a question is answered from the smallest cube that has all the keys asked for.

import { globMatches, splitFilter } from "./route";
import { Figures, Report, Row, sum } from "./model";

export interface Cube {
    by: string[];
    figures: string[];
    rows: (string | number | null)[][]; // the keys, then the figures
    rows_total: number;
}

/** Filters as the ledger takes them: on one key any of those asked for and none of those excluded. */
export function filterTest(filters: string[]): (keys: Record<string, string | null>) => boolean {
    const wanted = new Map<string, string[]>();
    const excluded: [string, string][] = [];
    for (const text of filters) {
        const { key, not, value } = splitFilter(text);
        if (not) excluded.push([key, value]);
        else wanted.set(key, [...(wanted.get(key) ?? []), value]);
    }
    const matches = (value: string | null, glob: string) => globMatches(glob, value ?? "-");
    return (keys) =>
        [...wanted].every(([key, globs]) => globs.some((g) => matches(keys[key], g))) &&
        excluded.every(([key, glob]) => !matches(keys[key], glob));
}

export const keysNeeded = (by: string[], filters: string[]) =>
    [...new Set([...by, ...filters.map((f) => splitFilter(f).key)])];

export function cubeFor(cubes: Cube[], by: string[], filters: string[]): Cube | undefined {
    const needed = keysNeeded(by, filters);
    return cubes.filter((c) => needed.every((k) => c.by.includes(k))).sort((a, b) => a.rows.length - b.rows.length)[0];
}

export function ask(cube: Cube, base: Report, by: string[], filters: string[]): Report {
    const test = filterTest(filters);
    const groups = new Map<string, { keys: Record<string, string | null>; figures: Figures[] }>();
    const all: Figures[] = [];
    for (const raw of cube.rows) {
        const keys: Record<string, string | null> = {};
        cube.by.forEach((key, i) => (keys[key] = raw[i] as string | null));
        if (!test(keys)) continue;
        const figures: Figures = {};
        cube.figures.forEach((name, i) => {
            const value = raw[cube.by.length + i];
            figures[name] = value == null ? null : Number(value);
        });
        all.push(figures);
        const id = JSON.stringify(by.map((key) => keys[key]));
        let group = groups.get(id);
        if (!group) groups.set(id, (group = { keys: Object.fromEntries(by.map((k) => [k, keys[k]])), figures: [] }));
        group.figures.push(figures);
    }
    const rows: Row[] = [...groups.values()].map((g) => ({ keys: g.keys, figures: sum(g.figures), flags: [] }));
    rows.sort((a, b) => (b.figures.cost ?? 0) - (a.figures.cost ?? 0));
    return {
        ...base, by, rows, rowsTotal: rows.length, totals: sum(all),
        balance: filters.length ? null : base.balance, notes: filters.length ? [] : base.notes,
    };
}
