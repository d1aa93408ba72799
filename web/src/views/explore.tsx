// Any keys, any filters: the report as a table with the split in each row, and as a map of dollars.
// A click on a name goes one step down; the crumbs go back up.

import { useRef } from "preact/hooks";
import { useAnswer } from "../data";
import * as format from "../format";
import { keyText, nodeIdle, Report, Row } from "../model";
import { filterOf, link, splitFilter } from "../route";
import { keyOf, Page, question, usePage, zoneOf } from "../ui/context";
import { Days } from "../ui/days";
import { Notes } from "../ui/notes";
import { SplitBar } from "../ui/split";
import { Await } from "../ui/states";
import { Column, Table } from "../ui/table";
import { Treemap } from "../ui/treemap";

/** Where a click leads: from what one groups by to what is inside of it. */
const DOWN: Record<string, string> = {
    cluster: "namespace", region: "cluster", cloud: "region", team: "workload", namespace: "workload", workload: "pod", kind: "workload",
    type: "workload", pod: "gpu", container: "pod", pool: "node", "instance-type": "node", "capacity-type": "node",
    model: "node", node: "gpu", gpu: "workload", instance: "workload", day: "team", hour: "team",
};
const KEYS = ["team", "namespace", "workload", "type", "kind", "pod", "container", "cluster", "pool", "node", "gpu", "instance",
    "model", "instance-type", "capacity-type", "cloud", "region", "day", "hour"];
const LIMIT = 1000;

/** The key after a click on a row that has all of `by`: the next one down that is not fixed already. */
export function nextKey(by: string[], fixed: string[]): string | null {
    const seen = new Set([...fixed, ...by]);
    let key: string | undefined = by[by.length - 1];
    for (let i = 0; i < 8 && key; i++) {
        key = DOWN[key];
        if (key && !seen.has(key)) return key;
    }
    return null;
}

export const rowFilters = (row: Row, by: string[]) => by.map((key) => filterOf(key, row.keys[key]));

/** The address of a row's own page, where there is one. */
export function pageOf(page: Page, key: string, row: Row): string | null {
    const value = row.keys[key];
    if (value === null) return null;
    if (key === "node") return link(page.route, { view: "node", path: [value] });
    if (key === "gpu") return link(page.route, { view: "gpu", path: [value] });
    if (key === "workload") {
        const fixed = page.route.filters.map(splitFilter).find((f) => f.key === "namespace" && !f.not)?.value;
        const namespace = row.keys.namespace ?? fixed;
        return link(page.route, { view: "workload", path: [value], filters: namespace ? [filterOf("namespace", namespace)] : [] });
    }
    if (key === "team") return link(page.route, { view: "team", path: [value] });
    return null;
}

function down(page: Page, by: string[], row: Row): string | null {
    const filters = [...page.route.filters.filter((f) => !by.includes(splitFilter(f).key)), ...rowFilters(row, by)];
    const next = nextKey(by, filters.map((f) => splitFilter(f).key));
    if (!next) return null;
    return page.source.has([next], filters) ? link(page.route, { view: "explore", by: [next], filters }) : null;
}

const shown = (key: string, value: string | null, page: Page) =>
    value !== null && key === "hour" ? format.moment(Date.parse(value), zoneOf(page)) : format.clean(keyText(value));

function KeyCell({ row, name, by, first }: { row: Row; name: string; by: string[]; first: boolean }) {
    const page = usePage();
    const text = <bdi>{shown(name, row.keys[name], page)}</bdi>;
    const into = first ? down(page, by, row) : null;
    const own = pageOf(page, name, row);
    return (
        <span class="key">
            {into ? <a href={into}>{text}</a> : own ? <a href={own}>{text}</a> : text}
            {into && own && <a class="own" href={own} aria-label={`page of ${name} ${format.clean(row.keys[name]!)}`} title={`page of this ${name}`}>↗</a>}
        </span>
    );
}

