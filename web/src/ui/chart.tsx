// Frame of a chart: a title, what it shows in a sentence, and its table twin one key away.

import type { ComponentChildren } from "preact";
import { useEffect, useRef, useState } from "preact/hooks";

export function Chart({ title, note, chart, table, tools }: {
    title: string; note?: ComponentChildren; chart: ComponentChildren; table: ComponentChildren; tools?: ComponentChildren;
}) {
    const [twin, setTwin] = useState(false);
    return (
        <section class="chart" aria-label={title}>
            <header class="section-head">
                <h2>{title}</h2>
                {note && <p class="quiet">{note}</p>}
                <div class="tools">
                    {tools}
                    <button type="button" class="plain" aria-pressed={twin} onClick={() => setTwin(!twin)}>
                        {twin ? "Show as chart" : "Show as table"}
                    </button>
                </div>
            </header>
            {twin ? table : chart}
        </section>
    );
}

/** The width that an element has, now and whenever it changes. */
export function useWidth(least = 280): [(e: HTMLElement | null) => void, number] {
    const [width, setWidth] = useState(0);
    const watched = useRef<{ element: HTMLElement; observer: ResizeObserver } | null>(null);
    const set = useRef((element: HTMLElement | null) => {
        watched.current?.observer.disconnect();
        watched.current = null;
        if (!element) return;
        const measure = () => setWidth(Math.max(least, Math.floor(element.clientWidth)));
        const observer = new ResizeObserver(measure);
        observer.observe(element);
        watched.current = { element, observer };
        measure();
    });
    useEffect(() => () => watched.current?.observer.disconnect(), []);
    return [set.current, width];
}
