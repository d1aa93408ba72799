// What must be said before the figures: what is missing stands open, what is estimated can be opened.

import * as format from "../format";
import type { Report } from "../model";
import { link } from "../route";
import { usePage } from "./context";

export function Notes({ report, compact }: { report: Report; compact?: boolean }) {
    const page = usePage();
    const missing = report.notes.filter((n) => n.level === "missing");
    const rest = report.notes.filter((n) => n.level !== "missing");
    const line = (n: Report["notes"][number], i: number) => (
        <li key={i}><b>{n.code.replace(/-/g, " ")}</b>: {format.clean(n.text)}{n.subject ? <> (<bdi>{format.clean(n.subject)}</bdi>)</> : null}</li>
    );
    if (compact)
        return missing.length === 0 ? null : (
            <p class="warning-line"><b>These figures lack something</b>: {[...new Set(missing.map((n) => n.code.replace(/-/g, " ")))].join(", ")}. <a href={link(page.route, { view: "trust" })}>What, and how to mend it</a></p>
        );
    return (
        <>
            {missing.length > 0 && (
                <aside class="banner" aria-label="What is missing">
                    <svg width="18" height="18" viewBox="0 0 18 18" aria-hidden="true"><path d="M9 1.5 17 16H1Z" class="sign" /><path d="M9 7v4.2M9 13v1.4" class="sign-mark" /></svg>
                    <div>
                        <p><b>These figures lack something.</b> {page.route.view === "trust" ? "What mends it stands below." : <a href={link(page.route, { view: "trust" })}>How to mend it</a>}</p>
                        <ul>{missing.map(line)}</ul>
                    </div>
                </aside>
            )}
            {rest.length > 0 && (
                <details class="notes">
                    <summary>{format.plural(rest.length, "thing")} to know about these figures: {[...new Set(rest.map((n) => n.code.replace(/-/g, " ")))].join(", ")}</summary>
                    <ul>{rest.map(line)}</ul>
                </details>
            )}
        </>
    );
}
