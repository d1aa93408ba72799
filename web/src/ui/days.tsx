// Cost by day (or hour), stacked by category, in the order and colours of everything else.

import { CATEGORIES, fullWords, byId } from "../categories";
import * as format from "../format";
import type { ComponentChildren } from "preact";
import { Figures, split, Row } from "../model";
import { Chart, useWidth } from "./chart";
import { usePage, zoneOf } from "./context";
import { Column, Table } from "./table";
import { useState } from "preact/hooks";

const HEIGHT = 220, LEFT = 52, BOTTOM = 24, TOP = 8;

/** A round step that gives up to five lines. */
export function axisStep(largest: number): number {
    if (largest <= 0) return 1;
    const rough = largest / 4;
    const unit = Math.pow(10, Math.floor(Math.log10(rough)));
    return [1, 2, 2.5, 5, 10].map((n) => n * unit).find((n) => n >= rough)!;
}

export function Days({ rows, currency, title, unit, window }: {
    rows: Row[]; currency: string; title: string; unit: "day" | "hour"; window: { from: string; to: string; tz: string };
}) {
    const page = usePage();
    const zone = zoneOf(page), days = window.tz; // a file's days begin where it says, whatever zone is looked at
    const [place, width] = useWidth();
    const [at, setAt] = useState<number | null>(null);
    const points = [...rows].sort((a, b) => (String(a.keys[unit]) < String(b.keys[unit]) ? -1 : 1));
    const largest = Math.max(...points.map((r) => r.figures.cost ?? 0), 0);
    const step = axisStep(largest), top = Math.ceil(largest / step || 1) * step;
    const inner = Math.max(10, width - LEFT - 4), slot = inner / Math.max(1, points.length);
    const bar = Math.max(1, Math.min(64, slot * 0.72)), y = (v: number) => TOP + (HEIGHT - TOP - BOTTOM) * (1 - v / top);
    const label = (text: string | null) => text === null ? "–" : unit === "hour" ? format.moment(Date.parse(text), zone) : text;
    const every = Math.max(1, Math.ceil((unit === "day" ? 52 : 110) / slot));
    const from = Date.parse(window.from), to = Date.parse(window.to);
    const partial = (row: Row) => unit === "day" &&
        ((row.keys.day === format.day(from, days) && format.clock(from, days) !== "00:00") ||
            (row.keys.day === format.day(to - 1, days) && format.clock(to, days) !== "00:00"));
    const there = CATEGORIES.filter((c) => points.some((r) => (r.figures[c.id] ?? 0) > 0));
    const columns: Column<Row>[] = [
        { id: unit, heading: unit, text: true, cell: (r) => label(r.keys[unit]), value: (r) => r.keys[unit] },
        { id: "cost", heading: "cost", cell: (r) => format.money(r.figures.cost, currency, 2), value: (r) => r.figures.cost },
        ...there.map((c) => ({
            id: c.id, heading: fullWords(c), cell: (r: Row) => format.money(r.figures[c.id], currency, 2), value: (r: Row) => r.figures[c.id],
        })),
    ];
    const shown = at === null ? null : points[at];
    const chart = (
        <div class="days" ref={place}>
            {width > 0 && (
                <svg width={width} height={HEIGHT} role="img" aria-label={`${title}: ${points.map((r) => `${label(r.keys[unit])} ${format.money(r.figures.cost, currency)}`).slice(0, 40).join(", ")}`}
                    onMouseLeave={() => setAt(null)}>
                    {Array.from({ length: Math.round(top / step) + 1 }, (_, i) => i * step).map((v) => (
                        <g key={v}>
                            <line class={v === 0 ? "axis" : "grid"} x1={LEFT} x2={width} y1={Math.round(y(v)) + 0.5} y2={Math.round(y(v)) + 0.5} />
                            <text class="tick" x={LEFT - 8} y={y(v) + 4} text-anchor="end">{v === 0 ? "0" : format.moneyShort(v, currency)}</text>
                        </g>
                    ))}
                    {points.map((row, i) => {
                        let sum = 0;
                        const x = LEFT + i * slot + (slot - bar) / 2;
                        return (
                            <g key={row.keys[unit] ?? i} class={at !== null && at !== i ? "dim" : undefined} onMouseEnter={() => setAt(i)}>
                                <rect x={LEFT + i * slot} y={TOP} width={slot} height={HEIGHT - TOP - BOTTOM} class="hit" />
                                {split(row.figures).filter((p) => p.value > 0).map((p) => {
                                    const high = y(sum + p.value), low = y(sum);
                                    sum += p.value;
                                    return <rect key={p.id} x={x} y={high} width={bar} height={Math.max(0, low - high - (low - high > 3 ? 0.75 : 0))} fill={`url(#p-${p.id})`} />;
                                })}
                                {i % every === 0 && (
                                    <text class="tick" x={LEFT + i * slot + slot / 2} y={HEIGHT - 7} text-anchor="middle">
                                        {unit === "hour" ? label(row.keys.hour).slice(5) : (row.keys.day ?? "–").slice(5) + (partial(row) ? "*" : "")}
                                    </text>
                                )}
                            </g>
                        );
                    })}
                </svg>
            )}
            <Legend ids={there.map((c) => c.id)} figures={shown?.figures} currency={currency}
                lead={shown ? <><b>{label(shown.keys[unit])}</b> {format.money(shown.figures.cost, currency)}</>
                    : points.some(partial) ? `* partly outside the window` : ""} />
        </div>
    );
    return <Chart title={title} chart={chart} note={`by ${unit}, ${unit === "day" ? days : format.zoneName(zone)}`}
        table={<Table name={title} columns={columns} rows={points} rowKey={(r) => String(r.keys[unit])} shown={31} />} />;
}

/** What the colours are; with figures, how much of each. */
export const Legend = ({ ids, figures, currency = "", lead }: { ids: string[]; figures?: Figures; currency?: string; lead?: ComponentChildren }) => (
    <ul class="legend" aria-label="Legend">
        {ids.map((id) => (
            <li key={id}>
                <svg class="swatch" width="12" height="12" aria-hidden="true"><rect width="12" height="12" rx="2" fill={`url(#p-${id})`} /></svg>
                {fullWords(byId.get(id)!)}
                {figures && <b>{format.money(figures[id] ?? 0, currency, format.moneyPlaces(figures.cost ?? 0))}</b>}
            </li>
        ))}
        {lead && <li class="lead-item">{lead}</li>}
    </ul>
);
