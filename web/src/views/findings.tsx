// What to do, the dearest first: each finding with its evidence, its arithmetic, and what to copy.

import { useEffect, useRef, useState } from "preact/hooks";
import { Evidence, Finding, shellWord, useAnswer } from "../data";
import * as format from "../format";
import { filterOf, format as address, link, Route } from "../route";
import { keyOf, question, usePage, zoneOf } from "../ui/context";
import { csv, download } from "../csv";
import { Await } from "../ui/states";

/** A figure and its bound as two numbers of one unit, where both are such; else they stay words. */
export function measure(e: Evidence): { value: number; bound: number; top: number } | null {
    const read = (text: string) => /^(?:[^\d.-]*)(-?[\d,]+(?:\.\d+)?)\s*([%A-Za-z-]*)/.exec(text);
    const value = read(e.value), bound = e.threshold ? read(e.threshold) : null;
    if (!value || !bound || !/^[\d,.\s%A-Za-z-]+$/.test(e.value) || value[2] !== bound[2]) return null;
    const [v, b] = [value[1], bound[1]].map((n) => Number(n.replace(/,/g, "")));
    if (!Number.isFinite(v) || !Number.isFinite(b)) return null;
    return { value: v, bound: b, top: value[2] === "%" ? 100 : Math.max(v, b) * 1.1 };
}

function EvidenceRow({ e }: { e: Evidence }) {
    const m = measure(e);
    return (
        <tr>
            <th scope="row" class="text">{format.clean(e.name)}</th>
            <td>{format.clean(e.value)}</td>
            <td class="text quiet">{e.threshold ? format.clean(e.threshold) : ""}</td>
            <td class="bar-cell minor">
                {m && m.top > 0 && (
                    <svg width="100%" height="14" viewBox="0 0 160 14" preserveAspectRatio="none" role="img" aria-label={`${e.value} against ${e.threshold}`}>
                        <rect y="3" width="160" height="8" class="track" />
                        <rect y="3" width={Math.min(160, (m.value / m.top) * 160)} height="8" class="measure" />
                        <path d={`M${Math.min(159, (m.bound / m.top) * 160)} 0v14`} class="bound" />
                    </svg>
                )}
            </td>
        </tr>
    );
}

export function Copy({ text, what }: { text: string; what: string }) {
    const [done, setDone] = useState("");
    const copy = async () => {
        try {
            await navigator.clipboard.writeText(text);
            setDone("Copied");
        } catch {
            // files and plain http have no clipboard: the old way, which a click may still do
            const area = document.createElement("textarea");
            area.value = text;
            document.body.append(area);
            area.select();
            setDone(document.execCommand("copy") ? "Copied" : "Select it and copy");
            area.remove();
        }
        setTimeout(() => setDone(""), 2500);
    };
    return (
        <div class="copy">
            <pre tabIndex={0} aria-label={what}><code>{text}</code></pre>
            <button type="button" onClick={copy} aria-label={`Copy ${what}`}>{done || "Copy"}</button>
            <span class="unseen" role="status">{done}</span>
        </div>
    );
}

/** The page of what a finding is about: "workload ns/Kind/name", "node NAME". */
export function subjectLink(route: Route, subject: string): string | null {
    const cut = subject.indexOf(" ");
    const kind = subject.slice(0, cut), name = subject.slice(cut + 1);
    if (kind === "node") return link(route, { view: "node", path: [name.slice(name.lastIndexOf("/") + 1)] });
    if (kind === "workload") {
        const parts = name.split("/");
        if (parts.length < 3) return null;
        return link(route, { view: "workload", path: [parts.slice(-2).join("/")], filters: [filterOf("namespace", parts[parts.length - 3])] });
    }
    return null;
}

const cleanLine = (text: string) => text.split("\n").map(format.clean).join("\n");

/** What gputally explain prints; in a file, without the ledger's rows, which a command has. */
export function Explanation({ text, of }: { text: string | null; of: string }) {
    const command = usePage().source.command(of);
    return (
        <>
            {text && <pre class="explain" tabIndex={0} role="region" aria-label="Explanation">{cleanLine(text)}</pre>}
            {command && <><p>The rows of the ledger behind it, their prices and fallbacks are not in this file; where the ledger is, this shows them:</p><Copy text={cleanLine(command)} what="the command that explains it" /></>}
        </>
    );
}

