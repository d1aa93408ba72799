// The overview in a real browser, first seen: first_view.mjs BINARY DB [RUNS]. Prints a line of JSON for each window.
//
// cold: the first visitor of a service that has just begun to answer; warm: the next one, also with an empty cache.
// figures: from the start of the navigation until the figures (the cost, its split and table) are on the screen, as the browser
// itself tells it (Element Timing), and the page waits for a click; whole: until all that the view has is painted, the days, the
// teams and what could be saved too, and a frame more; cpu: of the page's main thread until the figures are painted, whole_cpu:
// until all is. The page itself says when: whoever looks into a page from outside keeps its thread busy.

import { Lab } from "../tests/web/lab.mjs";

const [binary, db, runs = "5"] = process.argv.slice(2);
const room = new Lab(binary);

/** Runs in the page, from its beginning. */
function watch() {
    const idle = (done) => requestAnimationFrame(() => requestAnimationFrame(() => setTimeout(() => done(performance.now()))));
    const seen = (window.seen = {});
    const told = () => {
        if (!seen.waits || !seen.painted || seen.figures) return;
        seen.figures = Math.max(seen.waits, seen.painted);
        look();
    };
    const begin = (values) => {
        seen.begun = true;
        values.forEach((value) => value.setAttribute("elementtiming", "figures"));
        idle(() => performance.mark("gputally-figures"));
        requestAnimationFrame(() => setTimeout(() => ((seen.waits = performance.now()), told()))); // the first task after the frame
    };
    const look = () => {
        const values = document.querySelectorAll(".figures .value");
        if (!seen.begun && values.length && document.querySelector(".where .split")) begin(values);
        const all = document.querySelector(".days svg") && document.querySelector('[aria-label="Cost by team"] tbody a') && document.querySelector(".top-findings");
        if (!seen.all && seen.figures && all && /\d/.test(values[3]?.textContent ?? ""))
            (seen.all = true, idle((at) => (performance.mark("gputally-whole"), (seen.whole = at), console.info("gputally-whole"))));
    };
    new PerformanceObserver((list) => {
        seen.painted = Math.max(...list.getEntries().map((shown) => shown.renderTime));
        told();
    }).observe({ type: "element", buffered: true });
    new MutationObserver(look).observe(document, { childList: true, subtree: true, characterData: true });
}

/** A visit by a browser with nothing kept; traced, for the CPU: a trace itself takes some of the time by the clock. */
async function visit(url, traced = false) {
    const page = await room.page();
    await page.addInitScript(watch);
    if (traced) await room.browser.startTracing(page, { categories: ["toplevel", "blink.user_timing", "devtools.timeline"] });
    const whole = page.waitForEvent("console", { predicate: (said) => said.text() === "gputally-whole", timeout: 60_000 });
    await page.goto(url, { waitUntil: "commit" });
    await whole;
    const events = traced ? JSON.parse(await room.browser.stopTracing()).traceEvents : [];
    await page.locator('[aria-label="Cost by team"] tbody a').first().click({ trial: true }); // it can be clicked
    const came = await page.evaluate(() => ({
        ...window.seen,
        requests: performance.getEntriesByType("resource").map((e) => [e.name.replace(/.*?\/api\/v1/, ""), Math.round(e.startTime), Math.round(e.responseEnd)]),
    }));
    if (page.wrong.length) throw new Error(page.wrong.join("; "));
    await page.context().close();
    return traced ? { cpu: busy(events, "gputally-figures"), whole_cpu: busy(events, "gputally-whole") } : came;
}

/** CPU of the page's main thread, ms, from its first piece of HTML until a mark: what hangs least on who else uses the machine. */
function busy(events, mark) {
    const end = events.find((e) => e.name === mark && e.cat.includes("user_timing"));
    const first = events.filter((e) => e.name === "ParseHTML" && e.pid === end?.pid && e.args.beginData?.url.startsWith("http")).sort((a, b) => a.ts - b.ts)[0];
    if (!first) return NaN; // the trace lacks something
    const tasks = events.filter((e) => e.ph === "X" && e.pid === end.pid && e.tid === end.tid && e.tdur > 0 && e.ts >= first.ts && e.ts < end.ts)
        .sort((a, b) => a.ts - b.ts || b.dur - a.dur);
    let sum = 0, until = 0;
    for (const task of tasks) // the outermost of those that lie in each other
        if (task.ts >= until) {
            sum += task.tdur / 1000;
            until = task.ts + task.dur;
        }
    return sum;
}

/** A document of one word and a script that writes one more. */
async function empty() {
    const page = await room.page();
    const url = "http://127.0.0.1:1/";
    await page.route(url, (route) => route.fulfill({ contentType: "text/html", body: "<!doctype html><p>one</p><script>document.body.append('two')</script>" }));
    await page.addInitScript(() => addEventListener("DOMContentLoaded", () =>
        requestAnimationFrame(() => requestAnimationFrame(() => setTimeout(() => (window.done = performance.now()))))));
    await page.goto(url);
    const at = await page.waitForFunction(() => window.done);
    const ms = await at.jsonValue();
    await page.context().close();
    return ms;
}

const median = (values) => Math.round(values.sort((a, b) => a - b)[values.length >> 1]);

try {
    await room.browse();
    // The same browser with next to nothing: what a page costs before it is ours.
    const bare = [];
    for (let run = 0; run <= Number(runs); run++) bare.push(await empty());
    console.log(JSON.stringify({ empty_ms: median(bare.slice(1)) }));
    for (const window of ["", "30d"]) { // what the page opens with (7 d), and a month
        const came = { cold: [], warm: [], traced: [] };
        for (let run = 0; run < Number(runs); run++) {
            const url = (await room.serve("--db", db)) + `#/overview${window && "?window=" + window}`;
            came.cold.push(await visit(url));
            came.warm.push(await visit(url));
            came.traced.push(await visit(url, true));
            await room.stop();
        }
        const figures = { window: window || "7d" };
        for (const when of ["cold", "warm"])
            for (const what of ["figures", "whole"]) figures[`${when}_${what}_ms`] = median(came[when].map((v) => v[what]));
        for (const what of ["cpu", "whole_cpu"]) figures[`${what}_ms`] = median(came.traced.map((v) => v[what]).filter((v) => v > 0));
        console.log(JSON.stringify(figures));
        if (process.env.GPUTALLY_BENCH_REQUESTS) console.log(came.cold.at(-1).requests.join("\n"));
    }
} finally {
    await room.close();
}
