// What needs no browser: how figures are written, addresses, sums, CSV, the picture. Run by tests/run web.

import assert from "node:assert/strict";
import { test } from "node:test";
import { field, csv } from "../src/csv";
import { ask, cubeFor, filterTest } from "../src/cube";
import * as format from "../src/format";
import { sum, readReport, Figures } from "../src/model";
import { cellAt, dayRange, digit, halve, picture, pixels, quantile, seriesOf, stretches } from "../src/picture";
import type { IdleDays, IdleGpu, IdleNode } from "../src/data";
import { countsOf, daysWords, highest, rowsOf, uncheckedOf } from "../src/idle";
import { filterOf, format as address, globMatches, HOME, parse, splitFilter } from "../src/route";
import { sorted } from "../src/ui/table";
import { squarify, efficiencyStep } from "../src/ui/treemap";
import { axisStep } from "../src/ui/days";
import { shellWord } from "../src/data";
import { measure } from "../src/views/findings";
import { nextKey } from "../src/views/explore";

test("money is written as the command line writes it", () => {
    assert.equal(format.money(16128, "USD"), "$16,128");
    assert.equal(format.money(6.4512, "USD"), "$6.45");
    assert.equal(format.money(0.2, "USD", 0), "<$1");
    assert.equal(format.money(0, "USD"), "$0");
    assert.equal(format.money(0, "USD", 2), "$0");
    assert.equal(format.money(null, "USD"), "–");
    assert.equal(format.money(12, "CHF", 0), "12 CHF");
    assert.equal(format.moneyChange(-358.5, "USD", 0), "−$359");
    assert.equal(format.moneyChange(0.2, "USD", 0), "+<$1");
    assert.equal(format.moneyShort(12500, "USD"), "$12.5k");
    assert.equal(format.moneyShort(8000, "USD"), "$8,000");
});

/** Random, from a seed that is printed; set SEED to run one again. */
function random(): () => number {
    let state = Number(process.env.SEED ?? Date.now() % 1e9) >>> 0;
    console.log(`seed ${state}`);
    return () => {
        state = (state + 0x6d2b79f5) >>> 0;
        let x = Math.imul(state ^ (state >>> 15), state | 1);
        x ^= x + Math.imul(x ^ (x >>> 7), x | 61);
        return ((x ^ (x >>> 14)) >>> 0) / 2 ** 32;
    };
}

test("numbers are written as Intl writes them", () => {
    const next = random();
    const intl = [0, 1, 2, 3, 4].map((n) => new Intl.NumberFormat("en-US", { minimumFractionDigits: n, maximumFractionDigits: n }));
    const same = (value: number) => intl.forEach((format_, places) => assert.equal(format.digits(value, places), format_.format(value), `${value} to ${places} places`));
    [0, -0, 0.5, -0.5, 1.5, 2.5, -2.5, 0.05, 1.005, 8.345, 0.99995, 9.5, 99.95, 999.5, 999999.5, 999, 1000, -1000, 1e-7, 4.9e-324, 5e-7, 2 ** 53, 123456789012345680, 9.99e20, 1e21, Infinity, NaN].forEach(same);
    for (let i = 0; i < 20000; i++) {
        const size = Math.pow(10, Math.floor(next() * 16) - 5), sign = next() < 0.3 ? -1 : 1;
        same(sign * next() * size);
        same((sign * Math.round(next() * size)) / 2000); // halves
    }
});

test("times in UTC are written as Intl writes them", () => {
    const next = random();
    const intl = new Intl.DateTimeFormat("en-GB", { timeZone: "UTC", year: "numeric", month: "2-digit", day: "2-digit", weekday: "short", hour: "2-digit", minute: "2-digit", hourCycle: "h23" });
    for (let i = 0; i < 2000; i++) {
        const at = Date.parse("1970-01-01") + Math.floor(next() * 4e12);
        const p = Object.fromEntries(intl.formatToParts(at).map((part) => [part.type, part.value]));
        assert.equal(`${format.weekday(at, "UTC")} ${format.moment(at, "UTC")}`, `${p.weekday} ${p.year}-${p.month}-${p.day} ${p.hour}:${p.minute}Z`);
    }
});

