// The frame of every view: name, views, window, zone and theme; and the address that all of it is in.

import { render } from "preact";
import { useEffect, useMemo, useState } from "preact/hooks";
import { Failure, keep, keepToken, keptToken, learn, Meta, openSource, useAnswer } from "./data";
import * as format from "./format";
import { format as address, link, parse, Route } from "./route";
import { keyOf, Page, PageContext, question, usePage, zoneOf } from "./ui/context";
import { whenIdle } from "./ui/drawn";
import { Patterns } from "./ui/patterns";
import { Failed, Loading } from "./ui/states";
import { asked, askedThen, Overview } from "./views/overview";

const source = openSource();

type Others = typeof import("./views/others");
type Show = keyof Others;

async function others(): Promise<Others> {
    try {
        return keep("others", await import("./views/others"));
    } catch {
        throw new Failure("the server did not send the rest of the page", "Is gputally serve still running? The page is whole again when it is reloaded.");
    }
}

const VIEWS: { id: string; title: string; show?: Show }[] = [
    { id: "overview", title: "Overview" },
    { id: "explore", title: "Explore", show: "Explore" },
    { id: "fleet", title: "Fleet", show: "FleetView" },
    { id: "findings", title: "Findings", show: "FindingsView" },
    { id: "trust", title: "Trust", show: "Trust" },
];
/** Views under another's word: the idle scan is one of the findings. */
const UNDER: Record<string, { of: string; title: string; show: Show }> = { idle: { of: "findings", title: "Idle scan", show: "IdleView" } };
const PAGES = ["workload", "node", "gpu", "team"];

const WINDOWS = [
    ["", "Last 7 days"], ["24h", "Last 24 hours"], ["today", "Today"], ["yesterday", "Yesterday"], ["week", "This week"],
    ["lastweek", "Last week"], ["30d", "Last 30 days"], ["month", "This month"], ["lastmonth", "Last month"], ["90d", "Last 90 days"],
];

function WindowPicker() {
    const page = usePage();
    const [own, setOwn] = useState(false);
    const { window } = page.route;
    if (page.source.file) return null;
    const known = WINDOWS.some(([value]) => value === window);
    const submit = (event: Event) => {
        event.preventDefault();
        const form = new FormData(event.target as HTMLFormElement);
        const from = String(form.get("from")), to = String(form.get("to"));
        if (!from || !to) return;
        const text = (day: string, plus: number) => new Date(Date.parse(day + "T00:00:00Z") + plus).toISOString().replace(".000Z", "Z");
        page.go({ window: `${text(from, 0)},${text(to, 86_400_000)}` });
        setOwn(false);
    };
    return (
        <>
            <span class="picker"><select aria-label="Window" value={known ? window : "own"} onChange={(e) => {
                    const value = e.currentTarget.value;
                    if (value === "own") setOwn(true);
                    else page.go({ window: value });
                }}>
                    {WINDOWS.map(([value, words]) => <option key={value} value={value}>{words}</option>)}
                    <option value="own">{known ? "From … to …" : window.replace(",", " to ").replace(/T00:00:00Z/g, "")}</option>
                </select></span>
            {own && (
                <form class="own-window" onSubmit={submit}>
                    <label>From <input type="date" name="from" required /></label>
                    <label>to <input type="date" name="to" required /></label>
                    <button type="submit">Show</button>
                    <button type="button" class="plain" onClick={() => setOwn(false)}>Cancel</button>
                </form>
            )}
        </>
    );
}

type Theme = "auto" | "light" | "dark";
const THEMES: Theme[] = ["auto", "light", "dark"];

function keptTheme(): Theme {
    try {
        const kept = localStorage.getItem("gputally-theme");
        return THEMES.includes(kept as Theme) ? (kept as Theme) : "auto";
    } catch {
        return "auto"; // storage is closed to files in some browsers
    }
}

/** A view out of the page's other file. */
function Other({ show }: { show: Show }) {
    const answer = useAnswer("others", others);
    if (answer.failure) return <Failed failure={answer.failure} what="The view" />;
    if (!answer.value) return <Loading what="the view" />;
    const View = answer.value[show];
    return <View />;
}

