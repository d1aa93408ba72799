// What stands first is painted first: the rest of a page comes when the browser has painted that.

import { useLayoutEffect, useState } from "preact/hooks";
import { asking } from "../data";

/** When the browser has painted what it has and nobody clicks; soon in any case. */
export function whenIdle(run: () => void): void {
    if ("requestIdleCallback" in window) requestIdleCallback(run, { timeout: 50 });
    else setTimeout(run, 30);
}

let drawn = false;
let waiting: (() => void)[] = [];

/** Has the page's first frame been painted? All that waits for it comes in one frame. */
export function useDrawn(): boolean {
    const [is, set] = useState(drawn);
    useLayoutEffect(() => {
        if (is) return;
        if (waiting.push(() => set(true)) > 1) return;
        asking(1);
        requestAnimationFrame(() => whenIdle(() => {
            drawn = true;
            const all = waiting;
            waiting = [];
            for (const tell of all) tell();
            asking(-1);
        }));
    }, []);
    return is;
}
