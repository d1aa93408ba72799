// A cost as a bar of its categories.

import { byId, fullWords } from "../categories";
import * as format from "../format";
import { Figures, split } from "../model";

/** What a screen reader says of a split, and what a mouse shows: every part that is there. */
export function splitWords(f: Figures, currency: string): string {
    const cost = f.cost ?? 0;
    return split(f).filter((p) => p.value > 0)
        .map((p) => `${fullWords(byId.get(p.id)!)} ${format.share(p.value, cost)} (${format.money(p.value, currency)})`)
        .join(", ") || "nothing";
}

interface Props {
    figures: Figures;
    currency: string;
    height?: number;
    scale?: number; // the cost that is as wide as the bar's place; its own where it is not given
    label?: string;
}

export function SplitBar({ figures, currency, height = 10, scale, label }: Props) {
    const cost = figures.cost ?? 0;
    const whole = scale ?? cost;
    const words = splitWords(figures, currency);
    let at = 0;
    return (
        <svg class="split" width="100%" height={height} role="img" aria-label={(label ? label + ": " : "") + words}>
            <title>{words}</title>
            {whole > 0 && split(figures).filter((p) => p.value > 0).map((p) => {
                const x = (at / whole) * 100;
                at += p.value;
                return <rect key={p.id} class="part" x={`${x}%`} y="0" width={`${(p.value / whole) * 100}%`} height={height}
                    fill={`url(#p-${p.id})`} />;
            })}
        </svg>
    );
}
