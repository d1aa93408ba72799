// The idle scan: which GPUs and nodes stood still on every one of the last complete days, by how much
// each day's means stayed under their thresholds, and since when they have stood still up to now.

import { useState } from "preact/hooks";
import { IdleDays, IdleGpu, IdleNode, useAnswer } from "../data";
import * as format from "../format";
import { countsOf, daysWords, fits, highest, IdleRow, LETTERS, rowsOf, SHOWN, uncheckedOf } from "../idle";
import { filterOf, link } from "../route";
import { Chart } from "../ui/chart";
import { keyOf, Page, question, usePage, zoneOf } from "../ui/context";
import { patternFill } from "../ui/patterns";
import { Await } from "../ui/states";
import { Column, Table } from "../ui/table";
import { FindingTabs } from "./findings";

const CELL = 34, HIGH = 18, ROWS = 120;
const percent = (value: number | null) => (value === null ? format.UNKNOWN : format.percent(value / 100));
const bytes = (value: number | null) => (value === null ? format.UNKNOWN : `${format.digits(value / 1e6)} MB`);

/** What a cell's day was: the letter in words, and the means that it follows from. */
function dayWords(day: string, gpu: IdleGpu, i: number): string {
    const means = [["use", gpu.util[i]], ["memory", gpu.memory[i]], ["power", gpu.power[i]]] as const;
    const power = (name: string) => (name === "power" ? " of the limit" : "");
    return `${day}: ${LETTERS[gpu.days[i]].words}; ${means.map(([name, v]) => `${name} ${v === null ? "unchecked" : percent(v) + power(name)}`).join(", ")}`;
}
const hostWords = (day: string, node: IdleNode, i: number) =>
    `${day}: ${LETTERS[node.days[i]].host}; CPU at most ${percent(node.cpu_peak[i])}, network ${bytes(node.network_bytes[i])}`;

function Cells({ days, letters, label, title, host }: { days: string[]; letters: string; label: string; title: (i: number) => string; host?: boolean }) {
    const high = host ? 8 : HIGH;
    return (
        <svg class="idle-cells" width={CELL * days.length} height={high} role="img" aria-label={label}>
            {days.map((day, i) => (
                <g key={day}>
                    <title>{title(i)}</title>
                    <rect x={i * CELL} width={CELL - 2} height={high} rx="2" class={LETTERS[letters[i]].fill ? "" : "track"} fill={LETTERS[letters[i]].fill ? patternFill(LETTERS[letters[i]].fill) : undefined} />
                </g>
            ))}
        </svg>
    );
}

/** "since 2026-11-19 20:59Z · 243 h · $1,672" */
function Since({ of, page }: { of: IdleGpu | IdleNode; page: Page }) {
    const since = of.idle_since;
    if (!since) return <span class="quiet">at work lately</span>;
    const gaps = since.observed_hours < since.hours * 0.99;
    return (
        <>
            {of.verdict === "idle" ? "" : "idle "}since <span class="nowrap">{format.moment(Date.parse(since.from), zoneOf(page))}</span> · <b class="nowrap">{format.hours(since.hours, 0)} h</b>
            {since.cost !== null && <> · <b>{format.money(Number(since.cost), page.meta.currency)}</b></>}
            {gaps && <span class="quiet"> ({format.share(since.observed_hours, since.hours)} of it observed)</span>}
        </>
    );
}

const gpuLink = (page: Page, gpu: string) => link(page.route, { view: "gpu", path: [gpu] });
const nodeLink = (page: Page, node: IdleNode) =>
    link(page.route, { view: "node", path: [node.node], filters: node.cluster ? [filterOf("cluster", node.cluster)] : [] });

