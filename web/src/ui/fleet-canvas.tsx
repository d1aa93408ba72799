// The picture of the fleet on a canvas. Three levels of detail: rows of less than a pixel come from
// pictures that were halved until a row is one; small rows are stretched pixels, a call a node; rows
// with room have patterns, and the use as a line. Only what is on the screen is drawn, and the cursor has a canvas
// of its own, so that moving it draws nothing else.

import { useEffect, useLayoutEffect, useRef } from "preact/hooks";
import { byLetter, colourClass, CATEGORIES } from "../categories";
import * as format from "../format";
import { digit, halve, pack, Picture, pixels } from "../picture";
import { patternLines } from "./patterns";

const RARE = ["H", "A"]; // lost GPUs and work of nobody: seen however small the picture is
const AXIS = 30, GAP = 3, DETAIL_ROW = 5, USE_ROW = 15;

export interface Cursor { row: number; hour: number }

interface Props {
    picture: Picture;
    range: [number, number]; // hours shown
    rowHeight: number; // px; 0: all rows fit
    height: number; // px of the view
    width: number;
    zone: string;
    theme: string;
    only: string | null; // category id; others are pale
    cursor: Cursor | null;
    onCursor: (cursor: Cursor | null) => void;
    onOpen: (cursor: Cursor) => void;
    onKey: (key: string) => boolean;
    label: string;
}

interface Colours { page: string; ink: string; quiet: string; line: string; rgb: Map<string, [number, number, number]>; light: string; dark: string; focus: string }

function parseColour(text: string): [number, number, number] {
    const hex = /^#([0-9a-f]{6})$/i.exec(text.trim());
    const value = hex ? parseInt(hex[1], 16) : 0x888888;
    return [value >> 16, (value >> 8) & 255, value & 255];
}

function colours(): Colours {
    const style = getComputedStyle(document.documentElement);
    const of = (name: string) => style.getPropertyValue(name).trim();
    const rgb = new Map<string, [number, number, number]>();
    for (const c of CATEGORIES) rgb.set(c.letter, parseColour(of("--" + colourClass(c).slice(4).replace("node-idle-", ""))));
    rgb.set(".", parseColour(of("--raised")));
    return { page: of("--page"), ink: of("--ink"), quiet: of("--quiet"), line: of("--line"), focus: of("--focus"), light: of("--texture-light"), dark: of("--texture-dark"), rgb };
}

const css = ([r, g, b]: [number, number, number]) => `rgb(${r},${g},${b})`;
const pale = (c: [number, number, number], page: [number, number, number]): [number, number, number] =>
    [0, 1, 2].map((i) => Math.round(c[i] * 0.14 + page[i] * 0.86)) as [number, number, number];

/** Pictures of the whole, each with half the rows of the one before. */
class Levels {
    readonly images: { canvas: HTMLCanvasElement; rows: number }[] = [];
    constructor(p: Picture, colour: (letter: string) => [number, number, number]) {
        const width = Math.max(1, p.hours.length);
        const rare = new Set(RARE.map((letter) => pack(colour(letter))));
        let data = pixels(p, colour), rows = p.rows.length;
        while (rows > 0) {
            const canvas = document.createElement("canvas");
            canvas.width = width;
            canvas.height = rows;
            canvas.getContext("2d")!.putImageData(new ImageData(new Uint8ClampedArray(data.buffer as ArrayBuffer), width, rows), 0, 0);
            this.images.push({ canvas, rows });
            if (rows <= 128) break;
            data = halve(data, width, rows, rare);
            rows = Math.ceil(rows / 2);
        }
    }
    /** The largest picture whose rows are not smaller than a pixel. */
    at(rowHeight: number, ratio: number) {
        let height = rowHeight * ratio;
        for (const image of this.images) {
            if (height >= 1) return image;
            height *= 2;
        }
        return this.images[this.images.length - 1];
    }
}

