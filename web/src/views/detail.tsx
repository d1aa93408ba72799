// A page for a workload, a node, a GPU, a team: what it cost and why, what it did hour by hour, who
// held it, and what was found about it.

import { useState } from "preact/hooks";
import { Finding, Held, Subject, useAnswer } from "../data";
import * as format from "../format";
import { Figures, NOT_HELD, Report, Row, split } from "../model";
import { byId, fullWords } from "../categories";
import { filterOf, link, splitFilter } from "../route";
import { quantile, Series } from "../picture";
import { keyOf, question, usePage, zoneOf } from "../ui/context";
import { Days } from "../ui/days";
import { Lines, valueText } from "../ui/lines";
import { Swatch } from "../ui/patterns";
import { SplitBar } from "../ui/split";
import { Await } from "../ui/states";
import { Column, Table } from "../ui/table";
import { pageOf } from "./explore";
import { Explanation } from "./findings";

const INSIDE: Record<Subject["kind"], { by: string[]; title: string }[]> = {
    team: [{ by: ["namespace", "workload"], title: "Its workloads" }, { by: ["model"], title: "On which GPUs" }],
    workload: [{ by: ["node"], title: "On which nodes" }, { by: ["gpu"], title: "On which GPUs" }, { by: ["pod"], title: "Its pods" }],
    node: [{ by: ["gpu"], title: "Its GPUs" }, { by: ["namespace", "workload"], title: "What ran on it" }],
    gpu: [{ by: ["namespace", "workload"], title: "What ran on it" }, { by: ["node"], title: "On which node" }],
};

function Facts({ report, kind }: { report: Report; kind: string }) {
    const { totals: f, currency } = report;
    const facts: [string, string, string][] = [
        ["Cost", format.money(f.cost, currency), `${format.hours(f.gpu_hours)} GPU-hours`],
        ["Used", format.share(f.used ?? 0, f.cost ?? 0), format.money(f.used, currency)],
        ["Utilisation", format.percent(f.utilisation), "of held, observed time"],
        ["A useful GPU-hour", format.money(f.effective_price, currency, 2), f.gpu_hours ? `bought at ${format.money((f.cost ?? 0) / f.gpu_hours, currency, 2)}` : ""],
        kind === "node" || kind === "gpu"
            ? ["Held", format.share(f.held_gpu_hours ?? 0, f.gpu_hours ?? 0), `${format.hours(f.held_gpu_hours)} GPU-hours`]
            : ["Idle while held", format.share(f.idle_gpu_hours ?? 0, f.held_gpu_hours ?? 0), `${format.hours(f.idle_gpu_hours)} GPU-hours`],
    ];
    if (f.energy_kwh != null) facts.push(["Energy", `${format.digits(f.energy_kwh)} kWh`, f.memory_max_bytes != null ? `most memory ${format.gib(f.memory_max_bytes)}` : ""]);
    return (
        <dl class="figures six">
            {facts.map(([name, value, beside]) => <div class="figure" key={name}><dt>{name}</dt><dd><span class="value">{value}</span><span class="beside">{beside}</span></dd></div>)}
        </dl>
    );
}

const Split = ({ f, currency }: { f: Figures; currency: string }) => (
    <section aria-label="Split of the cost">
        <SplitBar figures={f} currency={currency} height={26} label="Split of the cost" />
        <ul class="legend with-values">
            {split(f).filter((p) => p.value > 0).map((p) => (
                <li key={p.id}><Swatch id={p.id} />{fullWords(byId.get(p.id)!)} <b>{format.money(p.value, currency, format.moneyPlaces(f.cost ?? 0))}</b> {format.share(p.value, f.cost ?? 0)}</li>
            ))}
        </ul>
    </section>
);

function Percentiles({ series }: { series: Series }) {
    const page = usePage();
    const first = new Map<string, Series["lines"][number]>();
    for (const l of series.lines) if (!first.has(l.unit + l.name.split(",")[0])) first.set(l.unit + l.name.split(",")[0], l);
    const rows = [...first.values()].filter((l) => l.unit !== "money").map((l) => {
        const sorted = l.v.filter((v): v is number => v !== null).sort((a, b) => a - b);
        return { name: l.name, unit: l.unit, values: [0.1, 0.5, 0.9, 0.99, 1].map((q) => quantile(sorted, q)), n: sorted.length };
    }).filter((r) => r.n > 0);
    if (!rows.length) return null;
    type R = (typeof rows)[number];
    const columns: Column<R>[] = [
        { id: "signal", heading: "Signal", text: true, wide: true, value: (r) => r.name, cell: (r) => r.name },
        ...["10th", "median", "90th", "99th", "most"].map((heading, i): Column<R> => ({
            id: heading, heading, title: i === 4 ? "the highest hour" : "percentile of the hours", value: (r) => r.values[i], cell: (r) => valueText(r.unit, r.values[i], page.meta.currency),
        })),
        { id: "hours", heading: "Hours", value: (r) => r.n, cell: (r) => format.digits(r.n) },
    ];
    return <section><Table name="Percentiles of use" title="How it was used" caption={<p class="quiet">percentiles of hourly means</p>} columns={columns} rows={rows} rowKey={(r) => r.name} /></section>;
}

