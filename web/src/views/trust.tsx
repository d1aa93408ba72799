// How far the figures can be believed: what doctor says, and the coverage of every node.

import { Check, useAnswer } from "../data";
import * as format from "../format";
import { Row } from "../model";
import { link } from "../route";
import { keyOf, question, usePage } from "../ui/context";
import { Notes } from "../ui/notes";
import { Await } from "../ui/states";
import { Column, Table } from "../ui/table";

const SIGN: Record<string, string> = { error: "●", warning: "▲", info: "○" };

function Found({ check, currency }: { check: Check; currency: string }) {
    const size = [
        check.gpu_hours != null ? `${format.hours(check.gpu_hours)} GPU-hours` : "",
        check.cost != null ? format.money(Number(check.cost), currency) : "",
        check.count != null ? `${format.count(check.count)} ${check.unit ?? ""}`.trim() : "",
    ].filter(Boolean).join(" · ");
    const examples = (check.examples ?? []).map((e) => format.clean(e.name) + (e.gpu_hours != null ? ` (${format.hours(e.gpu_hours)} h)` : e.count != null ? ` (${format.count(e.count)})` : "")).join(", ");
    return (
        <li class={`check ${check.severity}`}>
            <p class="check-head"><span class="sign-word"><span aria-hidden="true">{SIGN[check.severity]}</span> {check.severity}</span> <b>{format.clean(check.title)}</b> <span class="quiet">{size}</span></p>
            <dl class="facts">
                {examples && <><dt>Where</dt><dd><bdi>{examples}</bdi>{check.more ? ` and ${check.more} more` : ""}</dd></>}
                {check.effect && <><dt>So</dt><dd>{format.clean(check.effect)}</dd></>}
                {check.mend && <><dt>Mend</dt><dd>{format.clean(check.mend)}</dd></>}
            </dl>
        </li>
    );
}

function Doctor() {
    const page = usePage();
    const q = question(page, [], []);
    const answer = useAnswer(keyOf(q, "doctor"), () => page.source.doctor(q));
    return (
        <Await answer={answer} what="what doctor says">
            {(doctor) => {
                const order = ["error", "warning", "info"];
                const found = doctor.checks.filter((c) => c.status === "found").sort((a, b) => order.indexOf(a.severity) - order.indexOf(b.severity));
                const fine = doctor.checks.filter((c) => c.status === "fine");
                const unchecked = doctor.checks.filter((c) => c.status === "unchecked");
                return (
                    <section aria-label="Doctor">
                        <header class="section-head"><h2>What doctor says</h2>
                            <p class="quiet">{[format.plural(doctor.counts.error, "error"), format.plural(doctor.counts.warning, "warning"), format.plural(doctor.counts.info, "info")].join(", ")} · {format.plural(fine.length, "check")} fine</p></header>
                        {found.length === 0 ? <p>Nothing is wrong with the telemetry, labels and prices of this window.</p>
                            : <ul class="checks">{found.map((c) => <Found key={c.id} check={c} currency={doctor.currency} />)}</ul>}
                        {unchecked.length > 0 && <details class="notes"><summary>{format.plural(unchecked.length, "check")} could not be made</summary><ul>{unchecked.map((c) => <li key={c.id}><b>{format.clean(c.title)}</b>: {format.clean(c.reason ?? "")}</li>)}</ul></details>}
                        {fine.length > 0 && <details class="notes"><summary>{format.plural(fine.length, "check")} fine</summary><ul>{fine.map((c) => <li key={c.id}>not found: {format.clean(c.title)}</li>)}</ul></details>}
                    </section>
                );
            }}
        </Await>
    );
}

export const Ratio = ({ value }: { value: number | null }) => (
    <span class="ratio">
        <svg width="90" height="8" aria-hidden="true"><rect width="90" height="8" class="track" />{value !== null && <rect width={90 * value} height="8" class="measure" />}</svg>
        {format.percent(value, 1)}
    </span>
);