/** Where each node's rows are, top to bottom, for a height of a row. */
export function layout(p: Picture, rowHeight: number): { tops: Float64Array; height: number } {
    const gap = rowHeight >= 3 ? GAP : rowHeight >= 1 ? 1 : 0;
    const tops = new Float64Array(p.bands.length + 1);
    let y = 0;
    p.bands.forEach((b, i) => {
        tops[i] = y;
        y += b.n * rowHeight + gap;
    });
    tops[p.bands.length] = y;
    return { tops, height: y };
}

const bandAt = (tops: Float64Array, y: number) => {
    let low = 0, high = tops.length - 1;
    while (high - low > 1) {
        const middle = (low + high) >> 1;
        if (tops[middle] <= y) low = middle;
        else high = middle;
    }
    return low;
};

export function FleetCanvas(props: Props) {
    const { picture: p, width, height, theme, only } = props;
    const scroller = useRef<HTMLDivElement>(null), main = useRef<HTMLCanvasElement>(null), over = useRef<HTMLCanvasElement>(null);
    const drawn = useRef<{ key: unknown[]; levels: Levels; colours: Colours; patterns: Map<string, CanvasPattern | string> } | null>(null);
    const state = useRef(props);
    state.current = props;
    const gutter = width < 560 ? 84 : 156;
    const shownHeight = Math.max(40, height - AXIS);
    const rowHeight = props.rowHeight || Math.min(20, Math.max(0.02, (shownHeight - p.bands.length * (p.rows.length * 3 < shownHeight ? GAP : 0)) / Math.max(1, p.rows.length)));
    const { tops, height: whole } = layout(p, rowHeight);
    const plot = Math.max(10, width - gutter);

    const prepare = () => {
        const key = [p, theme, only];
        if (drawn.current && drawn.current.key.every((k, i) => k === key[i])) return drawn.current;
        const c = colours();
        const background = parseColour(c.page);
        const colour = (letter: string) => {
            const own = c.rgb.get(letter) ?? c.rgb.get(".")!;
            return only && byLetter.get(letter)?.id !== only ? pale(own, background) : own;
        };
        const patterns = new Map<string, CanvasPattern | string>();
        const ratio = devicePixelRatio || 1;
        for (const category of CATEGORIES) {
            const lines = patternLines(category.pattern);
            const faded = only !== null && category.id !== only;
            if (!lines || faded) {
                patterns.set(category.letter, css(colour(category.letter)));
                continue;
            }
            const tile = document.createElement("canvas");
            tile.width = tile.height = Math.round(8 * ratio);
            const g = tile.getContext("2d")!;
            g.scale(tile.width / 8, tile.height / 8);
            g.fillStyle = css(colour(category.letter));
            g.fillRect(0, 0, 8, 8);
            g.strokeStyle = ["node_idle_unpartitioned", "node_idle_starting", "unobserved"].includes(category.id) ? c.dark : c.light;
            g.lineWidth = 1;
            g.stroke(new Path2D(lines));
            const pattern = g.createPattern(tile, "repeat")!;
            pattern.setTransform(new DOMMatrix().scale(8 / tile.width));
            patterns.set(category.letter, pattern);
        }
        drawn.current = { key, levels: new Levels(p, colour), colours: c, patterns };
        return drawn.current;
    };

    const size = (canvas: HTMLCanvasElement) => {
        const ratio = devicePixelRatio || 1;
        const w = Math.round(width * ratio), h = Math.round(height * ratio);
        if (canvas.width !== w || canvas.height !== h) {
            canvas.width = w;
            canvas.height = h;
        }
        const g = canvas.getContext("2d")!;
        g.setTransform(ratio, 0, 0, ratio, 0, 0);
        g.clearRect(0, 0, width, height);
        return g;
    };

    const paint = () => {
        if (!main.current || !scroller.current) return;
        const begin = performance.now();
        const { levels, colours: c, patterns } = prepare();
        const g = size(main.current), top = scroller.current.scrollTop;
        const [from, to] = state.current.range, hours = to - from, step = plot / Math.max(1, hours);
        g.imageSmoothingEnabled = false;
        g.save();
        g.beginPath();
        g.rect(0, AXIS, width, shownHeight);
        g.clip();
        const first = bandAt(tops, top), last = Math.min(p.bands.length - 1, bandAt(tops, top + shownHeight));
        if (rowHeight < 1) {
            // rows under a pixel: one picture for all, by how many rows share a pixel
            const image = levels.at(rowHeight, devicePixelRatio || 1);
            const scale = image.rows / p.rows.length;
            g.drawImage(image.canvas, from, (top / rowHeight) * scale, hours, (shownHeight / rowHeight) * scale, gutter, AXIS, plot, shownHeight);
        } else {
            for (let b = first; b <= last; b++) {
                const band = p.bands[b], y = AXIS + tops[b] - top;
                if (rowHeight < DETAIL_ROW) {
                    g.drawImage(levels.images[0].canvas, from, band.first, hours, band.n, gutter, y, plot, band.n * rowHeight);
                    continue;
                }
                for (let i = 0; i < band.n; i++) {
                    const ry = y + i * rowHeight;
                    if (ry > height || ry + rowHeight < AXIS) continue;
                    const text = p.rows[band.first + i].gpu.hours;
                    for (let x = from; x < to;) {
                        let end = x + 1;
                        while (end < to && text[end] === text[x]) end++;
                        if (text[x] !== ".") {
                            g.fillStyle = patterns.get(text[x]) ?? css(c.rgb.get(".")!);
                            g.fillRect(gutter + (x - from) * step, ry, (end - x) * step, rowHeight - 1);
                        }
                        x = end;
                    }
                    if (rowHeight >= USE_ROW && !only) paintUse(g, p.rows[band.first + i].gpu.use, from, to, gutter, step, ry, rowHeight - 1, c);
                }
            }
        }
        paintNames(g, p, first, last, tops, top, gutter, rowHeight, c, shownHeight);
        g.restore();
        paintAxis(g, p, from, to, gutter, step, width, c, state.current.zone);
        performance.measure("gputally-frame", { start: begin });
    };

    const paintCursor = () => {
        if (!over.current || !scroller.current) return;
        const g = size(over.current), { cursor, range: [from, to] } = state.current;
        if (!cursor || cursor.hour < from || cursor.hour >= to) return;
        const { colours: c } = prepare();
        const band = p.bands.findIndex((b) => cursor.row >= b.first && cursor.row < b.first + b.n);
        if (band < 0) return;
        const step = plot / Math.max(1, to - from);
        const y = AXIS + tops[band] + (cursor.row - p.bands[band].first) * rowHeight - scroller.current.scrollTop;
        const x = gutter + (cursor.hour - from) * step;
        g.save();
        g.beginPath();
        g.rect(0, AXIS - 4, width, shownHeight + 4);
        g.clip();
        g.strokeStyle = c.ink;
        g.globalAlpha = 0.35;
        g.strokeRect(gutter, y - 0.5, plot, Math.max(1, rowHeight));
        g.strokeRect(x - 0.5, AXIS, Math.max(1, step), shownHeight);
        g.globalAlpha = 1;
        g.lineWidth = 2;
        const w = Math.max(7, step), h = Math.max(7, rowHeight);
        g.strokeStyle = c.page;
        g.strokeRect(x + step / 2 - w / 2 - 1.5, y + rowHeight / 2 - h / 2 - 1.5, w + 3, h + 3);
        g.strokeStyle = c.ink;
        g.strokeRect(x + step / 2 - w / 2, y + rowHeight / 2 - h / 2, w, h);
        g.restore();
    };

    const frame = useRef(0);
    const repaint = () => {
        cancelAnimationFrame(frame.current);
        frame.current = requestAnimationFrame(() => {
            paint();
            paintCursor();
        });
    };
    useLayoutEffect(() => {
        paint();
        paintCursor();
    }, [p, width, height, rowHeight, props.range[0], props.range[1], theme, only, props.zone]);
    useEffect(() => {
        const { cursor } = props;
        const box = scroller.current;
        if (cursor && box && document.activeElement === box) {
            // the keyboard's cursor stays in sight
            const band = p.bands.findIndex((b) => cursor.row >= b.first && cursor.row < b.first + b.n);
            if (band >= 0) {
                const y = tops[band] + (cursor.row - p.bands[band].first) * rowHeight;
                if (y < box.scrollTop) box.scrollTop = y;
                else if (y + rowHeight > box.scrollTop + shownHeight) box.scrollTop = y + rowHeight - shownHeight;
            }
        }
        paintCursor();
    }, [props.cursor]);
    useEffect(() => () => cancelAnimationFrame(frame.current), []);

    const hit = (event: MouseEvent): Cursor | null => {
        const box = scroller.current!.getBoundingClientRect();
        const x = event.clientX - box.left - gutter, y = event.clientY - box.top - AXIS;
        if (y < 0 || x < 0 || !p.rows.length) return null;
        const at = y + scroller.current!.scrollTop, [from, to] = state.current.range;
        const band = bandAt(tops, at), b = p.bands[band];
        const hour = from + Math.floor((x / plot) * (to - from));
        return b && at < whole && hour < to ? { row: b.first + Math.min(b.n - 1, Math.floor((at - tops[band]) / rowHeight)), hour } : null;
    };
    const key = (event: KeyboardEvent) => {
        const { cursor, range: [from, to], onCursor } = state.current;
        const at = cursor ?? { row: 0, hour: from };
        const band = p.bands.findIndex((b) => at.row >= b.first && at.row < b.first + b.n);
        const clamp = (v: number, low: number, high: number) => Math.max(low, Math.min(high, v));
        const move = (row: number, hour: number) => onCursor({ row: clamp(row, 0, p.rows.length - 1), hour: clamp(hour, from, to - 1) });
        const moves: Record<string, () => void> = {
            ArrowLeft: () => move(at.row, at.hour - (event.shiftKey ? 24 : 1)),
            ArrowRight: () => move(at.row, at.hour + (event.shiftKey ? 24 : 1)),
            ArrowUp: () => move(at.row - 1, at.hour),
            ArrowDown: () => move(at.row + 1, at.hour),
            PageUp: () => move(p.bands[Math.max(0, band - 1)]?.first ?? 0, at.hour),
            PageDown: () => move(p.bands[Math.min(p.bands.length - 1, band + 1)]?.first ?? 0, at.hour),
            Home: () => move(event.ctrlKey ? 0 : at.row, from),
            End: () => move(event.ctrlKey ? p.rows.length - 1 : at.row, to - 1),
            Enter: () => cursor && state.current.onOpen(cursor),
        };
        if (event.altKey || event.metaKey) return;
        if (moves[event.key]) moves[event.key]();
        else if (!state.current.onKey(event.key)) return;
        event.preventDefault();
    };
    return (
        <div class="fleet-scroll" ref={scroller} tabIndex={0} role="application" aria-roledescription="picture of the fleet" aria-label={props.label}
            onScroll={repaint} onKeyDown={key}
            onMouseMove={(e) => {
                const found = hit(e), { cursor } = state.current;
                if (found?.row !== cursor?.row || found?.hour !== cursor?.hour) props.onCursor(found);
            }}
            onMouseLeave={() => props.onCursor(null)}
            onClick={(e) => {
                const found = hit(e);
                if (found) props.onOpen(found);
            }}
            style={{ height: `${height}px` }}>
            <div class="fleet-sheet" style={{ height: `${Math.max(height, whole + AXIS)}px` }}>
                <canvas ref={main} class="fleet-main" style={{ width: `${width}px`, height: `${height}px` }} />
                <canvas ref={over} class="fleet-over" style={{ width: `${width}px`, height: `${height}px`, marginTop: `-${height}px` }} />
            </div>
        </div>
    );
}

