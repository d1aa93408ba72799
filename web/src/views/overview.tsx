// The money first: what the window cost, where it went, what changed, who had it, what could be done.

import { byId, CATEGORIES, fullWords } from "../categories";
import { learn, Question, useAnswer } from "../data";
import * as format from "../format";
import { Figures, heldCost, nodeIdle, Report, Row, keyText } from "../model";
import { filterOf, link } from "../route";
import { keyOf, Page, question, usePage, zoneOf } from "../ui/context";
import { Days } from "../ui/days";
import { useDrawn } from "../ui/drawn";
import { Notes } from "../ui/notes";
import { Swatch } from "../ui/patterns";
import { SplitBar } from "../ui/split";
import { Await } from "../ui/states";
import { Column, Table } from "../ui/table";

const hoursOf = (report: Report) => (Date.parse(report.window.to) - Date.parse(report.window.from)) / 3.6e6;

function Figure({ name, value, children, title }: { name: string; value: string; children?: preact.ComponentChildren; title?: string }) {
    return (
        <div class="figure" title={title}>
            <dt>{name}</dt>
            <dd><span class="value">{value}</span>{children && <span class="beside">{children}</span>}</dd>
        </div>
    );
}

/** They are shown when the figures stand. */
function useFindings() {
    const page = usePage();
    const q = question(page);
    return useAnswer(useDrawn() ? keyOf(q, "findings") : null, () => page.source.findings(q));
}

function Headline({ report, previous }: { report: Report; previous: Report | null | undefined }) {
    const page = usePage();
    const { totals: f, currency } = report;
    const findings = useFindings();
    const open = findings.value?.findings.filter((x) => !x.exempt && Number(x.month_saving ?? 0) > 0) ?? [];
    const before = previous?.totals.cost;
    const each = (f.gpu_hours ?? 0) > 0 ? (f.cost ?? 0) / f.gpu_hours! : null;
    const beforeUseful = previous?.totals.effective_price;
    return (
        <dl class="figures">
            <Figure name="Cost" value={format.money(f.cost, currency)}>
                {before != null
                    ? <>{format.change(f.cost ?? 0, before)} against the {format.duration(hoursOf(report))} before ({format.money(before, currency)})</>
                    : <>{format.duration(hoursOf(report))}, {format.hours(f.gpu_hours)} GPU-hours</>}
            </Figure>
            <Figure name="A useful GPU-hour" value={format.money(f.effective_price, currency, 2)}
                title="(used + slack + held idle) / useful GPU-hours">
                {beforeUseful != null && f.effective_price != null && <>{format.change(f.effective_price, beforeUseful)}; </>}
                {each !== null && <>bought at {format.money(each, currency, 2)}</>}
            </Figure>
            <Figure name="Used" value={format.share(f.used ?? 0, f.cost ?? 0)} title="used / cost">
                {format.money(f.used, currency)} of {format.money(f.cost, currency)}
            </Figure>
            <Figure name="Could be saved" value={findings.value ? format.money(Number(findings.value.month_saving), currency) : format.UNKNOWN}>
                {findings.value
                    ? <>a month, in <a href={link(page.route, { view: "findings" })}>{format.plural(open.length, "action")}</a></>
                    : findings.failure ? "findings could not be read" : "a month"}
            </Figure>
            <Figure name="Observed" value={format.percent(f.coverage, 1)} title="observed of held GPU-hours">
                of held time · <a href={link(page.route, { view: "trust" })}>trust</a>
            </Figure>
        </dl>
    );
}

interface Line { id: string; words: string; value: number; before: number | null; who: string; meaning: string; part: boolean; sum?: boolean }

function lines(f: Figures, previous: Figures | null): Line[] {
    const out: Line[] = [];
    const value = (from: Figures | null, id: string) => (from ? from[id] ?? 0 : null);
    for (const c of CATEGORIES) {
        if (c.id === "node_idle_empty")
            out.push({ id: "node_idle", words: "node idle", value: nodeIdle(f), before: previous && nodeIdle(previous), who: "the platform team", meaning: "held by nobody; the sum of its causes", part: false, sum: true });
        const line = { id: c.id, words: c.words, value: f[c.id] ?? 0, before: value(previous, c.id), who: c.who, meaning: c.meaning, part: c.nodeIdle };
        if (line.value > 0 || (line.before ?? 0) > 0 || !c.nodeIdle) out.push(line);
    }
    return out;
}