function NodeRows({ rows, days }: { rows: IdleRow[]; days: string[] }) {
    const page = usePage();
    const { node } = rows[0];
    const host = /[^-]/.test(node.days);
    return (
        <li class="idle-node">
            <h3><a href={nodeLink(page, node)}><bdi>{format.clean(node.node)}</bdi></a> <span class="quiet">{node.instance_type ? format.clean(node.instance_type) + ", " : ""}{format.plural(node.gpus, "GPU")}: <b>{node.verdict}</b>{node.cpu_bound ? ", its work is on the CPU" : ""}{host ? "" : "; CPU and network unchecked"}</span></h3>
            <ul>
                {host && <li class="idle-row"><span class="quiet idle-name">CPU, network</span>
                    <Cells days={days} letters={node.days} host label={`CPU and network of ${format.clean(node.node)}: ${daysWords(node.days, true)}`} title={(i) => hostWords(days[i], node, i)} /></li>}
                {rows.map(({ gpu }) => (
                    <li class="idle-row" key={gpu.gpu}>
                        <a class="idle-name" href={gpuLink(page, gpu.gpu)}><bdi>{format.clean(gpu.gpu)}</bdi></a>
                        <Cells days={days} letters={gpu.days} label={`${gpu.verdict}: ${daysWords(gpu.days)}`} title={(i) => dayWords(days[i], gpu, i)} />
                        <span class="idle-words">{gpu.verdict} · <Since of={gpu} page={page} /></span>
                    </li>
                ))}
            </ul>
        </li>
    );
}

function Picture({ scan, rows }: { scan: IdleDays; rows: IdleRow[] }) {
    const [most, setMost] = useState(ROWS);
    const shown = rows.slice(0, most), nodes: IdleRow[][] = [];
    for (const row of shown) {
        const last = nodes[nodes.length - 1];
        if (last && last[0].node === row.node) last.push(row);
        else nodes.push([row]);
    }
    return (
        <div class="idle-picture">
            <div class="idle-row idle-days" aria-hidden="true"><span class="idle-name" />
                <span class="idle-cells" style={{ width: `${CELL * scan.days.length}px` }}>{scan.days.map((day, i) => <span key={day} style={{ width: `${CELL}px` }}>{i === 0 || day.endsWith("-01") ? day.slice(5) : day.slice(8)}</span>)}</span></div>
            <ul class="idle-nodes" aria-label="Idle scan by node">{nodes.map((of) => <NodeRows key={of[0].key} rows={of} days={scan.days} />)}</ul>
            {rows.length > most && <p class="more">{format.digits(most)} of {format.plural(rows.length, "GPU")} <button type="button" class="plain" onClick={() => setMost(most + 5 * ROWS)}>Show more</button></p>}
            <ul class="legend with-values" aria-label="Legend">
                {["I", "P", "U", "N"].map((letter) => <li key={letter}><svg class="swatch" width="12" height="12" aria-hidden="true"><rect width="12" height="12" rx="2" fill={patternFill(LETTERS[letter].fill)} /></svg>{LETTERS[letter].words}</li>)}
                <li class="quiet">the thin row is the node's CPU and network</li>
            </ul>
        </div>
    );
}