/** What the window is and how much of it is known: the command line's first line. */
function Subject() {
    const page = usePage();
    const q = question(page, ["team"], []);
    const answer = useAnswer(keyOf(q), () => page.source.report(q));
    const report = answer.value;
    if (!report) return <p class="subject" aria-hidden="true"> </p>;
    const name = page.meta.clusters.filter(Boolean).join(", ") || page.meta.title || "";
    return (
        <p class="subject">
            {name && <><b><bdi>{format.clean(name)}</bdi></b> · </>}
            <span class="nowrap">{format.span(report.window.from, report.window.to, zoneOf(page))}</span>
            {" "}({format.zoneName(zoneOf(page))}) · {format.plural(report.fleet.gpus, "GPU")} on {format.plural(report.fleet.nodes, "node")} · {format.percent(report.totals.coverage, 1)} observed
            {report.filters.length > 0 && <><br /><b>Only what {report.filters.map(format.clean).join(" and ")} lets through.</b> A finding is here when it is about such rows, and has the money of all it is about; the idle scan judges a node by all its GPUs; what the sources sent, in Trust, is of everything.</>}
        </p>
    );
}

function Shell({ meta, route, go, theme, setTheme, shade }: {
    meta: Meta; route: Route; go: Page["go"]; theme: Theme; setTheme: (t: Theme) => void; shade: string;
}) {
    const page = useMemo<Page>(() => ({ source, route, meta, go, theme: shade }), [route, meta, shade]);
    const view = UNDER[route.view] ?? VIEWS.find((v) => v.id === route.view);
    const word = UNDER[route.view]?.of ?? route.view;
    const show = view?.show ?? (PAGES.includes(route.view) ? "Detail" : null);
    const zone = zoneOf(page);
    const [looked, look] = useState(false);
    // What the zone here is called takes a browser longer than the first view: it says so when somebody looks.
    const here = looked || zone === "local" ? format.zoneName("local") : "Local time";
    useEffect(() => {
        const where = view?.title ?? [route.view, ...route.path.slice(-1)].join(" ");
        document.title = `${format.clean(where)} · gputally`;
    }, [route]);
    return (
        <PageContext.Provider value={page}>
            <Patterns />
            <a class="skip" href="#main" onClick={(e) => (e.preventDefault(), document.getElementById("main")?.focus())}>Skip to the figures</a>
            <header><div class="top">
                <a class="brand" href={link(route, { view: "overview" })} aria-label="gputally, overview">
                    <svg width="20" height="20" viewBox="0 0 20 20" aria-hidden="true"><path d="M3 4v12M7 4v12M11 4v12M15 4v12" class="tally" /><path d="M1 14 18 6" class="tally-stroke" /></svg>
                    gputally
                </a>
                <nav aria-label="Views">
                    {VIEWS.map((v) => (
                        <a key={v.id} href={link(route, { view: v.id })} aria-current={v.id === route.view ? "page" : v.id === word ? "true" : undefined}>{v.title}</a>
                    ))}
                </nav>
                <div class="settings">
                    <WindowPicker />
                    <span class="picker"><select aria-label="Time zone" value={zone} onFocus={() => look(true)} onChange={(e) => go({ tz: e.currentTarget.value === "UTC" ? "" : e.currentTarget.value })}>
                            <option value="UTC">UTC</option>
                            {source.file ? null : <option value="local">{here} (here)</option>}
                            {source.file ? <option value="local">Times here ({here})</option> : null}
                            {zone !== "UTC" && zone !== "local" && <option value={zone}>{zone}</option>}
                        </select></span>
                    <span class="picker"><select aria-label="Theme" value={theme} onChange={(e) => setTheme(e.currentTarget.value as Theme)}>
                            <option value="auto">As the system</option>
                            <option value="light">Light</option>
                            <option value="dark">Dark</option>
                        </select></span>
                </div>
            </div>
            <Subject /></header>
            <main id="main" tabIndex={-1}>
                {route.view === "overview" ? <Overview key={route.path.join("/")} /> : show ? <Other key={route.view + "/" + route.path.join("/")} show={show} /> : (
                    <div class="state empty">
                        <h1>There is no view “{format.clean(route.view)}”.</h1>
                        <p><a href={link(route, { view: "overview" })}>Overview</a></p>
                    </div>
                )}
            </main>
            <footer class="bottom">
                gputally {meta.version} · {source.file ? <>written {format.moment(Date.parse(meta.now), zone)}</> : <a href="metrics">metrics</a>} · money in {meta.currency} · times in {format.zoneName(zone)}
            </footer>
        </PageContext.Provider>
    );
}