function Crumbs() {
    const page = usePage();
    const { filters, by } = page.route;
    return (
        <nav class="crumbs" aria-label="Drilled down to">
            <ol>
                <li><a href={link(page.route, { view: "explore", by: filters.length ? [splitFilter(filters[0]).key] : by })}>All</a></li>
                {filters.map((text, i) => {
                    const { key, not, value } = splitFilter(text);
                    const last = i === filters.length - 1;
                    const words = <>{key} {not ? "is not " : ""}<b><bdi>{format.clean(value === "-" ? "(none)" : value)}</bdi></b></>;
                    const up = splitFilter(filters[i + 1] ?? "").key;
                    return (
                        <li key={text}>
                            {last ? <span aria-current="true">{words}</span>
                                : <a href={link(page.route, { view: "explore", by: [up], filters: filters.slice(0, i + 1) })}>{words}</a>}
                            <a class="remove" aria-label={`without the filter ${format.clean(text)}`}
                                href={link(page.route, { view: "explore", by, sort: page.route.sort, filters: filters.filter((f) => f !== text) })}>×</a>
                        </li>
                    );
                })}
            </ol>
        </nav>
    );
}

function Controls({ by }: { by: string[] }) {
    const page = usePage();
    const { filters, sort } = page.route;
    const to = (next: string[]) => page.go({ by: next, sort, filters });
    const free = KEYS.filter((k) => !by.includes(k) && page.source.has([...by, k], filters));
    const add = (event: Event) => {
        event.preventDefault();
        const form = event.target as HTMLFormElement;
        const data = new FormData(form);
        const value = String(data.get("value")).trim();
        if (value) page.go({ filters: [...filters, `${data.get("key")}${data.get("how")}${value}`] });
        form.reset();
    };
    return (
        <div class="controls">
            <div class="group-by" role="group" aria-label="Group by">
                <span class="quiet">Group by</span>
                {by.map((key) => (
                    <span class="chip" key={key}>
                        {key}
                        {by.length > 1 && <button type="button" class="chip-x" aria-label={`do not group by ${key}`} onClick={() => to(by.filter((k) => k !== key))}>×</button>}
                    </span>
                ))}
                <select aria-label="Group by another key" value="" onChange={(e) => {
                    const [how, key] = e.currentTarget.value.split(" ");
                    if (key) to(how === "only" ? [key] : [...by, key]);
                    e.currentTarget.value = "";
                }}>
                    <option value="">change …</option>
                    <optgroup label="Only by">
                        {KEYS.filter((k) => !(by.length === 1 && by[0] === k) && page.source.has([k], filters)).map((k) => <option key={k} value={`only ${k}`}>{k}</option>)}
                    </optgroup>
                    {free.length > 0 && (
                        <optgroup label="And by">{free.map((k) => <option key={k} value={`and ${k}`}>{by.join(", ")}, {k}</option>)}</optgroup>
                    )}
                </select>
            </div>
            <form class="add-filter" onSubmit={add} aria-label="Add a filter">
                <select name="key" aria-label="Key of the filter">{KEYS.filter((k) => page.source.has(by, [...filters, `${k}=x`])).map((k) => <option key={k}>{k}</option>)}</select>
                <select name="how" aria-label="Is or is not"><option value="=">is</option><option value="!=">is not</option></select>
                <input name="value" aria-label="Value of the filter" placeholder="name, * and ? stand for any" autocomplete="off" spellcheck={false} />
                <button type="submit">Filter</button>
            </form>
        </div>
    );
}

