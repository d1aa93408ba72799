// Colour and pattern of each category, once for the page: SVG shapes refer to them by id, so that a
// bar, a legend and a treemap look the same, and colour is never the only carrier.

import { CATEGORIES, colourClass, Pattern } from "../categories";

const LINES: Record<Pattern, string> = {
    solid: "",
    rising: "M-2 8 L8 -2 M2 12 L12 2 M-4 4 L4 -4",
    falling: "M-2 0 L8 10 M4 -2 L12 6",
    level: "M0 2.5 H8 M0 6.5 H8",
    upright: "M2 0 V8 M6 0 V8",
    cross: "M0 0 L8 8 M8 0 L0 8",
    dots: "M1.5 2 h1.6 M5.5 6 h1.6",
    brick: "M-2 8 L8 -2 M0 0 L8 8 M2 12 L12 2",
};

export const patternId = (id: string) => `p-${id}`;
export const patternFill = (id: string) => `url(#${patternId(id)})`;
export const patternLines = (pattern: Pattern) => LINES[pattern];

export const Patterns = () => (
    <svg width="0" height="0" class="hidden-defs" aria-hidden="true" focusable="false">
        <defs>
            {CATEGORIES.map((c) => (
                <pattern key={c.id} id={patternId(c.id)} width="8" height="8" patternUnits="userSpaceOnUse">
                    <rect width="8" height="8" class={`fill ${colourClass(c)}`} />
                    {LINES[c.pattern] && <path d={LINES[c.pattern]} class={`texture ${colourClass(c)}`} fill="none" />}
                </pattern>
            ))}
            <pattern id={patternId("idle_part")} width="8" height="8" patternUnits="userSpaceOnUse">
                <rect width="8" height="8" class="fill cat-idle-part" />
                <path d={LINES.upright} class="texture cat-idle-part" fill="none" />
            </pattern>
        </defs>
    </svg>
);

export const Swatch = ({ id }: { id: string }) => (
    <svg class="swatch" width="12" height="12" aria-hidden="true" focusable="false">
        <rect width="12" height="12" rx="2" fill={patternFill(id)} />
    </svg>
);
