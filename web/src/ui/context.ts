// What every part of the page may need: where figures come from, the address, and how to write money
// and time.

import { createContext } from "preact";
import { useContext } from "preact/hooks";
import type { Meta, Question, Source } from "../data";
import * as format from "../format";
import type { Route } from "../route";

export interface Page {
    source: Source;
    route: Route;
    meta: Meta;
    theme: string; // changes when colours do: canvases draw anew
    go(to: Partial<Route>, replace?: boolean): void; // changes parts of the address
}

export const PageContext = createContext<Page>(null as unknown as Page);
export const usePage = () => useContext(PageContext);

/** The zone in which times are shown; days of the figures begin in it too. */
export const zoneOf = (page: Pick<Page, "route">) => page.route.tz || "UTC";

/** A zone that the ledger can count days in: "local" by its name. */
export const question = (page: Pick<Page, "route">, by: string[] = [], filters: string[] = page.route.filters): Question => ({
    window: page.route.window,
    tz: format.zoneName(zoneOf(page)),
    by,
    filters,
});

export const keyOf = (q: Question, more = "") => JSON.stringify([q, more]);
