// Where the figures come from: the server's API, or the data block of the file that this page is. Both
// answer the same questions; the views do not know which it is, except for what only a server can do.

import { useLayoutEffect, useRef, useState } from "preact/hooks";
import { ask, Cube, cubeFor } from "./cube";
import { readReport, Report } from "./model";
import { picture, Series, seriesOf, stretches } from "./picture";

export interface Question {
    window: string;
    tz: string;
    by: string[];
    filters: string[];
    sort?: string;
    limit?: number;
}

export interface Meta {
    version: string;
    currency: string;
    clusters: string[];
    extent: { from: string; to: string } | null;
    keys: string[];
    figures: { name: string; unit: string; heading: string; meaning: string }[];
    now: string;
    title?: string;
}

export interface Evidence { name: string; value: string; threshold: string | null }
export interface Finding {
    id: string; rule: string; title: string; subject: string; who: string; owner: string; user: string | null; what: string;
    since: string | null; window_cost: string | null; month_cost: string | null; month_saving: string | null;
    joined: string | null; exempt: unknown; arithmetic: string | null; price: string | null;
    depends_on: string | null; confidence: string; reasons: string | null; risk: string | null;
    action: string | null; command: string | null; patch?: string | null; thresholds: string | null; evidence: Evidence[];
}
export interface Findings {
    from: string; to: string; currency: string; month_saving: string; month_hours: number;
    findings_total: number; findings: Finding[];
    refused: { rule: string; subject: string; owner: string; reason: string }[];
}
export interface Check {
    id: string; severity: "error" | "warning" | "info"; status: "found" | "fine" | "unchecked"; title: string;
    reason?: string; gpu_hours?: number; cost?: string; count?: number; unit?: string;
    examples?: { name: string; gpu_hours?: number; count?: number }[]; more?: number;
    effect?: string; mend?: string; doc: string;
}
export interface Doctor { counts: Record<string, number>; checks: Check[]; currency: string }

export interface IdleSince { from: string; hours: number; observed_hours: number; cost: string | null; finding: boolean }
interface Idles { verdict: string; unchecked: string[]; days: string; idle_since: IdleSince | null; longest_idle_hours: number | null; last_3h: string }
export interface IdleGpu extends Idles {
    gpu: string; model: string | null; util: (number | null)[]; memory: (number | null)[]; power: (number | null)[]; power_below: number; held: number | null;
}
export interface IdleNode extends Idles {
    cluster: string | null; node: string; instance_type: string | null; gpus: number; cpu_bound: boolean;
    cpu_peak: (number | null)[]; network_bytes: (number | null)[]; devices: IdleGpu[];
}
export interface IdleDays {
    from: string; to: string; tz: string; currency: string; days: string[]; nodes: IdleNode[];
    thresholds: Record<string, number> & { power: any };
    idle_floor: { model: string; percent: number; samples: number }[];
}

export interface FleetGpu {
    device: string; model: string | null; hours: string; use: string;
    runs?: number[]; // triples: first hour, hours, index of holders
    price_hour?: string | null;
}
export interface FleetNode {
    cluster: string | null; node: string; instance_type: string | null; pool: string | null; gpus: FleetGpu[];
}
export interface Holder { namespace: string | null; pod: string | null; workload: string | null; team: string | null }
export interface Fleet { hours: string[]; nodes: FleetNode[]; holders?: Holder[] }

export interface CellHolder extends Holder {
    cost: string; utilisation: number | null; memory_max: number | null; power_avg: number | null;
}

/** What a page is about: a node, a GPU, a workload of a namespace, a team. */
export interface Subject { kind: "node" | "gpu" | "workload" | "team"; name: string; namespace?: string; cluster?: string }
export interface Held extends Holder { from: string; to: string; cost: string | null; device?: string }