test("little is not none, and nearly all is not all", () => {
    assert.equal(format.percent(0.001), "<1 %");
    assert.equal(format.percent(0), "0 %");
    assert.equal(format.percent(0.999), ">99 %");
    assert.equal(format.percent(1), "100 %");
    assert.equal(format.percent(0.994, 1), "99.4 %");
    assert.equal(format.percent(null), "–");
    assert.equal(format.share(1, 0), "–");
    assert.equal(format.hours(0.01), "<0.1");
});

test("a change has its sign, and what was nothing before is new", () => {
    assert.equal(format.change(110, 100), "+10 %");
    assert.equal(format.change(98.3, 100), "−1.7 %");
    assert.equal(format.change(5, 0), "new");
    assert.equal(format.change(100, 100), "0 %");
});

test("times are in the zone that is asked for", () => {
    const at = Date.parse("2026-11-30T23:30:00Z");
    assert.equal(format.moment(at, "UTC"), "2026-11-30 23:30Z");
    assert.equal(format.moment(at, "Europe/Berlin"), "2026-12-01 00:30");
    assert.equal(format.day(at, "Asia/Kolkata"), "2026-12-01");
    assert.equal(format.duration(168), "7 days");
    assert.equal(format.duration(36), "36 h");
});

test("signs that hide or turn text are written out", () => {
    assert.equal(format.clean("a\u202eb"), "a\\u202eb");
    assert.equal(format.clean("\x1b[31m"), "\\x1b[31m");
    assert.equal(format.clean("zero\u200bwidth"), "zero\\u200bwidth");
    assert.equal(format.clean("שלום <b> 漢字"), "שלום <b> 漢字");
});

test("an address says everything and reads back", () => {
    const route = { ...HOME, view: "explore", path: ["a/b", "c d"], window: "7d", by: ["team", "workload"], filters: ["cluster=prod", "node!=gpu-*", "pod=a&b=c#?"], sort: "-cost", tz: "Europe/Berlin", more: { day: "2026-11-30", owner: "x=y" } };
    assert.deepEqual(parse(address(route)), route);
    assert.equal(address({ ...HOME, view: "explore", by: ["team", "workload"], filters: ["cluster=prod"] }), "#/explore?by=team,workload&filter=cluster=prod");
    assert.deepEqual(parse(""), HOME);
    assert.equal(parse("#/node/%E0%A4%A").path[0], "%E0%A4%A"); // half an escape
});

test("filters are globs as on the command line", () => {
    assert.deepEqual(splitFilter("node!=gpu-*"), { key: "node", not: true, value: "gpu-*" });
    assert.deepEqual(splitFilter("pod=a=b"), { key: "pod", not: false, value: "a=b" });
    assert.ok(globMatches("gpu-*", "gpu-17"));
    assert.ok(globMatches("*-1?", "gpu-17"));
    assert.ok(!globMatches("gpu", "gpu-17"));
    assert.ok(globMatches("a.c", "a.c") && !globMatches("a.c", "abc"));
    assert.ok(!globMatches("*a*a*a*a*a*a*a*a*b", "a".repeat(5000)));
    assert.equal(filterOf("pod", "a*[b]"), "pod=a??b?");
    assert.equal(filterOf("team", null), "team=-");
});

test("on one key any of the filters, on several all, and none that is excluded", () => {
    const fits = filterTest(["team=a", "team=b", "node=n1", "pod!=x*"]);
    assert.ok(fits({ team: "a", node: "n1", pod: "y" }));
    assert.ok(fits({ team: "b", node: "n1", pod: null }));
    assert.ok(!fits({ team: "c", node: "n1", pod: "y" }));
    assert.ok(!fits({ team: "a", node: "n2", pod: "y" }));
    assert.ok(!fits({ team: "a", node: "n1", pod: "xx" }));
    assert.ok(filterTest(["team=-"])({ team: null }));
});

const row = (over: Figures): Figures => ({ gpu_hours: 10, held_gpu_hours: 10, held_observed_gpu_hours: 10, useful_gpu_hours: 5, cost: 40, used: 20, slack: 20, held_idle: 0, utilisation: 0.5, coverage: 1, efficiency: 0.5, effective_price: 8, ...over });