function Twin({ scan, rows }: { scan: IdleDays; rows: IdleRow[] }) {
    const page = usePage();
    const money = (v: string | null | undefined) => (v == null ? null : Number(v));
    const places = format.moneyPlaces(Math.max(0, ...rows.map((r) => Number(r.gpu.idle_since?.cost ?? 0))));
    const mean = (id: "util" | "memory" | "power", heading: string): Column<IdleRow> =>
        ({ id, heading, title: "mean of the highest day with enough data", value: (r) => highest(r.gpu[id], r.gpu.days), cell: (r) => percent(highest(r.gpu[id], r.gpu.days)) });
    const columns: Column<IdleRow>[] = [
        { id: "node", heading: "Node", text: true, value: (r) => r.node.node, cell: (r) => <a href={nodeLink(page, r.node)}><bdi>{format.clean(r.node.node)}</bdi></a> },
        { id: "gpu", heading: "GPU", text: true, name: true, value: (r) => r.gpu.gpu, cell: (r) => <a href={gpuLink(page, r.gpu.gpu)}><bdi>{format.clean(r.gpu.gpu)}</bdi></a> },
        { id: "verdict", heading: "Verdict", text: true, value: (r) => r.gpu.verdict, cell: (r) => r.gpu.verdict },
        mean("util", "Use"), mean("memory", "Memory"), mean("power", "Power"),
        { id: "held", heading: "Held", title: "of the time that it was up", value: (r) => r.gpu.held, cell: (r) => percent(r.gpu.held) },
        { id: "idle_since", heading: "Idle since", text: true, value: (r) => r.gpu.idle_since?.from, cell: (r) => (r.gpu.idle_since ? format.moment(Date.parse(r.gpu.idle_since.from), zoneOf(page)) : format.UNKNOWN) },
        { id: "idle_hours", heading: "Hours", value: (r) => r.gpu.idle_since?.hours, cell: (r) => format.hours(r.gpu.idle_since?.hours) },
        { id: "idle_cost", heading: "Cost", title: "since then", value: (r) => money(r.gpu.idle_since?.cost), cell: (r) => format.money(money(r.gpu.idle_since?.cost), scan.currency, places) },
        { id: "longest_idle_hours", heading: "Longest", title: "hours of the longest run without work in the window", value: (r) => r.gpu.longest_idle_hours, cell: (r) => format.hours(r.gpu.longest_idle_hours) },
        { id: "last_3h", heading: "Last 3 h", text: true, value: (r) => r.gpu.last_3h, cell: (r) => r.gpu.last_3h },
        ...scan.days.map((day, i): Column<IdleRow> => ({ id: day, heading: day.slice(5), text: true, title: day, value: (r) => LETTERS[r.gpu.days[i]].words, cell: (r) => <span title={dayWords(day, r.gpu, i)}>{LETTERS[r.gpu.days[i]].words.split(",")[0]}{r.gpu.days[i] === "P" ? "*" : ""}</span> })),
        { id: "unchecked", heading: "Unchecked", text: true, value: (r) => [...r.gpu.unchecked, ...r.node.unchecked].join("; "), cell: (r) => [...r.gpu.unchecked, ...r.node.unchecked].join(", ") || format.UNKNOWN },
        { id: "node_cpu_peak", heading: "Node CPU", title: "highest mean of five minutes", value: (r) => highest(r.node.cpu_peak, r.node.days), cell: (r) => percent(highest(r.node.cpu_peak, r.node.days)) },
        { id: "node_network_bytes", heading: "Network a day", title: "in and out, the highest day", value: (r) => highest(r.node.network_bytes, r.node.days), cell: (r) => bytes(highest(r.node.network_bytes, r.node.days)) },
    ];
    return <Table name="Idle scan" columns={columns} rows={rows} rowKey={(r) => r.key} sort={page.route.sort} onSort={(sort) => page.go({ sort }, true)} />;
}

function Judged({ scan }: { scan: IdleDays }) {
    const { thresholds: t } = scan;
    const above = scan.idle_floor.filter((f) => t.power === "auto" && f.percent + 5 > 15);
    return (
        <details class="notes"><summary>How it is judged</summary>
            <ul>
                <li>A GPU is idle when on every day its mean use (GPU_UTIL) is below {t.util_below_percent} %, its memory below {t.memory_below_percent} % and its power below {t.power === "auto" ? "15 %" : "what was set"} of the limit; a node, when all its GPUs are, its CPU never went above {t.cpu_peak_below_percent} % for five minutes and its network moved less than {format.digits(t.network_below_bytes / 1e6)} MB a day. A GPU that is idle on a node that is not is <b>partly idle</b>.</li>
                {above.map((f) => <li key={f.model}>{format.clean(f.model)} is held against {format.digits(f.percent + 5, 1)} % of its limit: it draws {format.digits(f.percent, 1)} % when idle ({format.plural(f.samples, "sample")}).</li>)}
                <li>What has no signal is neither met nor failed: it is <b>unchecked</b>. A day of which less than half is observed has not enough data, and so has a GPU without {scan.days.length} such days, unless a threshold failed.</li>
                <li><b>Idle since</b> is the last stretch up to now in which nothing ran. It is advice to stop only after {t.finding_hours} hours of which {t.finding_observed_percent} % are observed.</li>
            </ul>
        </details>
    );
}

