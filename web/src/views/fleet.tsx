// The picture that people hang up: every GPU a row, every hour a column.

import { useEffect, useMemo, useState } from "preact/hooks";
import { byId, CATEGORIES, fullWords } from "../categories";
import { CellHolder, Fleet, FleetNode, useAnswer } from "../data";
import * as format from "../format";
import { Row } from "../model";
import { Cell, cellAt, dayRange, picture, Picture, tally } from "../picture";
import { link } from "../route";
import { Chart, useWidth } from "../ui/chart";
import { keyOf, question, usePage, zoneOf } from "../ui/context";
import { Cursor, FleetCanvas } from "../ui/fleet-canvas";
import { Swatch } from "../ui/patterns";
import { SplitBar } from "../ui/split";
import { Await } from "../ui/states";
import { Column, Table } from "../ui/table";

const ROWS = [0, 2, 5, 10, 18]; // heights of a row; 0: all fit

const ORDERS: Record<string, (a: FleetNode, b: FleetNode) => number> = {
    used: (a, b) => usedShare(a) - usedShare(b),
    type: (a, b) => ((a.instance_type ?? "") < (b.instance_type ?? "") ? -1 : a.instance_type === b.instance_type ? 0 : 1),
};
function usedShare(node: FleetNode): number {
    let sum = 0, n = 0;
    for (const gpu of node.gpus) for (const c of gpu.use) if (c !== "-") (sum += parseInt(c, 36), n++);
    return n ? sum / n : -1;
}

/** Who held it: known to a file from its picture, asked of a server when the cursor rests. */
function useCell(cell: Cell | null): CellHolder[] | null {
    const page = usePage();
    const [found, set] = useState<{ key: string; holders: CellHolder[] | null }>({ key: "", holders: null });
    const key = cell ? `${cell.row.gpu.device} ${cell.at}` : "";
    useEffect(() => {
        if (!cell || page.source.file) return;
        const timer = setTimeout(() => {
            page.source.cell(cell.row.gpu.device, new Date(cell.at).toISOString().replace(".000Z", "Z")).then(
                (holders) => set({ key, holders }), () => set({ key, holders: null }));
        }, 120);
        return () => clearTimeout(timer);
    }, [key]);
    return found.key === key ? found.holders : null;
}

export function Readout({ cell, currency }: { cell: Cell | null; currency: string }) {
    const page = usePage();
    const asked = useCell(cell);
    if (!cell)
        return <div class="readout empty-readout"><p class="quiet">Point at an hour, or focus the picture and use the arrow keys. Enter opens the GPU, D its day, + and − change the rows.</p></div>;
    const gpu = cell.row.gpu, price = gpu.price_hour == null ? null : Number(gpu.price_hour);
    const category = cell.category ? byId.get(cell.category)! : null;
    const first = asked?.[0];
    const all = asked?.length ? asked.filter((h) => h.namespace !== null) : cell.holder ? [cell.holder] : [];
    const holders = [...new Map(all.map((h) => [`${h.namespace}/${h.workload ?? h.pod}`, h])).values()]; // a pod or ten of one workload
    const memory = first?.memory_max ?? cell.memory, power = first?.power_avg ?? cell.power;
    return (
        <dl class="readout" aria-live="polite">
            <div class="wide-fact"><dt>{format.moment(cell.at, zoneOf(page))}</dt><dd><b><bdi>{format.clean(cell.row.node.node)}</bdi></b>, GPU {cell.row.index} <span class="quiet"><bdi>{format.clean(gpu.model ?? "")}</bdi></span></dd></div>
            <div><dt>Category</dt><dd>{category ? <><Swatch id={category.id} /> {fullWords(category)}</> : "no row"}</dd></div>
            <div class="wide-fact"><dt>Holder</dt><dd>{holders.length
                ? holders.slice(0, 3).map((h, i) => <span key={i}>{i > 0 && ", "}<bdi>{format.clean([h.namespace, h.workload ?? h.pod].filter(Boolean).join("/"))}</bdi>{h.team ? <span class="quiet"> ({format.clean(h.team)})</span> : null}</span>).concat(category?.nodeIdle ? [<span class="quiet" key="part"> for part of the hour</span>] : [])
                : category && ["used", "slack", "held_idle", "unobserved"].includes(category.id) ? (page.source.file ? format.UNKNOWN : "…") : "nobody"}</dd></div>
            <div><dt>Use</dt><dd>{format.percent(cell.use)}</dd></div>
            <div><dt>Memory</dt><dd>{format.gib(memory)}</dd></div>
            <div><dt>Power</dt><dd>{power == null ? format.UNKNOWN : `${format.digits(power)} W`}</dd></div>
            <div><dt>An hour</dt><dd>{format.money(price, currency, 2)}</dd></div>
        </dl>
    );
}

