// Lines over time (uPlot), in the colours of the page, with their table twin.

import { useEffect, useRef } from "preact/hooks";
import type uPlot from "uplot";
import { keep, useAnswer } from "../data";
import * as format from "../format";
import type { Series } from "../picture";
import { Chart, useWidth } from "./chart";
import { usePage, zoneOf } from "./context";
import { Column, Table } from "./table";

type Line = Series["lines"][number];

export function valueText(unit: string, v: number | null | undefined, currency: string): string {
    if (v == null) return format.UNKNOWN;
    if (unit === "ratio") return format.percent(v);
    if (unit === "bytes") return format.gib(v);
    if (unit === "money") return format.money(v, currency, 2);
    return `${format.digits(v, Math.abs(v) < 10 && !Number.isInteger(v) ? 1 : 0)} ${unit}`;
}

const axisText = (unit: string, v: number) =>
    unit === "ratio" ? `${Math.round(v * 100)} %` : unit === "bytes" ? `${format.digits(v / 2 ** 30, 0)} GiB` : `${format.digits(v)} ${unit}`;

/** Round bounds; bytes in powers that read as GiB. */
function top(unit: string, most: number): number {
    if (unit === "ratio") return 1;
    if (most <= 0) return 1;
    const by = unit === "bytes" ? 2 ** 30 : 1;
    const rough = most / by, power = Math.pow(10, Math.floor(Math.log10(rough)));
    return by * ([1, 2, 4, 5, 8, 10].map((n) => n * power).find((n) => n >= rough) ?? rough);
}

const isActivity = (l: Line) => /^(SM|tensor) activity/.test(l.name);
/** By name where the name has a meaning, so that a line looks the same whatever else is beside it. */
const dashOf = (l: Line, i: number): number[] | undefined =>
    l.name.startsWith("SM") ? [6, 3] : l.name.startsWith("tensor") ? [1.5, 3] : i === 0 ? undefined : l.name.includes("90th") ? [5, 3] : [2, 3];
const keyClass = (l: Line, i: number) => (l.name.startsWith("SM") ? "sm" : l.name.startsWith("tensor") ? "tensor" : i === 0 ? "k0" : l.name.includes("90th") ? "k2" : "k1");

export function Lines({ title, t, lines, unit }: { title: string; t: number[]; lines: Line[]; unit: string }) {
    const page = usePage();
    const zone = zoneOf(page), { currency } = page.meta;
    const [place, width] = useWidth();
    const target = useRef<HTMLDivElement>(null);
    const Plot = useAnswer("plot", async () => keep("plot", (await import("./plot")).default)).value;
    useEffect(() => {
        if (!Plot || !target.current || !width) return;
        const style = getComputedStyle(document.documentElement);
        const colour = (name: string) => style.getPropertyValue(name).trim();
        const stroke = (l: Line, i: number) => colour(l.name.startsWith("tensor") ? "--tensor" : l.name.startsWith("SM") ? "--sm" : i ? "--quiet" : "--accent");
        const most = Math.max(0, ...lines.flatMap((l) => l.v.map((v) => v ?? 0)));
        const long = t.length > 50;
        const plot = new Plot({
            width, height: 190, padding: [8, 22, 0, 0], cursor: { y: false, points: { size: 6 } }, legend: { show: false },
            tzDate: (ts) => (zone === "local" ? new Date(ts * 1000) : Plot.tzDate(new Date(ts * 1000), zone)),
            scales: { x: { time: true }, y: { range: [0, top(unit, most)] } },
            axes: [
                { stroke: colour("--quiet"), grid: { show: false }, ticks: { stroke: colour("--line"), size: 4 }, font: "12px system-ui, sans-serif", size: 28,
                    values: (_, splits) => splits.map((s) => (long && format.clock(s * 1000, zone) === "00:00" ? format.day(s * 1000, zone).slice(5) : format.clock(s * 1000, zone))) },
                { stroke: colour("--quiet"), grid: { stroke: colour("--line"), width: 1 }, ticks: { show: false }, font: "12px system-ui, sans-serif", size: 62, values: (_, splits) => splits.map((v) => axisText(unit, v)),
                    splits: (_, __, low, high) => [0, 0.25, 0.5, 0.75, 1].map((f) => low + (high - low) * f) },
            ],
            series: [{}, ...lines.map((l, i) => ({
                label: l.name, stroke: stroke(l, i), width: i === 0 || isActivity(l) ? 1.75 : 1, dash: dashOf(l, i), points: { show: false }, spanGaps: false,
                paths: Plot.paths.stepped!({ align: 1 }),
            }))],
            hooks: {
                setCursor: [(u) => {
                    const i = u.cursor.idx, to = target.current?.parentElement?.querySelector(".reading");
                    if (!to) return;
                    to.textContent = i == null ? "" : `${format.moment(t[i], zone)}: ${lines.map((l) => `${l.name} ${valueText(unit, l.v[i], currency)}`).join(", ")}`;
                }],
            },
        }, [t.map((at) => at / 1000), ...lines.map((l) => l.v)] as uPlot.AlignedData, target.current);
        return () => plot.destroy();
    }, [Plot, t, lines, width, zone, page.theme]);
    const columns: Column<number>[] = [
        { id: "time", heading: "Time", text: true, value: (i) => new Date(t[i]).toISOString(), cell: (i) => format.moment(t[i], zone) },
        ...lines.map((l): Column<number> => ({ id: l.name, heading: l.name, value: (i) => l.v[i], cell: (i) => valueText(unit, l.v[i], currency) })),
    ];
    return (
        <Chart title={title} note={`by hour, ${format.zoneName(zone)}`}
            chart={
                <div class="lines" ref={place}>
                    <div ref={target} role="img" aria-label={`${title}: ${lines.map((l) => l.name).join(", ")}; the table has the values`} />
                    {lines.length > 1 && (
                        <ul class="legend">{lines.map((l, i) => <li key={l.name}><svg width="26" height="8" aria-hidden="true"><path d="M0 4h26" class={`line-key ${keyClass(l, i)}`} /></svg>{l.name}</li>)}</ul>
                    )}
                    <p class="reading" aria-hidden="true" />
                </div>
            }
            table={<Table name={title} columns={columns} rows={t.map((_, i) => i)} rowKey={String} shown={48} />} />
    );
}
