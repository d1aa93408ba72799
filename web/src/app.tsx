// The frame of every view: name, views, window, zone and theme; and the address that all of it is in.

import { render } from "preact";
import { useEffect, useMemo, useState } from "preact/hooks";
import { Failure, keepToken, keptToken, Meta, openSource, useAnswer } from "./data";
import * as format from "./format";
import { format as address, link, parse, Route } from "./route";
import { keyOf, Page, PageContext, question, usePage, zoneOf } from "./ui/context";
import { Patterns } from "./ui/patterns";
import { Failed, Loading } from "./ui/states";
import { Detail } from "./views/detail";
import { Explore } from "./views/explore";
import { FindingsView } from "./views/findings";
import { FleetView } from "./views/fleet";
import { IdleView } from "./views/idle";
import { Overview } from "./views/overview";
import { Trust } from "./views/trust";
import "./style.css";

const source = openSource();

const VIEWS: { id: string; title: string; show: () => preact.JSX.Element }[] = [
    { id: "overview", title: "Overview", show: Overview },
    { id: "explore", title: "Explore", show: Explore },
    { id: "fleet", title: "Fleet", show: FleetView },
    { id: "findings", title: "Findings", show: FindingsView },
    { id: "trust", title: "Trust", show: Trust },
];
/** Views under another's word: the idle scan is one of the findings. */
const UNDER: Record<string, { of: string; title: string; show: () => preact.JSX.Element }> = { idle: { of: "findings", title: "Idle scan", show: IdleView } };
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
    const Show = view?.show ?? (PAGES.includes(route.view) ? Detail : null);
    const zone = zoneOf(page);
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
                    <span class="picker"><select aria-label="Time zone" value={zone} onChange={(e) => go({ tz: e.currentTarget.value === "UTC" ? "" : e.currentTarget.value })}>
                            <option value="UTC">UTC</option>
                            {source.file ? null : <option value="local">{format.zoneName("local")} (here)</option>}
                            {source.file ? <option value="local">Times here ({format.zoneName("local")})</option> : null}
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
                {Show ? <Show key={route.view + "/" + route.path.join("/")} /> : (
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

function App() {
    const [route, setRoute] = useState(() => parse(location.hash));
    const [theme, setTheme] = useState<Theme>(keptTheme);
    const [systemDark, setSystemDark] = useState(() => matchMedia("(prefers-color-scheme: dark)").matches);
    const answer = useAnswer("meta", () => source.meta());
    useEffect(() => {
        const moved = () => {
            const next = parse(location.hash);
            setRoute((before) => {
                if (before.view !== next.view || before.path.join("/") !== next.path.join("/")) scrollTo(0, 0);
                return next;
            });
        };
        const media = matchMedia("(prefers-color-scheme: dark)");
        const shaded = () => setSystemDark(media.matches);
        addEventListener("hashchange", moved);
        media.addEventListener("change", shaded);
        return () => {
            removeEventListener("hashchange", moved);
            media.removeEventListener("change", shaded);
        };
    }, []);
    const shade = theme === "auto" ? (systemDark ? "dark" : "light") : theme;
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

/** What every view asks for first does not wait for the answer before it. */
function ahead(route: Route): void {
    const ask = (by: string[], filters: string[]) =>
        source.report({ window: route.window, tz: format.zoneName(route.tz || "UTC"), by, filters }).catch(() => undefined);
    if (source.file) return;
    source.meta().catch(() => undefined);
    ask(["team"], []);
    if (route.view === "overview") ask(["day"], route.filters);
}

ahead(parse(location.hash));
render(<App />, document.getElementById("app")!);
performance.mark("gputally-started");