function Twin({ p }: { p: Picture }) {
    const page = usePage();
    const q = question(page, ["cluster", "node"], []);
    const answer = useAnswer(keyOf(q), () => page.source.report(q));
    return (
        <Await answer={answer} what="the nodes">
            {(report) => {
                const wanted = new Set(p.bands.map((b) => b.node.node));
                const of = new Map(p.bands.map((b) => [b.node.node, b.node]));
                const columns: Column<Row>[] = [
                    { id: "node", heading: "Node", text: true, name: true, value: (r) => r.keys.node, cell: (r) => <a href={link(page.route, { view: "node", path: [r.keys.node ?? "-"] })}><bdi>{format.clean(r.keys.node ?? "–")}</bdi></a> },
                    { id: "instance_type", heading: "Instance type", text: true, minor: true, value: (r) => of.get(r.keys.node ?? "")?.instance_type, cell: (r) => <bdi>{format.clean(of.get(r.keys.node ?? "")?.instance_type ?? "–")}</bdi> },
                    { id: "gpus", heading: "GPUs", value: (r) => of.get(r.keys.node ?? "")?.gpus.length ?? null, cell: (r) => of.get(r.keys.node ?? "")?.gpus.length ?? "–" },
                    { id: "cost", heading: "Cost", value: (r) => r.figures.cost, cell: (r) => format.money(r.figures.cost, report.currency, 0) },
                    { id: "split", heading: "Split", text: true, wide: true, value: (r) => (r.figures.cost ? (r.figures.used ?? 0) / r.figures.cost : null), cell: (r) => <SplitBar figures={r.figures} currency={report.currency} /> },
                    { id: "used", heading: "Used", value: (r) => r.figures.used, cell: (r) => format.share(r.figures.used ?? 0, r.figures.cost ?? 0) },
                    { id: "most", heading: "Mostly", text: true, value: (r) => mostly(of.get(r.keys.node ?? "")), cell: (r) => mostly(of.get(r.keys.node ?? "")) },
                ];
                return <Table name="Nodes of the fleet" columns={columns} rows={report.rows.filter((r) => wanted.has(r.keys.node ?? ""))} rowKey={(r) => `${r.keys.cluster}/${r.keys.node}`} sort="cost" />;
            }}
        </Await>
    );
}

function mostly(node: FleetNode | undefined): string {
    if (!node) return format.UNKNOWN;
    const counts = tally(node);
    const best = CATEGORIES.filter((c) => counts[c.letter]).sort((a, b) => counts[b.letter] - counts[a.letter])[0];
    return best ? fullWords(best) : format.UNKNOWN;
}