function Nodes() {
    const page = usePage();
    const q = question(page, ["cluster", "node"], []);
    const by = page.source.has(q.by, []) ? q.by : ["node"];
    const answer = useAnswer(keyOf({ ...q, by }), () => page.source.report({ ...q, by }));
    return (
        <Await answer={answer} what="coverage by node">
            {(report) => {
                const { currency } = report;
                const observed = (r: Row) => (r.figures.gpu_hours ? (r.figures.observed_gpu_hours ?? 0) / r.figures.gpu_hours : null);
                const all: Column<Row>[] = [
                    { id: "node", heading: "Node", text: true, name: true, value: (r) => r.keys.node, cell: (r) => <a href={link(page.route, { view: "node", path: [r.keys.node ?? "-"] })}><bdi>{format.clean(r.keys.node ?? "–")}</bdi></a> },
                    { id: "gpu_hours", heading: "GPU-h", value: (r) => r.figures.gpu_hours, cell: (r) => format.hours(r.figures.gpu_hours) },
                    { id: "observed", heading: "Observed", title: "GPU-hours, held or not, that activity samples cover", value: observed, cell: (r) => <Ratio value={observed(r)} /> },
                    { id: "coverage", heading: "Of held time", title: "observed of held GPU-hours", value: (r) => r.figures.coverage, cell: (r) => format.percent(r.figures.coverage, 1) },
                    { id: "unobserved", heading: "Unobserved", value: (r) => r.figures.unobserved, cell: (r) => format.money(r.figures.unobserved, currency, 2) },
                    { id: "unattributed", heading: "Unattributed", minor: true, value: (r) => r.figures.unattributed, cell: (r) => format.money(r.figures.unattributed, currency, 2) },
                    { id: "price", heading: "Price", title: "cost of a GPU-hour", value: (r) => (r.figures.gpu_hours ? (r.figures.cost ?? 0) / r.figures.gpu_hours : null), cell: (r) => (r.figures.cost ? format.money(r.figures.cost / r.figures.gpu_hours!, currency, 2) : <b class="bad">unpriced</b>) },
                    { id: "flags", heading: "Fallbacks", text: true, minor: true, value: (r) => r.flags.join(";"), cell: (r) => <span class="quiet">{r.flags.join(", ")}</span> },
                ];
                const columns = all.filter((c) => c.id !== "flags" || report.rows.some((r) => r.flags.length));
                return (
                    <section>
                        <Table name="Coverage by node" title="Coverage by node" caption={<p class="quiet">what telemetry covers of each node's GPU time</p>} columns={columns} rows={report.rows} rowKey={(r) => `${r.keys.cluster}/${r.keys.node}`} sort={page.route.sort || "-observed"} onSort={(sort) => page.go({ sort }, true)} />
                    </section>
                );
            }}
        </Await>
    );
}

export function Trust() {
    const page = usePage();
    const q = question(page, ["team"], []);
    const answer = useAnswer(keyOf(q), () => page.source.report(q));
    return (
        <>
            <h1>Trust</h1>
            {answer.value && (
                <>
                    <Notes report={answer.value} />
                    <dl class="figures plain-figures">
                        {([
                            ["Observed", format.percent(answer.value.totals.coverage, 1), "of held GPU-hours"],
                            ["Unpriced", hasFlag(answer.value.notes, "unpriced", "gpu_hours"), "GPU-hours without a price"],
                            ["Unowned", moneyOf(answer.value.notes, "unowned", answer.value.currency), "of pods that no owner rule matches"],
                            ["Unobserved", format.money(answer.value.totals.unobserved, answer.value.currency), "covered by no telemetry"],
                            ["Rejected", hasFlag(answer.value.notes, "rejected", "count"), "values or lines not believed"],
                        ] as const).map(([name, value, beside]) => (
                            <div class="figure" key={name}><dt>{name}</dt><dd><span class="value">{value}</span><span class="beside">{beside}</span></dd></div>
                        ))}
                    </dl>
                </>
            )}
            <Doctor />
            <Nodes />
        </>
    );
}

type Notes_ = { code: string; gpu_hours?: number; cost?: string; count?: number }[];
const sumOf = (notes: Notes_, code: string, field: "gpu_hours" | "count") =>
    notes.filter((n) => n.code === code).reduce((s, n) => s + (n[field] ?? 0), 0);
const hasFlag = (notes: Notes_, code: string, field: "gpu_hours" | "count") => format.hours(sumOf(notes, code, field), field === "count" ? 0 : 1);
const moneyOf = (notes: Notes_, code: string, currency: string) =>
    format.money(notes.filter((n) => n.code === code).reduce((s, n) => s + Number(n.cost ?? 0), 0), currency);