function Body({ f, currency }: { f: Finding; currency: string }) {
    const page = usePage();
    const explain = useAnswer(`explain ${f.id} ${page.route.window}`, () => page.source.explain(question(page, [], []), f.id));
    const to = subjectLink(page.route, f.subject);
    const until = new Date(Date.parse(page.meta.now) + 90 * 86_400_000).toISOString().slice(0, 10);
    return (
        <div class="finding-body">
            <p class="what"><b><bdi>{format.clean(f.subject)}</bdi></b> {format.clean(f.what)}{f.since ? `, since ${format.moment(Date.parse(f.since), zoneOf(page))}` : ""}. {to && <a href={to}>Show its page</a>}</p>
            <div class="finding-columns">
                <div>
                    <h2>What to do</h2>
                    {f.action && <p>{format.clean(f.action)}.</p>}
                    {f.command && <Copy text={cleanLine(f.command)} what="the command" />}
                    {f.patch && <Copy text={cleanLine(f.patch)} what="the patch" />}
                    <dl class="facts">
                        <dt>Who</dt><dd>{format.clean(f.who)}: <bdi>{format.clean(f.owner)}</bdi>{f.user && <>, user <bdi>{format.clean(f.user)}</bdi></>}</dd>
                        {f.depends_on && <><dt>Depends on</dt><dd>{format.clean(f.depends_on)}</dd></>}
                        {f.risk && <><dt>Risk</dt><dd>{format.clean(f.risk)}</dd></>}
                        <dt>Confidence</dt><dd>{f.confidence}{f.reasons ? `: ${format.clean(f.reasons)}` : ""}</dd>
                    </dl>
                </div>
                <div>
                    <h2>Why</h2>
                    {f.evidence.length > 0 && (
                        <div class="table-scroll" tabIndex={0} role="region" aria-label={`Evidence of ${f.id}`}>
                            <table class="evidence">
                                <caption class="unseen">Evidence</caption>
                                <thead><tr><th scope="col" class="text">Evidence</th><th scope="col">Value</th><th scope="col" class="text">Bound</th><td class="minor" /></tr></thead>
                                <tbody>{f.evidence.map((e) => <EvidenceRow key={e.name} e={e} />)}</tbody>
                            </table>
                        </div>
                    )}
                    <dl class="facts">
                        {f.arithmetic && <><dt>Arithmetic</dt><dd>{format.clean(f.arithmetic)}</dd></>}
                        {f.price && <><dt>Price</dt><dd>{format.clean(f.price)}</dd></>}
                        {f.thresholds && <><dt>Rule</dt><dd><code>{f.rule}</code>: {format.clean(f.thresholds)}</dd></>}
                        <dt>In the window</dt><dd>{format.money(f.window_cost === null ? null : Number(f.window_cost), currency)}, {format.money(f.month_cost === null ? null : Number(f.month_cost), currency)} a month</dd>
                    </dl>
                </div>
            </div>
            {explain.failure ? <p class="quiet">Everything that it rests on could not be shown: {explain.failure.message}</p>
                : explain.value && <details class="notes"><summary>Everything that it rests on</summary><Explanation text={explain.value} of={f.id} /></details>}
            {f.exempt
                ? <p class="quiet">Accepted: {format.clean(typeof f.exempt === "string" ? f.exempt : JSON.stringify(f.exempt))}</p>
                : <details class="notes"><summary>This is fine as it is</summary><p>Keep it out of the list, in the command line or under <code>options: ignore:</code> of the configuration:</p>
                    <Copy text={`--ignore ${shellWord(f.id)},until=${until},reason=…`} what="the exemption" /></details>}
        </div>
    );
}

function Item({ f, currency, open, rank, places }: { f: Finding; currency: string; open: boolean; rank: number; places: number }) {
    const page = usePage();
    const place = useRef<HTMLLIElement>(null);
    useEffect(() => {
        if (open) place.current?.scrollIntoView({ block: "nearest" });
    }, [open]);
    const to = address({ ...page.route, view: "findings", path: open ? [] : [f.id] });
    const saving = Number(f.month_saving ?? 0);
    return (
        <li ref={place} class={open ? "finding open" : "finding"}>
            <a class="finding-head" href={to} aria-expanded={open} role="button" onKeyDown={(e) => e.key === " " && (e.preventDefault(), (location.hash = to))}>
                <span class="rank" aria-hidden="true">{rank}</span>
                {saving > 0 || !(Number(f.month_cost) > 0)
                    ? <span class="saving">{saving > 0 ? format.money(saving, currency, places) : format.UNKNOWN}<small> a month</small></span>
                    : <span class="saving costs" title="what it costs; no saving is counted"><small>costs</small> {format.money(Number(f.month_cost), currency, places)}<small> a month</small></span>}
                <span class="finding-words"><span class="finding-title">{format.clean(f.title)}</span><span class="quiet"><bdi>{format.clean(f.subject)}</bdi></span></span>
                <span class="owner minor"><bdi>{format.clean(f.owner)}</bdi></span>
                <span class={`confidence minor ${f.confidence}`}>{f.confidence}</span>
            </a>
            {open && <Body f={f} currency={currency} />}
        </li>
    );
}