function Login({ wrong }: { wrong: boolean }) {
    const submit = (event: Event) => {
        event.preventDefault();
        keepToken(String(new FormData(event.target as HTMLFormElement).get("token")).trim());
        location.reload();
    };
    return (
        <main class="state">
            <h1>gputally</h1>
            <p>{wrong ? "The server does not know this token." : "The server wants a token to show the ledger."}</p>
            <form class="own-window login" onSubmit={submit}>
                <label>Token <input name="token" type="password" autocomplete="off" required /></label>
                <button type="submit">Show</button>
            </form>
            <p class="quiet">It is kept until this tab is closed.</p>
        </main>
    );
}

const isDark = (theme: Theme, system: boolean) => (theme === "auto" ? system : theme === "dark");
const systemIsDark = matchMedia("(prefers-color-scheme: dark)");

function App() {
    const [route, setRoute] = useState(() => parse(location.hash));
    const [theme, setTheme] = useState<Theme>(keptTheme);
    const [systemDark, setSystemDark] = useState(systemIsDark.matches);
    const answer = useAnswer("meta", () => source.meta());
    useEffect(() => {
        const moved = () => {
            const next = parse(location.hash);
            setRoute((before) => {
                if (before.view !== next.view || before.path.join("/") !== next.path.join("/")) scrollTo(0, 0);
                return next;
            });
        };
        const shaded = () => setSystemDark(systemIsDark.matches);
        addEventListener("hashchange", moved);
        systemIsDark.addEventListener("change", shaded);
        return () => {
            removeEventListener("hashchange", moved);
            systemIsDark.removeEventListener("change", shaded);
        };
    }, []);
    const shade = isDark(theme, systemDark) ? "dark" : "light";
    document.documentElement.dataset.theme = shade;
    useEffect(() => {
        try {
            localStorage.setItem("gputally-theme", theme);
        } catch { /* then it lasts as long as the page */ }
    }, [theme]);
    const go: Page["go"] = (to, replace) => {
        const next = address({ ...parse(location.hash), ...to });
        if (replace) {
            history.replaceState(null, "", next);
            setRoute(parse(next));
        } else location.hash = next;
    };
    if (answer.failure?.status === 401) return <Login wrong={keptToken() !== null} />;
    if (answer.failure) return <main><Failed failure={answer.failure as Failure} what="The page" /></main>;
    if (!answer.value) return <main><Loading what="the ledger" /></main>;
    return <Shell meta={answer.value} route={route} go={go} theme={theme} setTheme={setTheme} shade={shade} />;
}

const soon = (ms: number) => new Promise((done) => setTimeout(done, ms));

/** What the first view asks does not wait until something is drawn; and what is drawn first waits a moment for it, so that
 *  it is drawn once. */
async function begin(route: Route): Promise<void> {
    document.documentElement.dataset.theme = isDark(keptTheme(), systemIsDark.matches) ? "dark" : "light";
    const page = { source, route };
    const first: Promise<unknown>[] = [learn("meta", () => source.meta())];
    const report = (filters: string[]) => {
        const q = question(page, ["team"], filters);
        const answer = learn(keyOf(q), () => source.report(q));
        first.push(answer);
        return answer;
    };
    let last = report([]), before: Promise<unknown> = last;
    if (route.view === "overview") {
        if (route.filters.length) last = report(route.filters);
        before = asked(page, last);
    } else first.push(learn("others", others));
    await Promise.race([Promise.all(first), soon(200)]);
    await Promise.race([before, soon(0)]); // where the page came with it
    render(<App />, document.getElementById("app")!);
    performance.mark("gputally-started");
    if (route.view === "overview") requestAnimationFrame(() => askedThen(page));
    setTimeout(() => whenIdle(() => void learn("others", others)), 1000); // there when the next view is clicked
}

void begin(parse(location.hash));