function Scan({ scan }: { scan: IdleDays }) {
    const page = usePage();
    const { verdict = "" } = page.route.more;
    const counts = countsOf(scan), unchecked = uncheckedOf(scan), rows = rowsOf(scan, verdict);
    const per = (n: number) => `${format.share(n, counts.gpus)} of ${format.plural(counts.gpus, "GPU")}`;
    const figures: [string, string, string][] = [
        ["Idle", format.plural(counts.idle, "GPU"), counts.nodes ? `${format.plural(counts.nodes, "whole node")}` : per(counts.idle)],
        ["Partly idle", format.plural(counts.partly, "GPU"), "on nodes that are not"],
        ["Not idle", format.plural(counts.not, "GPU"), per(counts.not)],
        ["Not enough data", format.plural(counts.unknown, "GPU"), counts.unknown ? "not called idle" : ""],
        ["Still for 3 days up to now", format.plural(counts.still, "GPU"), counts.stillCost === null ? "" : `${format.money(counts.stillCost, scan.currency)} since`],
    ];
    return (
        <>
            <p class="lead">Which GPUs and nodes stood still on all of {format.plural(scan.days.length, "complete day")}, {scan.days[0]} to {scan.days[scan.days.length - 1]} ({scan.tz}).</p>
            <dl class="figures plain-figures">{figures.map(([name, value, beside]) => <div class="figure" key={name}><dt>{name}</dt><dd><span class="value">{value}</span><span class="beside">{beside}</span></dd></div>)}</dl>
            {unchecked.length > 0 && <p class="warning-line"><b>Unchecked</b>: {unchecked.join(", ")}. {scan.nodes.some((n) => n.unchecked.length) ? "Their work may be on the CPU: ask before a node is removed." : ""}</p>}
            <div class="controls"><label>Verdict <select aria-label="Verdict" value={verdict} onChange={(e) => page.go({ more: { ...page.route.more, verdict: e.currentTarget.value } })}>
                {SHOWN.map(([value, words]) => <option key={value} value={value}>{words} ({scan.nodes.reduce((n, node) => n + node.devices.filter((gpu) => fits(gpu, value)).length, 0)})</option>)}
            </select></label></div>
            {rows.length === 0
                ? <div class="state empty"><p><b>{verdict ? `No GPU is “${verdict}”.` : "Nothing stands idle."}</b></p>{!verdict && counts.unknown > 0 && <p class="quiet">Of {format.plural(counts.unknown, "GPU")} there is not enough data to say so.</p>}</div>
                : <Chart title="GPUs and days" note={`a cell is a day, ${scan.tz}`} chart={<Picture scan={scan} rows={rows} />} table={<Twin scan={scan} rows={rows} />} />}
            <Judged scan={scan} />
        </>
    );
}

export function IdleView() {
    const page = usePage();
    const q = question(page, [], []);
    const answer = useAnswer(keyOf(q, "idle"), () => page.source.idle(q));
    return (
        <>
            <h1>Findings</h1>
            <FindingTabs />
            <Await answer={answer} what="the idle scan">
                {(scan) => scan.nodes.length
                    ? <Scan scan={scan} />
                    : <div class="state empty"><p><b>No GPU was seen in the complete days before this window's end.</b></p><p class="quiet">The scan needs {format.plural(scan.days.length, "complete day")} of telemetry.</p></div>}
            </Await>
        </>
    );
}