function Use({ of }: { of: Subject }) {
    const page = usePage();
    const q = question(page, [], []);
    const answer = useAnswer(keyOf(q, "series " + JSON.stringify(of)), () => page.source.series(q, of));
    return (
        <Await answer={answer} what="its use by hour">
            {(series) => {
                const units = [...new Set(series.lines.map((l) => l.unit))].filter((u) => u !== "money");
                const titles: Record<string, string> = { ratio: "Use", bytes: "GPU memory", W: "Power" };
                if (!series.lines.some((l) => l.v.some((v) => v !== null))) return <p class="quiet">No activity was observed in this window.</p>;
                return (
                    <>
                        <Percentiles series={series} />
                        <div class="halves flush">
                            {units.map((unit) => <Lines key={unit} title={titles[unit] ?? unit} unit={unit} t={series.t} lines={series.lines.filter((l) => l.unit === unit)} />)}
                        </div>
                    </>
                );
            }}
        </Await>
    );
}

function Holders({ of }: { of: Subject }) {
    const page = usePage();
    const zone = zoneOf(page), q = question(page, [], []);
    const answer = useAnswer(keyOf(q, "held " + JSON.stringify(of)), () => page.source.held(q, of));
    if (!answer.value?.length) return null;
    const rows = answer.value;
    const hours = (h: Held) => (Date.parse(h.to) - Date.parse(h.from)) / 3.6e6;
    const columns: Column<Held>[] = [
        { id: "from", heading: "From", text: true, value: (h) => h.from, cell: (h) => format.moment(Date.parse(h.from), zone) },
        { id: "to", heading: "To", text: true, value: (h) => h.to, cell: (h) => format.moment(Date.parse(h.to), zone) },
        { id: "hours", heading: "Hours", value: hours, cell: (h) => format.hours(hours(h)) },
        { id: "holder", heading: of.kind === "workload" ? "GPU" : "Holder", text: true, wide: true, value: (h) => (of.kind === "workload" ? h.device : `${h.namespace}/${h.workload ?? h.pod}`),
            cell: (h) => of.kind === "workload" && h.device
                ? <a href={link(page.route, { view: "gpu", path: [h.device] })}><bdi>{format.clean(h.device)}</bdi></a>
                : h.workload ? <a href={link(page.route, { view: "workload", path: [h.workload], filters: h.namespace ? [filterOf("namespace", h.namespace)] : [] })}><bdi>{format.clean(`${h.namespace}/${h.workload}`)}</bdi></a> : <bdi>{format.clean(h.pod ?? NOT_HELD)}</bdi> },
        { id: "team", heading: "Team", text: true, minor: true, value: (h) => h.team, cell: (h) => <bdi>{format.clean(h.team ?? format.UNKNOWN)}</bdi> },
        ...(rows.some((h) => h.cost !== null && h.cost !== undefined) ? [{ id: "cost", heading: "Cost", value: (h: Held) => (h.cost == null ? null : Number(h.cost)), cell: (h: Held) => format.money(h.cost == null ? null : Number(h.cost), page.meta.currency, 2) }] : []),
    ];
    return (
        <section>
            <Table name="Holders" title={of.kind === "workload" ? "Which GPUs it held, and when" : "Who held it, and when"} caption={<p class="quiet">to the hour, {format.zoneName(zone)}</p>} columns={columns} rows={rows} rowKey={(h) => `${h.from} ${h.device} ${h.namespace} ${h.workload} ${h.pod}`} shown={12} sort="-from" />
        </section>
    );
}

function Inside({ by, title, filters }: { by: string[]; title: string; filters: string[] }) {
    const page = usePage();
    const q = { ...question(page, by, filters), limit: 500 };
    const answer = useAnswer(keyOf(q), () => page.source.report(q));
    return (
        <Await answer={answer} what={title.toLowerCase()}>
            {(report) => {
                if (!report.rows.length) return null;
                const largest = Math.max(...report.rows.map((r) => r.figures.cost ?? 0), 0), { currency } = report;
                const last = by[by.length - 1];
                const columns: Column<Row>[] = [
                    ...by.map((key): Column<Row> => {
                        return { id: key, heading: format.keyHeading(key), text: true, name: true, value: (r) => r.keys[key],
                            cell: (r) => { const to = key === last ? pageOf(page, key, r) : null, text = <bdi>{format.clean(r.keys[key] ?? NOT_HELD)}</bdi>; return to ? <a href={to}>{text}</a> : text; } };
                    }),
                    { id: "gpu_hours", heading: "GPU-h", value: (r) => r.figures.gpu_hours, cell: (r) => format.hours(r.figures.gpu_hours) },
                    { id: "cost", heading: "Cost", value: (r) => r.figures.cost, cell: (r) => format.money(r.figures.cost, currency, format.moneyPlaces(largest)) },
                    { id: "split", heading: "Split", text: true, wide: true, value: (r) => r.figures.cost, cell: (r) => <SplitBar figures={r.figures} currency={currency} scale={largest} /> },
                    { id: "utilisation", heading: "Util", value: (r) => r.figures.utilisation, cell: (r) => format.percent(r.figures.utilisation) },
                ];
                return <section><Table name={title} title={title} tools={<a href={link(page.route, { view: "explore", by, filters })}>Explore</a>} columns={columns} rows={report.rows} rowKey={(r) => by.map((k) => r.keys[k]).join("\u0000")} sort="cost" shown={10} total={report.rowsTotal} /></section>;
            }}
        </Await>
    );
}