/** A part of the whole, and a mark where it was in the time before. */
function ShareBar({ id, value, before, whole }: { id: string | null; value: number; before: number | null; whole: number }) {
    if (!(whole > 0)) return null;
    const x = (v: number) => `${(v / whole) * 100}%`;
    return (
        <svg class="share-bar" width="100%" height="12" aria-hidden="true">
            <rect width={x(value)} y="1" height="10" class={id ? undefined : "sum-bar"} fill={id ? `url(#p-${id})` : undefined} />
            {before !== null && before > 0 && <line x1={x(before)} x2={x(before)} y1="0" y2="12" class="before-mark" />}
        </svg>
    );
}

/** previous: undefined while it is asked for, and its place is kept; null where there is none. */
function WhereItWent({ report, previous }: { report: Report; previous: Report | null | undefined }) {
    const { totals: f, currency } = report;
    const cost = f.cost ?? 0;
    const all = lines(f, previous?.totals ?? null);
    const columns: Column<Line>[] = [
        {
            id: "category", heading: "Where it went", text: true, value: (l) => l.words,
            cell: (l) => <span class={l.part ? "category part" : "category"} title={l.meaning}>
                {l.sum ? <span class="swatch-gap" /> : <Swatch id={l.id} />}{l.words}</span>,
        },
        { id: "cost", heading: "Cost", value: (l) => l.value, cell: (l) => format.money(l.value, currency, format.moneyPlaces(cost)) },
        {
            id: "part", heading: previous !== null ? "│ the time before" : "Part", text: true, wide: true, value: (l) => l.value,
            cell: (l) => <ShareBar id={l.sum ? null : l.id} value={l.value} before={l.before} whole={Math.max(...all.map((x) => Math.max(x.value, x.before ?? 0)))} />,
        },
        { id: "share", heading: "Share", value: (l) => (cost > 0 ? l.value / cost : null), cell: (l) => format.share(l.value, cost) },
        ...(previous !== null ? [{
            id: "change", heading: "Change", title: "against the time before it that is as long",
            value: (l: Line) => (l.before === null ? null : l.value - l.before),
            cell: (l: Line) => l.before === null ? format.UNKNOWN : format.moneyChange(l.value - l.before, currency, format.moneyPlaces(cost)),
        }] : []),
        { id: "who", heading: "Who can act", text: true, minor: true, value: (l) => l.who, cell: (l) => <span class="quiet">{l.who}</span> },
    ];
    return (
        <section class="where" aria-label="Where it went">
            <SplitBar figures={f} currency={currency} height={30} label="Where it went" />
            <Table name="Where the cost went" columns={columns} rows={all} rowKey={(l) => l.id}
                rowClass={(l) => (l.part ? "sub" : undefined)}
                caption={report.balance && (
                    <p class={report.balance.balanced ? "balance" : "balance wrong"}>
                        {report.balance.balanced ? "Balanced" : "Not balanced"}: {report.balance.balanced ? "every one of" : ""} {format.plural(report.fleet.node_hours, "node-hour")}{report.balance.balanced ? " is booked once" : ""} ({format.money(report.balance.booked, currency, 2)} of {format.money(report.balance.price, currency, 2)})
                    </p>
                )} />
        </section>
    );
}

function Owners({ report }: { report: Report }) {
    const page = usePage();
    const { currency } = report;
    const largest = Math.max(...report.rows.map((r) => r.figures.cost ?? 0), 0);
    const columns: Column<Row>[] = [
        {
            id: "team", heading: "Team", text: true, name: true, value: (r) => r.keys.team,
            cell: (r) => <a href={link(page.route, { view: "explore", by: ["workload"], filters: [filterOf("team", r.keys.team)] })}><bdi>{format.clean(keyText(r.keys.team))}</bdi></a>,
        },
        { id: "cost", heading: "Cost", value: (r) => r.figures.cost, cell: (r) => format.money(r.figures.cost, currency, format.moneyPlaces(largest)) },
        { id: "split", heading: "Split", text: true, wide: true, value: (r) => (r.figures.cost ? heldCost(r.figures) / r.figures.cost : null), cell: (r) => <SplitBar figures={r.figures} currency={currency} scale={largest} /> },
        { id: "useful", heading: "A useful GPU-h", title: "effective price per useful GPU-hour", value: (r) => r.figures.effective_price, cell: (r) => format.money(r.figures.effective_price, currency, 2) },
    ];
    return (
        <section>
            <Table name="Cost by team" title="Who had it" tools={<a href={link(page.route, { view: "explore", by: ["team"] })}>Explore</a>} columns={columns} rows={report.rows} rowKey={(r) => String(r.keys.team)} sort="cost" shown={8} />
        </section>
    );
}