/** An argument as a shell takes it: names of strangers may have anything in them. */
export const shellWord = (text: string) => (/^[\w@%+=:,./-]+$/.test(text) ? text : "'" + text.replace(/'/g, "'\\''") + "'");

export class Failure extends Error {
    constructor(message: string, readonly hint = "", readonly status = 0) {
        super(message);
    }
}

export interface Source {
    readonly file: boolean; // a file: one window, no server to ask
    meta(): Promise<Meta>;
    report(q: Question): Promise<Report>;
    previous(q: Question, of: Report): Promise<Report | null>;
    findings(q: Question): Promise<Findings | null>;
    doctor(q: Question): Promise<Doctor | null>;
    idle(q: Question): Promise<IdleDays | null>;
    fleet(q: Question): Promise<Fleet | null>;
    cell(device: string, hour: string): Promise<CellHolder[] | null>;
    explain(q: Question, of: string): Promise<string | null>;
    /** What says the rest of it, where there is no server to ask. */
    command(of: string): string | null;
    series(q: Question, of: Subject): Promise<Series | null>;
    held(q: Question, of: Subject): Promise<Held[] | null>;
    /** Can this set of keys be asked for? A file has only some. */
    has(by: string[], filters: string[]): boolean;
}

// ---- a server --------------------------------------------------------------------------------------

const TOKEN = "gputally-token";

/** The token lives as long as the browser's tab, and goes into no address. */
export function keptToken(): string | null {
    try {
        return sessionStorage.getItem(TOKEN);
    } catch {
        return null;
    }
}
export const keepToken = (token: string) => sessionStorage.setItem(TOKEN, token);

/** Of the server's series those that are not in the split of the cost already. */
const SHOWN_SERIES = [
    ["utilisation", "use of held time", "ratio"], ["sm_activity", "SM activity", "ratio"], ["tensor_activity", "tensor activity", "ratio"], ["memory_avg_bytes", "memory, mean", "bytes"], ["memory_max_bytes", "memory, most", "bytes"],
    ["power_avg_w", "power, mean of GPUs", "W"],
] as const;

/** What the page came with, by what would be asked for it. Not for a token: it came to who has none. */
function given(): [string, Promise<any>][] {
    const text = document.getElementById("gputally-first")?.textContent ?? "";
    if (text[0] !== "{" || keptToken()) return [];
    return Object.entries(JSON.parse(text)).map(([asked, body]) => {
        const [name, query] = asked.split("?");
        return [name + (query ? "?" + new URLSearchParams(query) : ""), Promise.resolve(body)];
    });
}

class Server implements Source {
    readonly file = false;
    private kept = new Map<string, Promise<any>>(given());

    private async fetched(path: string): Promise<any> {
        let response: Response;
        try {
            const token = keptToken();
            const headers: Record<string, string> = { Accept: "application/json" };
            if (token) headers.Authorization = `Bearer ${token}`;
            response = await fetch("api/v1/" + path, { headers, credentials: "same-origin" });
        } catch {
            throw new Failure("the server does not answer", "Is gputally serve still running? The page asks again when it is reloaded.");
        }
        const text = await response.text();
        let body: any = null;
        try {
            body = JSON.parse(text);
        } catch {
            throw new Failure(`the server answered ${response.status} with something that is not JSON`, "A proxy in between may have answered.", response.status);
        }
        if (!response.ok)
            throw new Failure(body?.error?.message ?? `the server answered ${response.status}`, body?.error?.hint ?? "", response.status);
        return body;
    }

    /** Answers are kept for the life of the page's window: going back shows at once what was there. */
    private get(path: string): Promise<any> {
        let found = this.kept.get(path);
        if (!found) {
            found = this.fetched(path);
            found.catch(() => this.kept.delete(path));
            this.kept.set(path, found);
            if (this.kept.size > 64) this.kept.delete(this.kept.keys().next().value!);
        }
        return found;
    }

    private path(name: string, q: Question, more: Record<string, string> = {}): string {
        const query = new URLSearchParams();
        if (q.window) query.set("window", q.window);
        if (q.tz && q.tz !== "UTC") query.set("tz", q.tz);
        if (q.by.length) query.set("by", q.by.join(","));
        q.filters.forEach((f) => query.append("filter", f));
        if (q.sort) query.set("sort", q.sort);
        if (q.limit) query.set("limit", String(q.limit));
        for (const key in more) query.set(key, more[key]);
        const text = query.toString();
        return name + (text ? "?" + text : "");
    }

    private window(q: Question): Question {
        return { window: q.window, tz: q.tz, by: [], filters: [] };
    }

    meta = () => this.get("meta");
    report = async (q: Question) => readReport(await this.get(this.path("report", q)));
    async previous(q: Question, of: Report): Promise<Report | null> {
        const from = Date.parse(of.window.from), to = Date.parse(of.window.to);
        const meta = await this.meta();
        const begin = from - (to - from);
        if (!meta.extent || Date.parse(meta.extent.from) > begin) return null;
        const text = (at: number) => new Date(at).toISOString().replace(".000Z", "Z");
        return this.report({ ...q, window: `${text(begin)},${text(from)}` });
    }
    findings = (q: Question) => this.get(this.path("findings", this.window(q)));
    doctor = (q: Question) => this.get(this.path("doctor", this.window(q)));
    idle = (q: Question) => this.get(this.path("idle/days", this.window(q)));
    fleet = (q: Question) => this.get(this.path("fleet", this.window(q)));
    cell = (device: string, hour: string) => this.get("fleet/cell?" + new URLSearchParams({ device, hour }));
    async explain(q: Question, of: string) {
        const found = await this.get(this.path("explain", this.window(q), { of }));
        return found.text as string;
    }
    command = () => null;
    private subject(of: Subject): Record<string, string> {
        const query: Record<string, string> = of.kind === "gpu" ? { device: of.name } : { [of.kind]: of.name };
        if (of.namespace) query.namespace = of.namespace;
        if (of.cluster) query.cluster = of.cluster;
        return query;
    }
    async series(q: Question, of: Subject): Promise<Series | null> {
        const raw = await this.get(this.path("series", this.window(q), { ...this.subject(of), step: "hour" }));
        const lines = SHOWN_SERIES.flatMap(([field, name, unit]) => {
            const found = raw.series.find((s: any) => s.name === field);
            return found && (field === "utilisation" || found.v.some((v: number | null) => v !== null)) ? [{ name, unit, v: found.v }] : [];
        });
        return { t: raw.t.map((at: string) => Date.parse(at)), lines };
    }
    async held(q: Question, of: Subject): Promise<Held[] | null> {
        if (of.kind === "team" || (of.kind === "workload" && !of.namespace)) return null; // the server wants one workload
        const raw = await this.get(this.path(of.kind, this.window(q), this.subject(of)));
        return raw.holders ?? null;
    }
    has = () => true;
}

// ---- a file ----------------------------------------------------------------------------------------

interface Block {
    meta: Meta;
    title: string | null;
    report: Record<string, any>;
    previous: Record<string, any> | null;
    cubes: Cube[];
    findings: Findings | null;
    doctor: Doctor | null;
    explanations: Record<string, string> | null;
    idle: IdleDays | null;
    fleet: Fleet | null;
}

class File implements Source {
    readonly file = true;
    private base: Report;

    constructor(private block: Block) {
        this.base = readReport(block.report.team);
    }
    meta = async () => ({ ...this.block.meta, title: this.block.title ?? undefined });

    private ask(block: { report: Record<string, any>; cubes: Cube[] }, base: Report, q: Question): Report {
        const whole = q.filters.length ? undefined : block.report[q.by.join(",")];
        if (whole) return readReport(whole);
        const cube = cubeFor(block.cubes, q.by, q.filters);
        if (!cube)
            throw new Failure("this file does not hold these keys together", "gputally report with --by and --filter answers it, and so does the dashboard of gputally serve.");
        return ask(cube, base, q.by, q.filters);
    }
    report = async (q: Question) => this.ask(this.block, this.base, q);
    async previous(q: Question): Promise<Report | null> {
        const raw = q.filters.length ? null : this.block.previous?.[q.by.join(",")];
        return raw ? readReport(raw) : null;
    }
    findings = async () => this.block.findings;
    doctor = async () => this.block.doctor;
    idle = async () => this.block.idle;
    fleet = async () => this.block.fleet;
    cell = async () => null;
    explain = async (_: Question, of: string) => this.block.explanations?.[of] ?? null;
    command = (of: string) => `gputally explain ${shellWord(of)} --window ${this.base.window.from},${this.base.window.to} --db LEDGER.db`;
    private rows(of: Subject) {
        const fleet = this.block.fleet!;
        return picture(fleet, (node, gpu) =>
            of.kind === "node" ? node.node === of.name && (!of.cluster || node.cluster === of.cluster) : of.kind !== "gpu" || gpu.device === of.name);
    }
    private holds(of: Subject) {
        return of.kind === "workload" ? (h: Holder) => h.workload === of.name && (!of.namespace || h.namespace === of.namespace)
            : of.kind === "team" ? (h: Holder) => h.team === of.name : undefined;
    }
    async series(_: Question, of: Subject): Promise<Series | null> {
        return this.block.fleet ? seriesOf(this.rows(of), this.holds(of)) : null;
    }
    async held(_: Question, of: Subject): Promise<Held[] | null> {
        if (!this.block.fleet || of.kind === "team") return null;
        const test = this.holds(of);
        const text = (at: number) => new Date(at).toISOString();
        return stretches(this.rows(of)).filter((s) => !test || test(s.holder))
            .map((s) => ({ ...s.holder, from: text(s.from), to: text(s.to), cost: null, device: s.row.gpu.device }));
    }
    has(by: string[], filters: string[]) {
        return (!filters.length && by.join(",") in this.block.report) || !!cubeFor(this.block.cubes, by, filters);
    }
}

export function openSource(): Source {
    const block = document.getElementById("gputally-data");
    return block ? new File(JSON.parse(block.textContent!)) : new Server();
}

// ---- in a view -------------------------------------------------------------------------------------

export interface Answer<T> {
    value: T | undefined;
    failure: Failure | undefined;
    loading: boolean; // value, where there is one, is of the question before
}

/** How many questions are open stands on the document, for whoever has to know when a page is whole. */
let open = 0;
export function asking(more: 1 | -1): void {
    open += more;
    document.documentElement.dataset.asking = String(open);
}

/** Answers that stand in a view's first frame: what was asked before the page was drawn, and what does not change. */
const known = new Map<string, unknown>();
export function keep<T>(key: string, value: T): T {
    known.set(key, value);
    return value;
}

/** Asks before something shows it. What fails is asked again by whoever does. */
export async function learn<T>(key: string, make: () => Promise<T>): Promise<T | undefined> {
    asking(1);
    try {
        return keep(key, await make());
    } catch {
        return undefined;
    } finally {
        asking(-1);
    }
}
const answerOf = <T>(key: string | null): Answer<T> => ({ value: known.get(key!) as T | undefined, failure: undefined, loading: !known.has(key!) });

/** Asks when `key` changes, and nothing where it is null. The last answer stays on the page, marked as old,
 *  until the next is there: a page that blinks at every click cannot be compared with itself. */
export function useAnswer<T>(key: string | null, make: () => Promise<T>): Answer<T> {
    const [answer, set] = useState(() => answerOf<T>(key));
    const current = useRef<string | null>(null);
    // Before the frame is painted, not after: what is there already is shown in the same frame, and what
    // hangs on an answer is asked a frame earlier.
    useLayoutEffect(() => {
        current.current = key;
        if (key === null) return;
        if (known.has(key)) {
            set((before) => (before.loading || before.value !== known.get(key) ? answerOf<T>(key) : before));
            return;
        }
        asking(1);
        let slow: ReturnType<typeof setTimeout> | undefined = setTimeout(
            () => current.current === key && set((before) => ({ ...before, loading: true })), 120);
        const done = (next: Answer<T>) => {
            asking(-1);
            clearTimeout(slow);
            slow = undefined;
            if (current.current === key) set(next);
        };
        make().then(
            (value) => done({ value, failure: undefined, loading: false }),
            (error) => done({
                value: undefined, loading: false,
                failure: error instanceof Failure ? error : new Failure(String(error?.message ?? error)),
            }),
        );
        return () => clearTimeout(slow);
    }, [key]);
    return answer;
}