export function FleetPicture({ fleet, height }: { fleet: Fleet; height: number }) {
    const page = usePage();
    const [place, width] = useWidth(300);
    const [cursor, setCursor] = useState<Cursor | null>(null);
    const { more } = page.route, zone = zoneOf(page);
    const order = ORDERS[more.order ?? ""];
    const p = useMemo(() => picture(fleet, (node) => !more.type || node.instance_type === more.type, order), [fleet, more.order, more.type]);
    const days = useMemo(() => p.hours.map((h) => format.day(h, zone)), [p, zone]);
    const range = (more.day && dayRange(days, more.day)) || [0, p.hours.length];
    const level = ROWS.includes(Number(more.rows)) ? Number(more.rows) : 0;
    const set = (change: Record<string, string>, replace = false) => {
        const next = { ...more, ...change };
        for (const key in next) if (!next[key]) delete next[key];
        page.go({ more: next }, replace);
    };
    const names = [...new Set(days)];
    const only = byId.has(more.only) ? more.only : null;
    const cell = cursor ? cellAt(p, cursor.row, cursor.hour) : null;
    const open = (at: Cursor) => {
        const row = p.rows[at.row];
        if (row) location.hash = link(page.route, { view: "gpu", path: [row.gpu.device] });
    };
    const step = (by: number) => set({ rows: String(ROWS[Math.max(0, Math.min(ROWS.length - 1, ROWS.indexOf(level) + by))] || "") }, true);
    const shift = (by: number) => {
        const at = names.indexOf(more.day);
        const next = names[at + by];
        if (next) set({ day: next }, true);
    };
    const onKey = (key: string) => {
        if (key === "+" || key === "=") step(1);
        else if (key === "-" || key === "−") step(-1);
        else if (key === "Escape" && more.day) set({ day: "" });
        else if ((key === "d" || key === "D") && cell) set({ day: days[cell.hour] });
        else return false;
        return true;
    };
    const there = CATEGORIES.filter((c) => p.rows.some((r) => r.gpu.hours.includes(c.letter)));
    const types = [...new Set(fleet.nodes.map((n) => n.instance_type).filter(Boolean))] as string[];
    const label = `${format.plural(p.rows.length, "GPU")} on ${format.plural(p.bands.length, "node")} over ${format.plural(range[1] - range[0], "hour")}. Arrow keys move the cursor, Enter opens the GPU.`;
    return (
        <Chart title="GPUs by node, hour by hour" note={more.day ? <>{more.day}, {format.zoneName(zone)}</> : <>{format.plural(p.rows.length, "GPU")}, {format.duration(p.hours.length)}, {format.zoneName(zone)}</>}
            tools={<>
                <span class="picker"><select aria-label="Day" value={more.day ?? ""} onChange={(e) => set({ day: e.currentTarget.value })}><option value="">all days</option>{names.map((d) => <option key={d} value={d}>{d}</option>)}</select></span>
                {more.day && <>
                    <button type="button" class="plain" aria-label="The day before" disabled={names.indexOf(more.day) <= 0} onClick={() => shift(-1)}>‹</button>
                    <button type="button" class="plain" aria-label="The day after" disabled={names.indexOf(more.day) >= names.length - 1} onClick={() => shift(1)}>›</button>
                </>}
                <span class="picker"><select aria-label="Order" value={more.order ?? ""} onChange={(e) => set({ order: e.currentTarget.value })}><option value="">by name</option><option value="used">least used first</option><option value="type">by instance type</option></select></span>
                {types.length > 1 && <span class="picker"><select aria-label="Instance type" value={more.type ?? ""} onChange={(e) => set({ type: e.currentTarget.value })}><option value="">all types</option>{types.map((t) => <option key={t} value={t}>{format.clean(t)}</option>)}</select></span>}
                <span class="zoom" role="group" aria-label="Height of rows">
                    <button type="button" class="plain" aria-label="Lower rows" disabled={level === 0} onClick={() => step(-1)}>−</button>
                    <button type="button" class="plain" aria-label="Higher rows" disabled={level === ROWS[ROWS.length - 1]} onClick={() => step(1)}>+</button>
                </span>
            </>}
            chart={
                <div class="fleet" ref={place}>
                    {width > 0 && p.rows.length > 0 && (
                        <FleetCanvas picture={p} range={range as [number, number]} rowHeight={level} height={height} width={width} zone={zone} theme={page.theme} only={only}
                            cursor={cursor} onCursor={setCursor} onOpen={open} onKey={onKey} label={label} />
                    )}
                    {p.rows.length === 0 && <div class="state empty"><p><b>No GPU has a row in this window.</b></p></div>}
                    <ul class="legend toggles" aria-label="Show one category alone">
                        {there.map((c) => (
                            <li key={c.id}><button type="button" class="plain" aria-pressed={only === c.id} title={c.meaning} onClick={() => set({ only: only === c.id ? "" : c.id }, true)}><Swatch id={c.id} /> {fullWords(c)}</button></li>
                        ))}
                    </ul>
                    <Readout cell={cell} currency={page.meta.currency} />
                </div>
            }
            table={<Twin p={p} />} />
    );
}

export function FleetView() {
    const page = usePage();
    const q = question(page, [], []);
    const answer = useAnswer(keyOf(q, "fleet"), () => page.source.fleet(q));
    const [high, setHigh] = useState(innerHeight);
    useEffect(() => {
        const measure = () => setHigh(innerHeight);
        addEventListener("resize", measure);
        return () => removeEventListener("resize", measure);
    }, []);
    return (
        <>
            <h1 class="unseen">Fleet</h1>
            <Await answer={answer} what="the fleet">
                {(fleet) => <FleetPicture fleet={fleet} height={Math.max(320, Math.min(900, high - 330))} />}
            </Await>
        </>
    );
}