function TopFindings({ currency }: { currency: string }) {
    const page = usePage();
    const answer = useFindings();
    return (
        <section>
            <header class="section-head"><h2>What to do first</h2><div class="tools"><a href={link(page.route, { view: "findings" })}>All findings</a></div></header>
            <Await answer={answer} what="findings">
                {(found) => {
                    const top = found.findings.filter((f) => !f.exempt && Number(f.month_saving ?? 0) > 0).slice(0, 6);
                    return top.length === 0 ? <p class="quiet">Nothing was found that would save money.</p> : (
                        <ol class="top-findings">
                            {top.map((f) => (
                                <li key={f.id}>
                                    <a href={link(page.route, { view: "findings", path: [f.id] })}>
                                        <span class="saving">{format.money(Number(f.month_saving), currency)}<small> a month</small></span>
                                        <span class="finding-title">{f.title}</span>
                                        <span class="quiet"><bdi>{format.clean(f.subject)}</bdi> · {format.clean(f.owner)}</span>
                                    </a>
                                </li>
                            ))}
                        </ol>
                    );
                }}
            </Await>
        </section>
    );
}

/** What stands below the first figures is drawn after them. */
function Below({ report }: { report: Report }) {
    const page = usePage();
    const days = question(page, ["day"]);
    const trend = useAnswer(keyOf(days), () => page.source.report(days));
    if (!useDrawn()) return <div class="to-come" />;
    return (
        <>
            <Await answer={trend} what="the trend">
                {(t) => <Days rows={t.rows} currency={report.currency} title="Cost by day" unit="day" window={report.window} />}
            </Await>
            <div class="halves">
                <Owners report={report} />
                <TopFindings currency={report.currency} />
            </div>
        </>
    );
}

const keyBefore = (team: Question, report: Report | undefined) => keyOf(team, "previous" + (report ? report.window.from : ""));

/** What is asked before the page is drawn, beside the report by team; comes back when the time before is known. */
export async function asked(page: Pick<Page, "source" | "route">, report: Promise<Report | undefined>): Promise<void> {
    const days = question(page, ["day"]), team = question(page, ["team"]);
    void learn(keyOf(days), () => page.source.report(days));
    const value = await report;
    if (value) await learn(keyBefore(team, value), () => page.source.previous(team, value));
}

/** And in its first frame: where they are not known yet, finding them keeps a machine busy. */
export function askedThen(page: Pick<Page, "source" | "route">): void {
    const q = question(page);
    void learn(keyOf(q, "findings"), () => page.source.findings(q));
}

export function Overview() {
    const page = usePage();
    const team = question(page, ["team"]);
    const answer = useAnswer(keyOf(team), () => page.source.report(team));
    const report = answer.value;
    const previous = useAnswer(keyBefore(team, report),
        async () => (report ? page.source.previous(team, report) : null));
    return (
        <Await answer={answer} what="the report">
            {(value) => value.recorded === null || (value.totals.cost === 0 && value.totals.gpu_hours === 0) ? (
                <div class="state empty">
                    <p><b>The ledger has no hours of this window.</b></p>
                    <p class="quiet">{page.meta.extent
                        ? <>It has {format.span(page.meta.extent.from, page.meta.extent.to, zoneOf(page))}: <a href={link(page.route, { window: `${page.meta.extent.from},${page.meta.extent.to}` })}>show all of it</a>.</>
                        : "It is empty: gputally collect fills it from a Prometheus."}</p>
                </div>
            ) : (
                <>
                    <h1 class="unseen">Overview</h1>
                    <Notes report={value} />
                    <Headline report={value} previous={previous.value} />
                    <WhereItWent report={value} previous={previous.failure ? null : previous.value} />
                    <Below report={value} />
                </>
            )}
        </Await>
    );
}

export const categoryWords = (id: string) => (byId.has(id) ? fullWords(byId.get(id)!) : id);