/** Actions, and the scan that some of them rest on: two views under one word of the navigation. */
export function FindingTabs() {
    const { route } = usePage();
    return (
        <nav class="tabs" aria-label="Findings">
            {[["findings", "What to do"], ["idle", "Idle scan"]].map(([view, words]) =>
                <a key={view} href={link(route, { view })} aria-current={route.view === view ? "page" : undefined}>{words}</a>)}
        </nav>
    );
}

export function FindingsView() {
    const page = usePage();
    const q = question(page, [], []);
    const answer = useAnswer(keyOf(q, "findings"), () => page.source.findings(q));
    const { owner = "", rule = "" } = page.route.more;
    const openId = page.route.path[0];
    const choose = (key: string) => (e: { currentTarget: HTMLSelectElement }) =>
        page.go({ more: { ...page.route.more, [key]: e.currentTarget.value } });
    return (
        <>
            <h1>Findings</h1>
            <FindingTabs />
            <Await answer={answer} what="findings">
                {(found) => {
                    const { currency } = found;
                    const fits = (f: Finding) => (!owner || f.owner === owner) && (!rule || f.rule === rule);
                    const open = found.findings.filter((f) => !f.exempt && fits(f));
                    const exempt = found.findings.filter((f) => f.exempt && fits(f));
                    const saved = open.reduce((s, f) => s + Number(f.month_saving ?? 0), 0);
                    const places = format.moneyPlaces(Math.max(0, ...found.findings.map((f) => Number(f.month_saving ?? 0))));
                    const owners = [...new Set(found.findings.map((f) => f.owner))].sort();
                    const rules = [...new Map(found.findings.map((f) => [f.rule, f.title]))];
                    return (
                        <>
                            {saved > 0 && <p class="lead"><b>{format.money(saved, currency)}</b> a month can be saved in {format.plural(open.filter((f) => Number(f.month_saving ?? 0) > 0).length, "action")}; each dollar is counted once. A month has {found.month_hours} hours, at the pace of this window.</p>}
                            <div class="controls">
                                <label>Owner <select aria-label="Owner" value={owner} onChange={choose("owner")}><option value="">all</option>{owners.map((o) => <option key={o} value={o}>{format.clean(o)}</option>)}</select></label>
                                <label>Rule <select aria-label="Rule" value={rule} onChange={choose("rule")}><option value="">all</option>{rules.map(([id, title]) => <option key={id} value={id}>{format.clean(title)}</option>)}</select></label>
                                <button type="button" class="plain" onClick={() => download("findings.csv", csv(
                                    ["id", "rule", "title", "subject", "owner", "user", "month_saving", "month_cost", "window_cost", "currency", "confidence", "since", "what", "action", "command"],
                                    open.map((f) => [f.id, f.rule, f.title, f.subject, f.owner, f.user ?? "", f.month_saving, f.month_cost, f.window_cost, currency, f.confidence, f.since, f.what, f.action, f.command])))}
                                    aria-label="Save findings as CSV">CSV</button>
                            </div>
                            {open.length === 0
                                ? <div class="state empty"><p><b>{found.findings.length ? "No finding fits these filters." : "Nothing was found."}</b></p>
                                    {found.findings.length === 0 && <p class="quiet">What was not observed counts as in use: <a href={link(page.route, { view: "trust" })}>trust</a> says how much that is.</p>}</div>
                                : <ol class="findings">{open.map((f, i) => <Item key={f.id} f={f} currency={currency} open={f.id === openId} rank={i + 1} places={places} />)}</ol>}
                            {exempt.length > 0 && <section><h2>Accepted</h2><ol class="findings">{exempt.map((f, i) => <Item key={f.id} f={f} currency={currency} open={f.id === openId} rank={i + 1} places={places} />)}</ol></section>}
                            {found.refused?.length > 0 && (
                                <details class="notes"><summary>{format.plural(found.refused.length, "subject")} looked at and left alone</summary>
                                    <ul>{found.refused.map((r, i) => <li key={i}><b><bdi>{format.clean(r.subject)}</bdi></b> ({r.rule}): {format.clean(r.reason)}</li>)}</ul></details>
                            )}
                        </>
                    );
                }}
            </Await>
        </>
    );
}