function paintUse(g: CanvasRenderingContext2D, use: string, from: number, to: number, left: number, step: number, y: number, h: number, c: Colours) {
    g.beginPath();
    let open = false;
    for (let x = from; x < to; x++) {
        const value = digit(use[x]);
        if (value === null) {
            open = false;
            continue;
        }
        const at = y + h - 1.5 - value * (h - 3), x0 = left + (x - from) * step;
        if (open) g.lineTo(x0, at);
        else g.moveTo(x0, at);
        g.lineTo(x0 + step, at);
        open = true;
    }
    g.strokeStyle = c.page;
    g.lineWidth = 2.6;
    g.globalAlpha = 0.55;
    g.stroke();
    g.globalAlpha = 1;
    g.strokeStyle = c.ink;
    g.lineWidth = 1;
    g.stroke();
}

function paintNames(g: CanvasRenderingContext2D, p: Picture, first: number, last: number, tops: Float64Array, top: number, gutter: number, rowHeight: number, c: Colours, shown: number) {
    g.font = "12px system-ui, sans-serif";
    g.textBaseline = "middle";
    let free = -Infinity;
    for (let b = first; b <= last; b++) {
        const y = tops[b] - top, high = p.bands[b].n * rowHeight;
        const middle = Math.min(Math.max(y + Math.min(high, 40) / 2, 8), Math.max(8, y + high - 8));
        if (middle - 7 < free || middle > shown) continue;
        free = middle + 7;
        let name = format.clean(p.bands[b].node.node);
        while (name.length > 3 && g.measureText(name).width > gutter - 12) name = name.slice(0, Math.max(2, name.length - 3)) + "…";
        g.fillStyle = c.ink;
        g.direction = "ltr";
        g.fillText(name, 0, AXIS + middle);
        if (high >= 34 && p.bands[b].node.instance_type) {
            g.fillStyle = c.quiet;
            let type = format.clean(p.bands[b].node.instance_type!);
            while (type.length > 3 && g.measureText(type).width > gutter - 12) type = type.slice(0, Math.max(2, type.length - 3)) + "…";
            g.fillText(type, 0, AXIS + middle + 15);
            free += 15;
        }
    }
}