test("sums add, and ratios are divided anew", () => {
    // 10 h at 50 % and 30 h at 10 %: 8 useful of 40 seen; 160 of money over 8 useful hours
    const total = sum([row({}), row({ gpu_hours: 30, held_gpu_hours: 30, held_observed_gpu_hours: 30, useful_gpu_hours: 3, cost: 120, used: 12, slack: 108, utilisation: 0.1, efficiency: 0.1 })]);
    assert.equal(total.cost, 160);
    assert.equal(total.gpu_hours, 40);
    assert.ok(Math.abs(total.utilisation! - 0.2) < 1e-12);
    assert.ok(Math.abs(total.effective_price! - 20) < 1e-12);
    assert.ok(Math.abs(total.efficiency! - 0.2) < 1e-12);
    assert.equal(total.coverage, 1);
});

test("an idle row weighs as much as a busy one, and unheld rows have no ratio", () => {
    const total = sum([row({}), row({ useful_gpu_hours: 0, used: 0, slack: 0, held_idle: 40, utilisation: 0, efficiency: 0 })]);
    assert.ok(Math.abs(total.utilisation! - 0.25) < 1e-12);
    assert.ok(Math.abs(total.efficiency! - 0.25) < 1e-12);
    const unheld = sum([row({ held_gpu_hours: 0, held_observed_gpu_hours: 0, useful_gpu_hours: 0, used: 0, slack: 0, node_idle_empty: 40, utilisation: null, coverage: null, efficiency: null, effective_price: null })]);
    assert.deepEqual([unheld.utilisation, unheld.coverage, unheld.efficiency, unheld.effective_price], [null, null, null, null]);
});

test("the smallest cube that has the keys answers", () => {
    const cubes = [
        { by: ["team", "node", "pod"], figures: ["cost"], rows: [["a", "n1", "p1", 1], ["a", "n2", "p2", 2], ["b", "n1", "p3", 4]], rows_total: 3 },
        { by: ["team", "node"], figures: ["cost"], rows: [["a", "n1", 1], ["b", "n1", 4]], rows_total: 2 },
    ];
    assert.equal(cubeFor(cubes, ["team"], ["node=n1"]), cubes[1]);
    assert.equal(cubeFor(cubes, ["team"], ["pod=p1"]), cubes[0]);
    assert.equal(cubeFor(cubes, ["model"], []), undefined);
    const base = { by: [], rows: [], notes: [] } as never;
    const answer = ask(cubes[0], base, ["team"], ["node=n1"]);
    assert.deepEqual(answer.rows.map((r) => [r.keys.team, r.figures.cost]), [["b", 4], ["a", 1]]);
    assert.equal(answer.totals.cost, 5);
});

test("a report's money is text and its keys have dashes", () => {
    const report = readReport({ window: {}, recorded: null, currency: "USD", by: ["instance_type"], fleet: {}, totals: { cost: "1.500000000", utilisation: null, flags: { unpriced: {} } }, rows_total: 1, rows: [{ instance_type: null, cost: "1.500000000", flags: {} }], balance: null, notes: [] });
    assert.equal(report.totals.cost, 1.5);
    assert.equal(report.totals.utilisation, null);
    assert.deepEqual(report.by, ["instance-type"]);
    assert.deepEqual(report.rows[0].keys, { "instance-type": null });
    assert.deepEqual(report.flags, ["unpriced"]);
});