function Found({ of }: { of: Subject }) {
    const page = usePage();
    const q = question(page, [], []);
    const answer = useAnswer(keyOf(q, "findings"), () => page.source.findings(q));
    const about = (f: Finding) => {
        const cut = f.subject.indexOf(" "), kind = f.subject.slice(0, cut), name = f.subject.slice(cut + 1);
        if (of.kind === "team") return f.owner === of.name;
        if (of.kind === "workload") return kind === "workload" && (of.namespace ? name.endsWith(`${of.namespace}/${of.name}`) : name.endsWith("/" + of.name));
        return (kind === "node" || kind === "gpu" || kind === "GPU") && (name === of.name || name.endsWith("/" + of.name));
    };
    const found = answer.value?.findings.filter(about) ?? [];
    if (!found.length) return null;
    return (
        <section>
            <header class="section-head"><h2>What was found</h2></header>
            <ol class="top-findings">
                {found.map((f) => (
                    <li key={f.id}><a href={link(page.route, { view: "findings", path: [f.id] })}>
                        <span class="saving">{Number(f.month_saving ?? 0) > 0 ? format.money(Number(f.month_saving), page.meta.currency) : format.UNKNOWN}<small> a month</small></span>
                        <span class="finding-title">{format.clean(f.title)}</span><span class="quiet">{format.clean(f.what)}</span>
                    </a></li>
                ))}
            </ol>
        </section>
    );
}

/** What gputally explain says of it, when it is asked for. */
function Explain({ of }: { of: Subject }) {
    const page = usePage();
    const [open, setOpen] = useState(false);
    const what = `${of.kind} ${of.cluster && of.kind !== "gpu" && of.kind !== "team" ? of.cluster + "/" : ""}${of.kind === "workload" && of.namespace ? of.namespace + "/" : ""}${of.name}`;
    const answer = useAnswer(`explain ${open} ${what} ${page.route.window}`,
        async () => (open ? page.source.explain(question(page, [], []), what) : null));
    return (
        <details class="notes" onToggle={(e) => setOpen(e.currentTarget.open)}>
            <summary>Explain: where these figures come from</summary>
            {answer.failure ? <p>{answer.failure.message}</p>
                : answer.value || (open && page.source.file) ? <Explanation text={answer.value ?? null} of={what} />
                    : open && <p role="status">Asking …</p>}
        </details>
    );
}

export function Detail() {
    const page = usePage();
    const kind = page.route.view as Subject["kind"], name = page.route.path.join("/");
    const of: Subject = { kind, name };
    for (const { key, value } of page.route.filters.map(splitFilter)) if (key === "namespace" || key === "cluster") of[key] = value;
    const filters = [filterOf(kind, name), ...page.route.filters];
    const q = question(page, ["day"], filters);
    const answer = useAnswer(keyOf(q), () => page.source.report(q));
    return (
        <>
            <nav class="crumbs" aria-label="Where this is">
                <ol><li><a href={link(page.route, { view: "explore", by: [kind === "team" ? "team" : kind] })}>{kind === "gpu" ? "GPUs" : kind + "s"}</a></li>
                    {of.cluster && <li>{format.clean(of.cluster)}</li>}
                    {of.namespace && <li><a href={link(page.route, { view: "explore", by: ["workload"], filters: [filterOf("namespace", of.namespace)] })}><bdi>{format.clean(of.namespace)}</bdi></a></li>}
                </ol>
            </nav>
            <h1><bdi>{format.clean(name)}</bdi></h1>
            <Await answer={answer} what={`this ${kind}`}>
                {(report) => report.rows.length === 0 ? (
                    <div class="state empty"><p><b>The window has no hour of this {kind}.</b></p>
                        <p class="quiet">It may have another name, or lie outside the window. <a href={link(page.route, { view: "explore", by: [kind] })}>All that are there</a></p></div>
                ) : (
                    <>
                        <Facts report={report} kind={kind} />
                        <Split f={report.totals} currency={report.currency} />
                        <Found of={of} />
                        <Days rows={report.rows} currency={report.currency} title="Cost by day" unit="day" window={report.window} />
                        <Use of={of} />
                        {INSIDE[kind].filter((i) => page.source.has(i.by, filters)).map((i) => <Inside key={i.title} {...i} filters={filters} />)}
                        <Holders of={of} />
                        <Explain of={of} />
                    </>
                )}
            </Await>
        </>
    );
}