function paintAxis(g: CanvasRenderingContext2D, p: Picture, from: number, to: number, gutter: number, step: number, width: number, c: Colours, zone: string) {
    g.font = "12px system-ui, sans-serif";
    g.textBaseline = "alphabetic";
    g.lineWidth = 1;
    const days = step * 24 < 90 && to - from > 26;
    let free = gutter - 2;
    const every = Math.max(1, Math.ceil(44 / step));
    for (let x = from; x < to; x++) {
        const clock = format.clock(p.hours[x], zone), midnight = clock === "00:00" || clock === "00:30";
        const hour = Number(clock.slice(0, 2));
        const long = to - from > 26;
        if (long ? !midnight && x !== from : hour % every !== 0 && !midnight) continue;
        const at = gutter + (x - from) * step;
        g.strokeStyle = c.line;
        g.beginPath();
        g.moveTo(Math.round(at) + 0.5, 20);
        g.lineTo(Math.round(at) + 0.5, AXIS - 2);
        g.stroke();
        const day = format.day(p.hours[x], zone);
        const text = long ? (days ? day.slice(5) : `${format.weekday(p.hours[x], zone)} ${day.slice(5)}`) : clock;
        if (at < free || (x === from && long && !midnight)) continue;
        g.fillStyle = c.quiet;
        const wide = g.measureText(text).width;
        if (at + wide > width) continue;
        g.fillText(text, at + 3, 14);
        free = at + wide + 10;
    }
}