test("CSV quotes, and neutralises what a spreadsheet would run", () => {
    for (const sign of ["=1", "+1", "-1", "@a", "\ta", "\ra"]) assert.ok(field(sign).replace(/^"/, "").startsWith("'"), sign);
    assert.equal(field(-1.5), "-1.5");
    assert.equal(field(null), "");
    assert.equal(field('a"b,c'), '"a""b,c"');
    assert.equal(csv(["a", "b"], [["x", 1]]), "a,b\r\nx,1\r\n");
});

test("tables sort by largest, keep order on ties, and put what is not known last both ways", () => {
    const rows = [{ n: "b", v: 1 }, { n: "a", v: null }, { n: "c", v: 3 }, { n: "d", v: 1 }];
    const columns = [{ id: "v", heading: "", cell: () => "", value: (r: (typeof rows)[number]) => r.v }, { id: "n", heading: "", cell: () => "", value: (r: (typeof rows)[number]) => r.n }];
    assert.deepEqual(sorted(rows, columns, "v").map((r) => r.n), ["c", "b", "d", "a"]);
    assert.deepEqual(sorted(rows, columns, "-v").map((r) => r.n), ["b", "d", "c", "a"]);
    assert.deepEqual(sorted(rows, columns, "n").map((r) => r.n), ["a", "b", "c", "d"]);
});

test("a treemap's areas are its values and fill its box", () => {
    const values = [6, 6, 4, 3, 2, 2, 1], boxes = squarify(values, { x: 0, y: 0, w: 600, h: 400 });
    boxes.forEach((b, i) => assert.ok(Math.abs(b.w * b.h - (values[i] / 24) * 240000) < 1e-6));
    for (const b of boxes) assert.ok(b.x >= -1e-9 && b.y >= -1e-9 && b.x + b.w <= 600 + 1e-9 && b.y + b.h <= 400 + 1e-9);
    // the first row of the published example: two squares of 6, side by side in height
    assert.ok(Math.abs(boxes[0].w - 300) < 1e-9 && Math.abs(boxes[0].h - 200) < 1e-9);
    assert.equal(efficiencyStep(1), 6);
    assert.equal(efficiencyStep(0), 0);
    assert.equal(efficiencyStep(null), null);
});

test("axes have round steps", () => {
    assert.equal(axisStep(6800), 2000);
    assert.equal(axisStep(100), 25);
    assert.equal(axisStep(0), 1);
});

const FLEET = {
    hours: ["2026-11-30T22:00:00Z", "2026-11-30T23:00:00Z", "2026-12-01T00:00:00Z"],
    holders: [{ namespace: "ml", workload: "Job/a", team: "x", pod: null }],
    nodes: [
        { cluster: null, node: "n1", instance_type: "t", pool: null, gpus: [{ device: "G0", model: "m", hours: "UU.", use: "z0-", runs: [0, 2, 0], memory: "zz-", memory_total: 70, power: "z--", power_top: 400 }, { device: "G1", model: "m", hours: "EEE", use: "000" }] },
        { cluster: null, node: "n2", instance_type: "t", pool: null, gpus: [{ device: "G2", model: "m", hours: "SSS", use: "iii" }] },
    ],
} as never;

test("a cell of the picture is what its hour was", () => {
    const p = picture(FLEET);
    assert.deepEqual(p.bands.map((b) => [b.first, b.n]), [[0, 2], [2, 1]]);
    const cell = cellAt(p, 0, 0)!;
    assert.deepEqual([cell.category, cell.use, cell.memory, cell.power, cell.holder?.workload], ["used", 1, 70, 400, "Job/a"]);
    assert.deepEqual([cellAt(p, 0, 2)!.category, cellAt(p, 0, 2)!.use, cellAt(p, 0, 2)!.holder], [null, null, null]);
    assert.equal(cellAt(p, 9, 0), null);
    assert.equal(digit("-"), null);
    assert.equal(digit("0"), 0);
    assert.deepEqual(stretches(p).map((s) => [s.from, s.to]), [[Date.parse("2026-11-30T22:00:00Z"), Date.parse("2026-12-01T00:00:00Z")]]);
});

test("a day is the hours that begin in it", () => {
    assert.deepEqual(dayRange(["a", "a", "b"], "a"), [0, 2]);
    assert.deepEqual(dayRange(["a", "a", "b"], "b"), [2, 3]);
    assert.equal(dayRange(["a"], "c"), null);
});

test("small pictures keep whole rows, and what is rare", () => {
    // rows: a a a / b H b / c c c, H must stay whichever of the two rows is taken
    const a = 1, b = 2, c = 3, H = 9;
    const half = halve(Uint32Array.from([a, a, a, b, H, b, c, c, c]), 3, 3, new Set([H]));
    assert.equal(half.length, 6);
    assert.equal(half[1], H);
    assert.ok((half[0] === a && half[2] === a) || (half[0] === b && half[2] === b));
    assert.deepEqual([...half.slice(3)], [c, c, c]);
    const data = pixels(picture(FLEET), (letter) => (letter === "U" ? [100, 0, 200] : [0, 50, 0]));
    assert.equal(data.length, 9);
    assert.deepEqual([data[0] & 255, (data[0] >> 8) & 255, (data[0] >> 16) & 255, data[0] >>> 24], [100, 0, 200, 255]);
});

test("series are means over GPUs, and those of a holder only his hours", () => {
    const p = picture(FLEET);
    assert.deepEqual(seriesOf(p, (h) => h.workload === "Job/a").lines.find((l) => l.name === "use")!.v, [1, 0, null]);
    assert.deepEqual(seriesOf(p).lines[0].v[2], (0 + 18 / 35) / 2);
    assert.equal(quantile([1, 2, 3, 4, 5, 6, 7, 8, 9, 10], 0.9), 9);
    assert.equal(quantile([], 0.5), null);
});

test("evidence is drawn only where value and bound are of one unit", () => {
    assert.deepEqual(measure({ name: "", value: "100.0 %", threshold: "60 %" }), { value: 100, bound: 60, top: 100 });
    assert.equal(measure({ name: "", value: "168.0 GPU-hours", threshold: "60 %" }), null);
    assert.equal(measure({ name: "", value: "none in the window", threshold: "24 h" }), null);
    assert.equal(measure({ name: "", value: "1 h", threshold: null }), null);
});

test("what is copied into a shell is one word", () => {
    assert.equal(shellWord("node-empty-ccc3276c"), "node-empty-ccc3276c");
    assert.equal(shellWord("a b'; rm -rf /"), "'a b'\\''; rm -rf /'");
});

test("a click goes down to what is not fixed yet", () => {
    assert.equal(nextKey(["team"], []), "workload");
    assert.equal(nextKey(["team"], ["workload"]), "pod");
    assert.equal(nextKey(["node"], ["node"]), "gpu");
    assert.equal(nextKey(["container"], ["pod", "gpu", "workload"]), null);
});

// ---- the idle scan -----------------------------------------------------------------------------------

const idleGpu = (gpu: string, verdict: string, days: string, cost: string | null = null, finding = false): IdleGpu => ({
    gpu, verdict, days, model: "H100", unchecked: days.includes("P") ? ["power"] : [], util: [...days].map(() => 1), memory: [...days].map(() => 2), power: [...days].map(() => null),
    power_below: 15, held: 0, longest_idle_hours: null, last_3h: "busy",
    idle_since: cost === null ? null : { from: "2026-11-20T00:00:00Z", hours: 240, observed_hours: 240, cost, finding },
});
const idleNode = (node: string, verdict: string, devices: IdleGpu[]): IdleNode => ({
    node, verdict, devices, cluster: null, instance_type: null, gpus: devices.length, cpu_bound: false, unchecked: ["cpu"], days: "--",
    cpu_peak: [null, null], network_bytes: [null, null], idle_since: null, longest_idle_hours: null, last_3h: "busy",
});
const idleScan = {
    days: ["2026-11-28", "2026-11-29"],
    nodes: [
        idleNode("a", "not idle", [idleGpu("a0", "not idle", "UU"), idleGpu("a1", "partly idle", "IP", "900", true)]),
        idleNode("b", "idle", [idleGpu("b0", "idle", "II", "10", true)]),
        idleNode("c", "not idle", [idleGpu("c0", "not idle", "IU", "50", true), idleGpu("c1", "not enough data", "NI")]),
    ],
} as unknown as IdleDays;

test("what stands still is shown whole nodes first, then by money; other verdicts when they are asked for", () => {
    assert.deepEqual(rowsOf(idleScan, "").map((r) => r.gpu.gpu), ["b0", "a1", "c0"]); // c0: not idle by memory, still for days
    assert.deepEqual(rowsOf(idleScan, "not idle").map((r) => r.gpu.gpu), ["c0", "a0"]);
    assert.deepEqual(rowsOf(idleScan, "not enough data").map((r) => r.gpu.gpu), ["c1"]);
    assert.equal(rowsOf(idleScan, "all").length, 5);
});

test("verdicts are counted, and what stands still has its money", () => {
    assert.deepEqual(countsOf(idleScan), { gpus: 5, idle: 1, partly: 1, not: 2, unknown: 1, nodes: 1, still: 3, stillCost: 960 });
    assert.deepEqual(uncheckedOf(idleScan), ["CPU of 3 nodes", "power of 1 GPU"]);
});

test("the highest day counts only days with enough data", () => {
    assert.equal(highest([3, 9, 5], "INU"), 5);
    assert.equal(highest([null, 9], "IN"), null);
    assert.equal(daysWords("IIU"), "idle on 2 days, not idle on 1 day");
    assert.equal(daysWords("UI", true), "at work on 1 day, quiet on 1 day");
});