function columnsOf(report: Report, by: string[]): Column<Row>[] {
    const { currency } = report;
    const largest = Math.max(...report.rows.map((r) => r.figures.cost ?? 0), 0);
    const places = format.moneyPlaces(largest);
    const total = report.totals;
    const money = (id: string, heading: string, title?: string): Column<Row> => ({
        id, heading, title, minor: id !== "cost", value: (r) => r.figures[id], foot: format.money(total[id], currency, places),
        cell: (r) => format.money(r.figures[id], currency, places),
    });
    const part = (id: string, heading: string): Column<Row> => ({
        id, heading, title: `${heading.toLowerCase()}: share of the row's cost`, minor: true,
        value: (r) => (id === "node_idle" ? nodeIdle(r.figures) : r.figures[id]),
        cell: (r) => format.share(id === "node_idle" ? nodeIdle(r.figures) : r.figures[id] ?? 0, r.figures.cost ?? 0),
        foot: format.share(id === "node_idle" ? nodeIdle(total) : total[id] ?? 0, total.cost ?? 0),
    });
    return [
        ...by.map((key, i): Column<Row> => ({
            id: key, heading: format.keyHeading(key), text: true, name: true, value: (r) => r.keys[key],
            cell: (r) => <KeyCell row={r} name={key} by={by} first={i === 0} />, foot: i === 0 ? "Total" : "",
        })),
        { id: "gpu_hours", heading: "GPU-h", value: (r) => r.figures.gpu_hours, cell: (r) => format.hours(r.figures.gpu_hours), foot: format.hours(total.gpu_hours) },
        money("cost", "Cost"),
        { id: "split", heading: "Split", text: true, wide: true, title: "bars are as long as the cost", value: (r) => r.figures.cost, cell: (r) => <SplitBar figures={r.figures} currency={currency} scale={largest} />, foot: "" },
        part("used", "Used"), part("slack", "Slack"), part("held_idle", "Held idle"), part("node_idle", "Node idle"), part("unobserved", "Unobserved"),
        { id: "utilisation", heading: "Util", title: "mean work ratio of held, observed time", value: (r) => r.figures.utilisation, cell: (r) => format.percent(r.figures.utilisation), foot: format.percent(total.utilisation) },
        { id: "effective_price", heading: "A useful GPU-h", title: "(used + slack + held idle) / useful GPU-hours", value: (r) => r.figures.effective_price, cell: (r) => format.money(r.figures.effective_price, currency, 2), foot: format.money(total.effective_price, currency, 2) },
    ];
}

/** The answer by its own keys: while the next one is waited for, they are not those of the address. */
function Grouped({ report }: { report: Report }) {
    const page = usePage();
    const { by } = report;
    const time = by.length === 1 && (by[0] === "day" || by[0] === "hour") ? (by[0] as "day" | "hour") : null;
    return (
        <>
            <Notes report={report} compact />
            {time
                ? <Days rows={report.rows} currency={report.currency} title={`Cost, ${time} by ${time}`} unit={time} window={report.window} />
                : <Treemap rows={report.rows} currency={report.currency} total={report.totals.cost ?? 0}
                    name={(r) => by.map((k) => shown(k, r.keys[k], page)).join(" · ")} href={(r) => down(page, by, r) ?? pageOf(page, by[0], r)} />}
            <Table key={by.join()} name={`Cost by ${by.join(", ")}`} columns={columnsOf(report, by)} rows={report.rows} foot
                rowKey={(r) => by.map((k) => r.keys[k]).join("\u0000")} total={report.rowsTotal} shown={50}
                sort={page.route.sort || (time ? by[0] : "cost")} onSort={(sort) => page.go({ sort }, true)}
                caption={<p class="quiet">{format.plural(report.rowsTotal, "row")}, {format.money(report.totals.cost, report.currency)}</p>} />
        </>
    );
}

export function Explore() {
    const page = usePage();
    const by = page.route.by.length ? page.route.by : ["team"];
    // the server orders what it cannot send whole; what is all here is ordered here
    const cut = useRef(false);
    const { sort } = page.route;
    const figure = cut.current && page.meta.figures.some((f) => f.name === sort) ? sort : undefined;
    const q = { ...question(page, by), limit: LIMIT, sort: figure };
    const answer = useAnswer(keyOf(q, figure), () => page.source.report(q));
    if (answer.value && !answer.loading) cut.current = answer.value.rowsTotal > answer.value.rows.length;
    return (
        <>
            <h1 class="unseen">Explore</h1>
            <Crumbs />
            <Controls by={by} />
            <Await answer={answer} what="these figures">
                {(report) => report.rows.length === 0 ? (
                    <div class="state empty">
                        <p><b>No row has all of these.</b></p>
                        <p class="quiet">The window has none of: {page.route.filters.map(format.clean).join(", ")}. A filter is a whole name; * stands for anything.</p>
                    </div>
                ) : (
                    <Grouped report={report} />
                )}
            </Await>
        </>
    );
}
