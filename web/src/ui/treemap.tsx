// Dollars as areas, coloured by efficiency: a large orange field is money that did little. Squarified
// (Bruls, Huizing, van Wijk 2000), so that areas can be compared by eye. Its twin is the table below it.

import * as format from "../format";
import type { Row } from "../model";
import { useWidth } from "./chart";

export interface Box { x: number; y: number; w: number; h: number }

/** Lays areas (largest first) into a box; each row is taken as long as its worst shape gets better. */
export function squarify(areas: number[], box: Box): Box[] {
    const out: Box[] = [];
    const whole = areas.reduce((s, a) => s + a, 0);
    if (whole <= 0) return areas.map(() => ({ x: box.x, y: box.y, w: 0, h: 0 }));
    const scale = (box.w * box.h) / whole;
    let { x, y, w, h } = box;
    let row: number[] = [];
    const worst = (list: number[], side: number) => {
        const sum = list.reduce((s, a) => s + a, 0);
        return Math.max((side * side * Math.max(...list)) / (sum * sum), (sum * sum) / (side * side * Math.min(...list)));
    };
    const place = () => {
        const sum = row.reduce((s, a) => s + a, 0);
        if (w >= h) {
            const thick = h > 0 ? sum / h : 0;
            let at = y;
            for (const a of row) (out.push({ x, y: at, w: thick, h: thick > 0 ? a / thick : 0 }), (at += thick > 0 ? a / thick : 0));
            x += thick;
            w -= thick;
        } else {
            const thick = w > 0 ? sum / w : 0;
            let at = x;
            for (const a of row) (out.push({ x: at, y, w: thick > 0 ? a / thick : 0, h: thick }), (at += thick > 0 ? a / thick : 0));
            y += thick;
            h -= thick;
        }
        row = [];
    };
    for (const area of areas) {
        const a = area * scale, side = Math.min(w, h);
        if (row.length && worst([...row, a], side) > worst(row, side)) place();
        row.push(a);
    }
    if (row.length) place();
    return out;
}

/** Which of seven steps from "did little" to "was used"; null: nobody held it. */
export const efficiencyStep = (ratio: number | null): number | null => (ratio === null ? null : Math.min(6, Math.floor(ratio * 7)));

const MOST = 60, HEIGHT = 280;

export function Treemap({ rows, currency, total, name, href }: {
    rows: Row[]; currency: string; total: number; name: (row: Row) => string; href: (row: Row) => string | null;
}) {
    const [place, width] = useWidth();
    const large = rows.filter((r) => (r.figures.cost ?? 0) > 0).sort((a, b) => b.figures.cost! - a.figures.cost!);
    const some = large.slice(0, MOST);
    const rest = total - some.reduce((s, r) => s + r.figures.cost!, 0);
    const areas = some.map((r) => r.figures.cost!);
    if (rest > total * 1e-9 && rest > 0) areas.push(rest);
    const boxes = width > 0 ? squarify(areas, { x: 0, y: 0, w: width, h: HEIGHT }) : [];
    if (!some.length) return null;
    return (
        <figure class="treemap" ref={place}>
            {width > 0 && (
                <svg width={width} height={HEIGHT} role="group" aria-label="Dollars as areas, coloured by efficiency; the table below has the same">
                    {boxes.map((b, i) => {
                        const row = some[i];
                        const words = row ? name(row) : `${format.plural(large.length - some.length, "other")}`;
                        const f = row?.figures;
                        const efficiency = f ? f.efficiency : null;
                        const step = efficiencyStep(efficiency);
                        const title = row
                            ? `${words}: ${format.money(f!.cost, currency)}, ${efficiency === null ? "not held" : format.percent(efficiency) + " used"}`
                            : `${words}: ${format.money(rest, currency)}`;
                        const fits = b.w > 64 && b.h > 22;
                        const chars = Math.floor((b.w - 14) / 7.4);
                        const label = words.length > chars ? words.slice(0, Math.max(1, chars - 1)) + "…" : words;
                        const to = row ? href(row) : null;
                        const shape = (
                            <>
                                <title>{title}</title>
                                <rect x={b.x + 0.5} y={b.y + 0.5} width={Math.max(0, b.w - 1)} height={Math.max(0, b.h - 1)} rx="2"
                                    class={!row ? "eff other" : step === null ? "eff none" : `eff s${step}`} />
                                {fits && <text aria-hidden="true" x={b.x + 8} y={b.y + 18} class={!row ? "on-other" : step === null ? "on-none" : `on-${step}`}>{label}</text>}
                                {fits && b.h > 40 && row && (
                                    <text aria-hidden="true" x={b.x + 8} y={b.y + 35} class={"figure-text " + (step === null ? "on-none" : `on-${step}`)}>
                                        {format.money(f!.cost, currency)}{b.w > 110 ? ` · ${efficiency === null ? "not held" : format.percent(efficiency)}` : ""}
                                    </text>
                                )}
                            </>
                        );
                        return to ? <a key={i} href={to}>{shape}</a> : <g key={i}>{shape}</g>;
                    })}
                </svg>
            )}
            <figcaption>
                <span>used of held cost:</span>
                <svg width="154" height="12" aria-hidden="true">{[0, 1, 2, 3, 4, 5, 6].map((s) => <rect key={s} x={s * 22} width="21" height="12" class={`eff s${s}`} />)}</svg>
                <span class="scale-words">0 % to 100 %</span>
                <svg width="21" height="12" aria-hidden="true"><rect width="21" height="12" class="eff none" /></svg>
                <span>nobody held it</span>
            </figcaption>
        </figure>
    );
}
