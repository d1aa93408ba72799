// The page in a real browser, on ledgers that the binary made: run.mjs BINARY [--shots FOLDER] [--only WORDS]
//
// Each view is looked at in both its homes: the file that report --output html writes, and the page
// that gputally serve sends. Times are printed and never checked.

import { mkdirSync, readFileSync } from "node:fs";
import { resolve } from "node:path";
import { NAMES, openMetrics, PRICES } from "./hostile.mjs";
import * as lab from "./lab.mjs";
import { PATIENCE_MS, check, open, overflow, said_by, same, settled, test, texts, violations } from "./lab.mjs";

const binary = resolve(process.argv[2] ?? "build/gputally");
const shots = process.argv.includes("--shots") ? process.argv[process.argv.indexOf("--shots") + 1] : null;
if (shots) mkdirSync(shots, { recursive: true });
const END = "2026-11-30T00:00:00Z";

const room = new lab.Lab(binary);
process.on("uncaughtException", async (error) => {
    console.log("FAIL the tests themselves: " + (error?.stack ?? error));
    await room.close();
    console.log(`${lab.passed} passed, ${lab.failed + 1} failed`);
    process.exit(1);
});
let status = 1;
try {
    await all();
    status = lab.failed ? 1 : 0;
} catch (error) {
    console.log("FAIL the tests could not be run: " + (error?.stack ?? error));
    status = 1;
} finally {
    await room.close();
}
console.log(`${lab.passed} passed, ${lab.failed + (status && !lab.failed ? 1 : 0)} failed`);
process.exit(status);

async function all() {
    room.run("demo", "--gpus", "64", "--days", "14", "--end", END, "--db", "demo.db");
    const report = JSON.parse(room.run("report", "--db", "demo.db", "--output", "json"));
    const findings = JSON.parse(room.run("recommend", "--db", "demo.db", "--output", "json"));
    const idle = JSON.parse(room.run("idle", "--db", "demo.db", "--output", "json"));
    const file = room.html("report.html", "--db", "demo.db");
    const filtered = room.html("filtered.html", "--db", "demo.db", "--filter", "team=search");
    const served = await room.serve("--db", "demo.db");
    await room.browse();

    const homes = { file, served };
    for (const [home, url] of Object.entries(homes)) {
        await test(`${home}: the first view says what the command line says`, () => overview(url, report, findings));
        await test(`${home}: every view, light and dark, 360 to 1920 px, without violations`, () => everyView(home, url));
        await test(`${home}: drilling down and back by crumbs`, () => drill(url, report));
        await test(`${home}: filters, sort and keys are in the address and survive a reload and back`, () => addresses(url));
        await test(`${home}: by keyboard alone`, () => keyboard(url));
        await test(`${home}: findings open, filter, and have something to copy`, () => findingsView(url, findings));
        await test(`${home}: the idle scan says what the command says, as a picture and as a table`, () => idleView(url, idle));
        await test(`${home}: the fleet's picture has its cursor, its day and its table`, () => fleet(url));
        await test(`${home}: tables are saved as CSV`, () => csv(url, report));
    }
    await test("file: explanations are in it, and what is not has its command", () => explained(file, findings));
    await test("file: --filter narrows every view, and the page says how", () => narrowed(filtered, findings, idle));
    await test("served: what the overview asks first has been answered before, and comes with the page", () => ahead(served));
    await test("served: the first view takes no other file and asks once, and the rest of the page comes by itself", () => parts(served));
    await test("served: scripts and styles come from the server only, and windows are asked for", () => windows(served));
    await test("served: the page asks for the token that the server wants", tokens);
    await test("states: empty, failed and slow are said", () => states(served));
    await test("names of strangers are text, everywhere", hostile);
    await test("10,000 GPUs on the fleet's picture", () => tenThousand(file));
}

async function overview(url, report, findings) {
    const page = await room.page();
    const begin = Date.now();
    await page.goto(url);
    await page.waitForSelector(".where .split");
    const paint = await page.evaluate(() => performance.getEntriesByName("first-contentful-paint")[0]?.startTime);
    console.log(`     first view after ${Date.now() - begin} ms, first paint ${Math.round(paint ?? 0)} ms`);
    await settled(page);
    const values = await texts(page, ".figures .value");
    const whole = "$" + Math.round(Number(report.totals.cost)).toLocaleString("en-US");
    same("the cost", values[0], whole);
    same("the price of a useful GPU-hour", values[1], "$" + Number(report.totals.effective_price).toFixed(2));
    same("what could be saved", values[3], "$" + Math.round(Number(findings.month_saving)).toLocaleString("en-US"));
    const rows = await page.$$eval(".where tbody tr", (trs) => trs.map((tr) => [tr.querySelector("th").textContent.trim(), tr.querySelector("td").textContent.trim()]));
    for (const [words, figure] of [["used", "used"], ["slack", "slack"], ["held idle", "held_idle"], ["node idle", "node_idle"], ["empty", "node_idle_empty"], ["stranded", "node_idle_stranded"]])
        same(words, rows.find((r) => r[0] === words)?.[1], "$" + Math.round(Number(report.totals[figure])).toLocaleString("en-US"));
    check("the balance is said", (await texts(page, ".balance"))[0]?.startsWith("Balanced: every one of"));
    check("what is unpriced stands first", (await texts(page, ".banner"))[0]?.includes("unpriced"));
    same("teams", (await texts(page, '[aria-label="Cost by team"] tbody th')).sort(), report.rows.map((r) => r.team ?? "(not held)").sort());
    same("nothing went wrong", page.wrong, []);
    await page.context().close();
}

function views() {
    return {
        overview: "#/overview", explore: "#/explore?by=team", workloads: "#/explore?by=namespace,workload&filter=team=search&sort=-cost", days: "#/explore?by=day",
    fleet: "#/fleet", day: "#/fleet?day=2026-11-26&rows=18", findings: "#/findings", idle: "#/idle", idleall: "#/idle?verdict=all", trust: "#/trust",
    node: "#/node/h100-01", workload: "#/workload/Deployment%2Franker?filter=namespace=search", team: "#/team/research", unknown: "#/nothing", gone: "#/node/not-there",
    };
}

async function everyView(home, url) {
    const sizes = [[360, 740, "dark"], [1280, 900, "light"], [1920, 1080, "dark"]];
    for (const [width, height, colorScheme] of sizes) {
        const page = await room.page({ viewport: { width, height }, colorScheme });
        for (const [name, hash] of Object.entries(views())) {
            if (width === 1920 && !["overview", "explore", "fleet", "node"].includes(name)) continue;
            await open(page, url + hash);
            check(`${name} at ${width} px does not scroll sideways`, (await overflow(page)) <= 0, await overflow(page));
            check(`${name} shows no failure`, (await page.$(".state.failed")) === null, await texts(page, ".state.failed"));
            if (home === "served" ? width !== 1920 : width === 1280) same(`${name} at ${width} px, ${colorScheme}: violations`, await violations(page), []);
            if (shots) await page.screenshot({ path: `${shots}/${home}-${name}-${width}-${colorScheme}.png`, fullPage: true });
        }
        // the other theme of every view by the switch
        await page.getByLabel('Theme', { exact: true }).selectOption(colorScheme === "dark" ? "light" : "dark");
        same("the switch wins over the system", await page.evaluate(() => document.documentElement.dataset.theme), colorScheme === "dark" ? "light" : "dark");
        await page.reload();
        await settled(page);
        if (home === "served") same("and is kept", await page.evaluate(() => document.documentElement.dataset.theme), colorScheme === "dark" ? "light" : "dark");
        if (home === "served" && width !== 1920)
            for (const name of ["overview", "explore", "findings", "trust"]) {
                await open(page, url + views()[name]);
                same(`${name} at ${width} px in the other theme: violations`, await violations(page), []);
            }
        same(`nothing went wrong at ${width} px`, page.wrong, []);
        await page.context().close();
    }
}

async function drill(url, report) {
    const page = await room.page();
    await open(page, url + "#/explore?by=namespace");
    const name = "search";
    await page.click(`[aria-label="Cost by namespace"] tbody bdi:text-is("${name}")`);
    await settled(page);
    same("a namespace opens its workloads", (await texts(page, ".crumbs li")).map((t) => t.replace("×", "")), ["All", `namespace ${name}`]);
    check("by workload", page.url().includes("by=workload"));
    await page.click('[aria-label="Cost by workload"] tbody a:has-text("Deployment/ranker")');
    await settled(page);
    check("a workload opens its pods", page.url().includes("by=pod"), page.url());
    check("pods are there", (await texts(page, '[aria-label="Cost by pod"] tbody th')).some((t) => t.startsWith("ranker-")), await texts(page, "main"));
    await page.click('.crumbs a:has-text("namespace search")');
    await settled(page);
    check("a crumb goes back up", page.url().includes("by=workload") && !page.url().includes("ranker"), page.url());
    await page.click('a[aria-label="page of workload Deployment/ranker"]');
    await settled(page);
    same("a workload has its page", await texts(page, "h1"), ["Deployment/ranker"]);
    check("with what it ran on", (await texts(page, "h2")).some((t) => t === "On which nodes"), (await texts(page, "h2")).join(", "));
    check("and its use", (await texts(page, "h2")).includes("Use"), (await texts(page, "h2")).join(", "));
    const signals = await texts(page, '[aria-label="Percentiles of use"] tbody th');
    for (const signal of ["SM activity", "tensor activity"]) check(`with percentiles of ${signal}`, signals.some((t) => t.startsWith(signal)), signals);
    check("which say of what they are", (await texts(page, ".table-title")).includes("percentiles of hourly means"), await texts(page, ".table-title"));
    check("and lines", (await texts(page, ".lines .legend li")).some((t) => t.startsWith("tensor activity")), await texts(page, ".lines .legend li"));
    await page.click('[aria-label="On which nodes"] tbody a');
    await settled(page);
    check("from where a node opens", page.url().includes("#/node/"), page.url());
    same("nothing went wrong", page.wrong, []);
    await page.context().close();
}

async function addresses(url) {
    const page = await room.page();
    await open(page, url + "#/explore?by=workload");
    await page.selectOption('[aria-label="Key of the filter"]', "namespace");
    await page.fill('[aria-label="Value of the filter"]', "sea*");
    await page.keyboard.press("Enter");
    await settled(page);
    check("a filter is in the address", page.url().includes("filter=namespace=sea"), page.url());
    const rows = await texts(page, '[aria-label="Cost by workload"] tbody th');
    check("and keeps rows", rows.length > 0 && rows.every((t) => !t.includes("jupyter")), rows);
    await page.click('[aria-label="Cost by workload"] thead button:has-text("GPU-h")');
    await settled(page);
    check("the order is in the address", page.url().includes("sort=gpu_hours"), page.url());
    const numbers = (await texts(page, '[aria-label="Cost by workload"] tbody td:nth-child(2)')).map((t) => Number(t.replace(/[<,]/g, "")));
    same("largest first", numbers, [...numbers].sort((a, b) => b - a));
    const address = page.url(), shown = await texts(page, '[aria-label="Cost by workload"] tbody th');
    await page.reload();
    await settled(page);
    same("a reload shows the same", await texts(page, '[aria-label="Cost by workload"] tbody th'), shown);
    await open(page, url + "#/trust");
    await page.goBack();
    await settled(page);
    same("back is where it was", page.url(), address);
    same("with the same rows", await texts(page, '[aria-label="Cost by workload"] tbody th'), shown);
    await page.click('.crumbs .remove');
    await settled(page);
    check("a filter is taken off", !page.url().includes("filter="), page.url());
    await page.selectOption('[aria-label="Group by another key"]', "only team");
    await settled(page);
    check("keys are changed", page.url().includes("by=team"), page.url());
    await page.getByLabel('Time zone', { exact: true }).selectOption("local");
    await settled(page);
    check("the zone is in the address and said", page.url().includes("tz=local") && (await texts(page, ".bottom"))[0].includes("times in UTC"), await texts(page, ".bottom"));
    same("nothing went wrong", page.wrong, []);
    await page.context().close();
}

async function keyboard(url) {
    const page = await room.page();
    await open(page, url + "#/overview");
    const focused = () => page.evaluate(() => document.activeElement?.textContent?.trim() || document.activeElement?.getAttribute("aria-label") || "");
    await page.keyboard.press("Tab");
    same("the first stop skips to the figures", await focused(), "Skip to the figures");
    await page.keyboard.press("Enter");
    same("and does", await page.evaluate(() => document.activeElement.id), "main");
    const reach = async (wanted, most = 60) => {
        for (let i = 0; i < most; i++) {
            if ((await focused()) === wanted) return true;
            await page.keyboard.press("Tab");
        }
        return false;
    };
    await page.evaluate(() => document.activeElement.blur());
    await page.reload();
    await settled(page);
    check("Explore is reached by Tab", await reach("Explore"));
    await page.keyboard.press("Enter");
    await settled(page);
    check("and opened by Enter", page.url().includes("#/explore"), page.url());
    check("a table's heading is reached", await reach("GPU-h", 120));
    await page.keyboard.press("Enter");
    await settled(page);
    check("and sorts", page.url().includes("sort=gpu_hours"), page.url());
    same("which is said", await page.$$eval('th[aria-sort="descending"]', (all) => all.map((e) => e.textContent.replace("↓", "").trim())), ["GPU-h"]);
    await open(page, url + "#/fleet");
    await page.focus(".fleet-scroll");
    for (const key of ["ArrowRight", "ArrowRight", "ArrowDown", "End", "Home", "PageDown"]) await page.keyboard.press(key);
    check("the picture's cursor is read out", (await texts(page, ".readout"))[0]?.includes("a10g-01"), await texts(page, ".readout"));
    await page.keyboard.press("d");
    await settled(page);
    check("D zooms to the day", /day=2026-11-23/.test(page.url()), page.url());
    await page.focus(".fleet-scroll");
    await page.keyboard.press("Escape");
    await settled(page);
    check("Escape zooms out", !/day=/.test(page.url()), page.url());
    await page.focus(".fleet-scroll");
    await page.keyboard.press("ArrowRight");
    await page.keyboard.press("Enter");
    await settled(page);
    check("Enter opens the GPU", page.url().includes("#/gpu/"), page.url());
    await open(page, url + "#/findings");
    await page.focus(".finding-head");
    await page.keyboard.press("Space");
    await settled(page);
    check("Space opens a finding", (await page.$(".finding.open")) !== null);
    same("nothing went wrong", page.wrong, []);
    await page.context().close();
}

async function findingsView(url, findings) {
    const page = await room.page();
    await open(page, url + "#/findings");
    const open_ = findings.findings.filter((f) => !f.exempt);
    same("all of them", (await page.$$(".finding")).length, open_.length);
    const first = open_[0];
    await page.click(".finding-head");
    await settled(page);
    check("an open finding is in the address", page.url().includes(first.id), page.url());
    const body = (await texts(page, ".finding-body"))[0];
    for (const part of [first.action, first.arithmetic, first.evidence[0].value]) check(`it says ${part}`, body.includes(part), body);
    if (first.command) check("with the command", (await texts(page, ".copy code")).includes(first.command), await texts(page, ".copy code"));
    const owner = open_.find((f) => f.owner !== first.owner).owner;
    await page.getByLabel('Owner', { exact: true }).selectOption(owner);
    await settled(page);
    same("by owner", (await page.$$(".finding")).length, open_.filter((f) => f.owner === owner).length);
    check("which is in the address", page.url().includes(`owner=${owner}`), page.url());
    await page.reload();
    await settled(page);
    same("and survives a reload", (await page.$$(".finding")).length, open_.filter((f) => f.owner === owner).length);
    same("nothing went wrong", page.wrong, []);
    await page.context().close();
}

async function explained(url, findings) {
    const page = await room.page();
    const first = findings.findings.find((f) => !f.exempt);
    await open(page, url + "#/findings/" + first.id);
    await page.click('summary:has-text("Everything that it rests on")');
    const text = (await texts(page, ".explain"))[0];
    const printed = room.run("explain", first.id, "--db", "demo.db");
    for (const part of [`finding ${first.id}`, "what would change the verdict", first.arithmetic, first.price]) check(`it says ${part}`, text.includes(part), text);
    const whole = printed.split("\n\nrows of the ledger")[0].trim();
    same("as the command says it, up to the rows", text.trim(), whole);
    check("and which command says the rest", (await texts(page, ".copy code")).some((t) => t.startsWith(`gputally explain ${first.id} --window `)), await texts(page, ".copy code"));
    await open(page, url + "#/workload/Deployment%2Franker?filter=namespace=search");
    await page.click('summary:has-text("Explain")');
    await page.waitForSelector('.copy code');
    const command = (await texts(page, ".copy code")).find((t) => t.startsWith("gputally explain"));
    check("a workload's figures have theirs", command?.startsWith("gputally explain 'workload search/Deployment/ranker' --window "), command);
    // and the command is one: run as a shell would read it
    const [, of, window] = /^gputally explain '(.*)' --window (\S+) --db/.exec(command);
    check("which works", room.run("explain", of, "--window", window, "--db", "demo.db").includes("money by category"));
    same("no violations", await violations(page), []);
    same("nothing went wrong", page.wrong, []);
    await page.context().close();
}

async function narrowed(url, findings, idle) {
    const text = readFileSync(room.path("filtered.html"), "utf8");
    const block = JSON.parse(/id="gputally-data">([\s\S]*?)<\/script>/.exec(text)[1]);
    // names of others are in no block
    for (const name of ["vision", "jupyter-alex", "Deployment/thumbnails", "sandbox"]) check(`${name} is not in the file`, !JSON.stringify(block).includes(name));
    const mine = new Set(block.findings.findings.map((f) => f.id));
    const theirs = findings.findings.filter((f) => f.owner === "search" && f.subject.startsWith("workload "));
    check("findings about the team's workloads are in it", theirs.length > 0 && theirs.every((f) => mine.has(f.id)), [...mine]);
    check("and those of others are not", block.findings.findings.every((f) => f.owner === "search"), block.findings.findings.map((f) => f.subject));
    const held = new Set(JSON.parse(room.run("report", "--db", "demo.db", "--by", "gpu", "--filter", "team=search", "--output", "json")).rows.map((r) => r.gpu));
    same("the idle scan has the GPUs that it held", block.idle.nodes.flatMap((n) => n.devices.map((d) => d.gpu)).sort(), idle.devices.map((d) => d.gpu).filter((g) => held.has(g)).sort());
    same("and so has the picture", block.fleet.nodes.flatMap((n) => n.gpus.map((d) => d.device)).sort(), [...held].sort());
    check("whose holders are the team", block.fleet.holders.every((h) => h.team === "search"), JSON.stringify(block.fleet.holders));
    const page = await room.page();
    for (const hash of ["#/findings", "#/idle", "#/fleet", "#/trust"]) {
        await open(page, url + hash);
        check(`${hash} says what is let through`, (await texts(page, ".subject"))[0].includes("Only what team=search lets through"), await texts(page, ".subject"));
        check(`${hash} shows no failure`, (await page.$(".state.failed")) === null);
    }
    same("no violations", await violations(page), []);
    same("nothing went wrong", page.wrong, []);
    await page.context().close();
}

async function idleView(url, idle) {
    const page = await room.page();
    await open(page, url + "#/findings");
    await page.click('.tabs a:has-text("Idle scan")');
    await settled(page);
    check("it has an address", page.url().includes("#/idle"), page.url());
    same("under Findings", await page.$$eval('nav[aria-label="Views"] [aria-current]', (all) => all.map((e) => e.textContent)), ["Findings"]);
    const verdicts = (word) => idle.devices.filter((d) => d.verdict === word).length;
    same("counts by verdict", (await texts(page, ".figures .value")).slice(0, 4),
        ["idle", "partly idle", "not idle", "not enough data"].map((w) => `${verdicts(w)} GPU${verdicts(w) === 1 ? "" : "s"}`));
    const still = idle.devices.filter((d) => d.verdict === "idle" || d.verdict === "partly idle" || d.idle_since?.finding);
    check("something stands still", still.length > 0);
    same("its GPUs are the command's", (await texts(page, ".idle-picture a.idle-name")).sort(), still.map((d) => d.gpu).sort());
    // the letters of a GPU are its days: a day with enough data is idle where no threshold failed
    const gpu = still[0], letter = (d) => !d.sufficient ? "not enough data" : d.failed ? "not idle" : Object.values(d.checks).includes("unchecked") ? "as far as could be checked" : "idle";
    const row = (await texts(page, `.idle-picture li:has(> a:has-text("${gpu.gpu}")) title`));
    same("a cell a day", row.length, gpu.days.length);
    gpu.days.forEach((d, i) => check(`day ${d.day}`, row[i].startsWith(d.day) && row[i].includes(letter(d)), row[i]));
    check("what is unchecked is named", (await texts(page, ".warning-line")).some((t) => t.includes("CPU of 10 nodes") && t.includes("network of 10 nodes")), await texts(page, ".warning-line"));
    await page.getByLabel("Verdict", { exact: true }).selectOption("all");
    await settled(page);
    check("the verdict is in the address", page.url().includes("verdict=all"), page.url());
    await page.click('button:has-text("Show as table")');
    same("the table has every GPU", (await page.$$('[aria-label="Idle scan"] tbody tr')).length, idle.devices.length);
    same("and no violations", await violations(page), []);
    await page.reload();
    await settled(page);
    same("which a reload keeps", (await page.$$(".idle-picture a.idle-name")).length, idle.devices.length);
    same("nothing went wrong", page.wrong, []);
    await page.context().close();
}

async function fleet(url) {
    const page = await room.page();
    await open(page, url + "#/fleet");
    const box = await (await page.$(".fleet-scroll")).boundingBox();
    await page.mouse.move(box.x + 500, box.y + 300);
    const said = await said_by(page, ".readout", /(?=.*Use)(?=.*Memory)(?=.*Power)(?=.*GPU ).*An hour.*\$\d/s);
    for (const word of ["Category", "Holder", "Use", "Memory", "Power", "An hour", "GPU "]) check(`the cursor says ${word}`, said.includes(word), said);
    check("with a price", /\$\d/.test(said), said);
    const colours = await page.evaluate(() => {
        const canvas = document.querySelector(".fleet-main");
        const { data } = canvas.getContext("2d").getImageData(200, 40, 600, 400);
        const seen = new Set();
        for (let i = 0; i < data.length; i += 16) seen.add((data[i] << 16) | (data[i + 1] << 8) | data[i + 2]);
        return seen.size;
    });
    check("the canvas is painted", colours >= 4, colours);
    await page.click('button:has-text("held idle")');
    check("one category alone is in the address", page.url().includes("only=held_idle"), page.url());
    await page.click('button:has-text("held idle")');
    await page.getByLabel('Day', { exact: true }).selectOption("2026-11-26");
    await settled(page);
    check("a day is in the address", page.url().includes("day=2026-11-26"), page.url());
    await page.click('button[aria-label="The day after"]');
    await settled(page);
    check("and the next", page.url().includes("day=2026-11-27"), page.url());
    await page.click('button:has-text("Show as table")');
    await settled(page);
    same("its table has all nodes", (await page.$$('[aria-label="Nodes of the fleet"] tbody tr')).length, 10);
    same("nothing went wrong", page.wrong, []);
    await page.context().close();
}

async function csv(url, report) {
    const page = await room.page({ acceptDownloads: true });
    await open(page, url + "#/explore?by=team");
    const [download] = await Promise.all([page.waitForEvent("download"), page.click('button[aria-label="Save Cost by team as CSV"]')]);
    const lines = readFileSync(await download.path(), "utf8").trim().split("\r\n");
    same("a line a row", lines.length, report.rows.length + 1);
    check("with a header", lines[0].startsWith("team,gpu_hours,cost,"), lines[0]);
    const research = lines.find((l) => l.startsWith("research,")).split(",");
    check("and the cost", Math.abs(Number(research[2]) - Number(report.rows.find((r) => r.team === "research").cost)) < 0.005, research);
    await page.context().close();
}

/** The questions of the page and those that the service answers ahead are the same, letter by letter: a page that came with
 *  the answers asks nothing; one that came without asks, and finds all of them kept. */
async function ahead(url) {
    const figure = async (name) => Number(new RegExp(`^${name} (\\S+)`, "m").exec(await (await fetch(url + "metrics")).text())?.[1]);
    await withAnswers(url);
    same("answers made ahead", await figure("gputally_ahead_answers_total"), 9);
    const said = [];
    for (const hash of ["#/overview", "#/overview?window=30d"])
        for (const bare of [false, true]) {
            const page = await room.page();
            const asked = [];
            if (bare) await without(page, url);
            page.on("request", (r) => /\/api\//.test(r.url()) && asked.push(r.url().slice((url + "api/v1/").length)));
            const misses = await figure("gputally_cache_misses_total");
            await open(page, url + hash);
            const window = hash.includes("30d") ? "window=30d&" : "";
            same(`${hash}: what is asked ${bare ? "by a page that came without answers" : "by one that has them"}`, asked.filter((path) => !path.includes("%2C")).sort(),
                bare ? ["findings" + (window ? "?window=30d" : ""), "meta", `report?${window}by=day`, `report?${window}by=team`] : []);
            same(`${hash}: the time before, where the ledger has it`, asked.filter((path) => path.includes("%2C")).length, bare && !window ? 1 : 0);
            same(`${hash}: all of it was known`, (await figure("gputally_cache_misses_total")) - misses, 0);
            said.push((await texts(page, "main")).join());
            same("nothing went wrong", page.wrong, []);
            await page.context().close();
        }
    check("both show the same", said[0] === said[1] && said[2] === said[3] && said[0] !== said[2]);
}

/** The page's text, once all that is made before it is asked for is inside. */
async function withAnswers(url) {
    for (const begin = Date.now();; await new Promise((done) => setTimeout(done, 100))) {
        const text = await (await fetch(url)).text();
        if (text.includes('"findings?window=30d":') || Date.now() - begin > PATIENCE_MS) return text;
    }
}

/** The page comes without the first answers inside, as it does to who has a token. */
async function without(page, url) {
    await page.route(url, async (route) => {
        const response = await route.fetch();
        await route.fulfill({ response, body: (await response.text()).replace(/(id="gputally-first">)[^<]*/, "$1@@DATA@@") });
    });
}

/** The first view is in the page. What it does not need is in other files: one is fetched when the browser has nothing to do,
 *  the other when lines are drawn. */
async function parts(url) {
    const page = await room.page();
    const asked = [];
    await without(page, url);
    page.on("request", (r) => asked.push(r.url().slice(url.length)));
    const scripts = () => asked.filter((path) => path.endsWith(".js"));
    await page.goto(url + "#/overview");
    await page.waitForSelector(".top-findings");
    for (const begin = Date.now(); scripts().length < 1 && Date.now() - begin < PATIENCE_MS; ) await new Promise((done) => setTimeout(done, 100));
    await settled(page);
    same("the other views come by themselves", scripts(), ["assets/others.js"]);
    const questions = asked.filter((path) => path.startsWith("api/"));
    same("each question once", questions, [...new Set(questions)]);
    await open(page, url + "#/node/h100-01");
    await page.waitForSelector(".uplot canvas");
    same("and what draws lines", scripts(), ["assets/others.js", "assets/plot.js"]);
    same("nothing went wrong", page.wrong, []);
    await page.context().close();

    const cut = await room.page();
    await cut.route("**/others.js", (route) => route.abort());
    await open(cut, url + "#/overview");
    await open(cut, url + "#/explore");
    check("a part that does not come is said", (await texts(cut, ".failed"))[0]?.includes("the server did not send the rest of the page"), await texts(cut, "main"));
    await open(cut, url + "#/overview");
    check("and leaves the first view", (await texts(cut, ".figures .value"))[0].startsWith("$"));
    await cut.context().close();
}

async function windows(url) {
    const page = await room.page();
    const policies = [];
    page.on("response", (r) => r.url() === url && policies.push(r.headers()["content-security-policy"]));
    await open(page, url + "#/overview");
    check("the policy allows the page's own script and style", /script-src 'self' 'sha256-[^ ]*';/.test(policies[0]) && /style-src 'self' 'sha256-[^ ]*';/.test(policies[0]) && !/unsafe/.test(policies[0]), policies[0]);
    const before = (await texts(page, ".figures .value"))[0];
    await page.getByLabel('Window', { exact: true }).selectOption("24h");
    await settled(page);
    check("a window is in the address", page.url().includes("window=24h"), page.url());
    check("and other figures come", (await texts(page, ".figures .value"))[0] !== before);
    await open(page, url + "#/overview?window=2026-11-20T00:00:00Z,2026-11-22T00:00:00Z");
    check("two moments are a window", (await texts(page, ".subject"))[0].includes("2026-11-20 00:00Z to 2026-11-22 00:00Z"), await texts(page, ".subject"));
    same("nothing went wrong", page.wrong, []);
    await page.context().close();
}

async function tokens() {
    const said = room.run("config", "token", "page");
    const token = /gpt_\S+/.exec(said)[0];
    room.write("access.yaml", said.slice(said.indexOf("access:")));
    const url = await room.serve("--db", "demo.db", "--config", "access.yaml");
    const page = await room.page();
    await page.goto(url);
    await page.waitForSelector("input[type=password]");
    same("the question has no violations", await violations(page), []);
    await page.fill("input[type=password]", "wrong");
    await page.keyboard.press("Enter");
    await page.waitForSelector("text=does not know this token");
    await page.fill("input[type=password]", token);
    await page.keyboard.press("Enter");
    await page.waitForSelector(".figures");
    await settled(page);
    check("with the token the figures come", (await texts(page, ".figures .value"))[0].startsWith("$"));
    check("and it is in no address", !page.url().includes(token));
    await page.context().close();

    // Who has no token may read everything here, so that the page comes with it; who gives a token sees what that one may.
    room.write("open.yaml", said.slice(said.indexOf("access:")).replace("scopes: [read]", "scopes: [read], teams: [search]") + "  allow_anonymous: true\n");
    const open_ = await room.serve("--db", "demo.db", "--config", "open.yaml");
    check("who may read has the figures in the page", (await withAnswers(open_)).includes('"report?by=team":'));
    const limited = await room.page();
    await limited.addInitScript((kept) => sessionStorage.setItem("gputally-token", kept), token);
    await open(limited, open_);
    const all = await (await fetch(open_ + "api/v1/report")).json();
    const own = await (await fetch(open_ + "api/v1/report", { headers: { Authorization: "Bearer " + token } })).json();
    same("a token's figures, not those that came with the page", (await texts(limited, ".figures .value"))[0], "$" + Math.round(Number(own.totals.cost)).toLocaleString("en-US"));
    check("which are others", Math.round(Number(own.totals.cost)) !== Math.round(Number(all.totals.cost)));
    await limited.context().close();
}

async function states(url) {
    const page = await room.page();
    await open(page, url + "#/overview?window=2020-01-01T00:00:00Z,2020-01-02T00:00:00Z");
    check("a window without hours says so", (await texts(page, "main"))[0].includes("The ledger has no hours of this window"), await texts(page, "main"));
    await open(page, url + "#/explore?filter=team=nobody-has-this");
    check("a filter that fits nothing says so", (await texts(page, "main"))[0].includes("No row has all of these"), await texts(page, "main"));
    await open(page, url + "#/explore?by=no-such-key");
    check("what the server refuses is said", (await texts(page, ".failed"))[0]?.includes("no-such-key"), await texts(page, "main"));
    await page.context().close();

    const slow = await room.page();
    await without(slow, url);
    let answer;
    const held = new Promise((done) => (answer = done));
    await slow.route("**/api/v1/report*", (route) => held.then(() => route.continue()));
    await slow.goto(url + "#/overview");
    await slow.waitForSelector(".loading");
    check("waiting is said", (await texts(slow, ".loading"))[0].startsWith("Loading"));
    answer();
    await settled(slow);
    check("and ends", (await texts(slow, ".figures .value")).length === 5);
    await slow.unrouteAll({ behavior: "wait" });
    await without(slow, url);
    await slow.route("**/api/v1/findings*", (route) => route.abort());
    await slow.reload();
    await settled(slow);
    check("one answer that fails leaves the others", (await texts(slow, ".figures .value"))[0].startsWith("$") && (await texts(slow, ".failed")).length >= 1);
    same("and what failed is named", (await texts(slow, ".failed"))[0].includes("findings could not be shown: the server does not answer"), true);
    await slow.context().close();
}

async function hostile() {
    room.write("hostile.om", openMetrics());
    room.write("prices.csv", PRICES);
    room.run("collect", "--openmetrics", "hostile.om", "--prices", "prices.csv", "--step", "5m", "--gap", "5m", "--db", "hostile.db");
    const file = room.html("hostile.html", "--db", "hostile.db");
    const text = readFileSync(room.path("hostile.html"), "utf8");
    same("the data ends its element once", text.split("gputally-data").length, 2 + (text.match(/getElementById\("gputally-data"\)/g) ?? []).length);
    check("no markup of a name is in the file", !text.includes("<script>window.broken") && !text.includes("<img src=x"));
    const served = await room.serve("--db", "hostile.db");
    const sent = await withAnswers(served);
    same("two elements end in what is served: the data and the script", sent.split("</script").length - 1, 2);
    check("no markup of a name is in it, and names are", !sent.includes("<script>window.broken") && !sent.includes("<img src=x") && sent.includes("\\u003c"));
    for (const [home, url] of [["file", file], ["served", served]]) {
        for (const width of home === "file" ? [360] : [360, 1280]) {
            const page = await room.page({ viewport: { width, height: 900 }, acceptDownloads: true });
            const seen = new Set();
            for (const hash of ["#/overview", "#/explore?by=namespace", "#/explore?by=workload", "#/explore?by=pod", "#/explore?by=node", "#/explore?by=gpu", "#/explore?by=model", "#/fleet", "#/findings", "#/idle?verdict=all", "#/trust"]) {
                await open(page, url + hash);
                check(`${home} ${hash}: no name ran`, (await page.evaluate(() => window.broken)) === undefined);
                check(`${home} ${hash} at ${width} px does not scroll sideways`, (await overflow(page)) <= 0, await overflow(page));
                const whole = await page.evaluate(() => document.getElementById("app").textContent);
                for (const [kind, name] of Object.entries(NAMES)) if (whole.includes(name)) seen.add(kind);
                check(`${home} ${hash}: no sign turns the text round`, !whole.includes("\u202e"));
                if (width === 1280) same(`${home} ${hash}: violations`, await violations(page), []);
                if (shots) await page.screenshot({ path: `${shots}/hostile-${home}-${hash.replace(/\W+/g, "-")}-${width}.png`, fullPage: true });
            }
            for (const kind of Object.keys(NAMES).filter((k) => k !== "rtl")) check(`${home}: ${kind} is shown as text`, seen.has(kind));
            // every name can be opened
            await open(page, url + "#/explore?by=workload");
            const pages = await page.$$eval("a.own", (all) => all.map((a) => a.getAttribute("href")));
            check(`${home}: workloads have pages`, pages.length >= 10, pages.length);
            if (width === 1280)
                for (const hash of pages) {
                    await open(page, url + hash);
                    check(`${home} ${hash} is found`, (await page.$(".figures")) !== null && (await page.$(".failed")) === null, (await texts(page, "main"))[0]);
                }
            await open(page, url + "#/explore?by=namespace");
            const [download] = await Promise.all([page.waitForEvent("download"), page.click('button[aria-label="Save Cost by namespace as CSV"]')]);
            const saved = readFileSync(await download.path(), "utf8");
            for (const sign of ["=HYPERLINK", "+1+cmd", "@SUM"]) check(`${home}: a formula is neutralised in CSV (${sign})`, saved.includes(`'${sign}`) && !new RegExp(`(^|,|\\n)"?\\${sign[0]}`).test(saved), saved);
            same(`${home}: nothing went wrong`, page.wrong, []);
            await page.context().close();
        }
    }
}

/** 10,000 GPUs for a week, put into the file's data in the place of its own fleet. */
async function tenThousand(file) {
    const source = readFileSync(room.path("report.html"), "utf8");
    const [, head, data, tail] = /^([\s\S]*id="gputally-data">)([\s\S]*?)(<\/script>[\s\S]*)$/.exec(source);
    const block = JSON.parse(data);
    let seed = 1;
    const random = () => (seed = (seed * 1103515245 + 12345) & 0x7fffffff) / 0x7fffffff;
    const letters = "UUUUSSSSIIETPHNA.", hours = block.fleet.hours.length;
    block.fleet.holders = Array.from({ length: 50 }, (_, i) => ({ namespace: `ns-${i}`, workload: `Job/j-${i}`, team: `team-${i % 7}` }));
    block.fleet.nodes = Array.from({ length: 1250 }, (_, n) => ({
        cluster: null, node: `gpu-${String(n).padStart(4, "0")}`, instance_type: n % 3 ? "p5.48xlarge" : "p4d.24xlarge", pool: "a",
        gpus: Array.from({ length: 8 }, (_, g) => {
            let cells = "", use = "";
            while (cells.length < hours) {
                const run = Math.min(hours - cells.length, 1 + Math.floor(random() * 30)), letter = letters[Math.floor(random() * letters.length)];
                cells += letter.repeat(run);
                use += Math.floor(random() * 36).toString(36).repeat(run);
            }
            return { device: `GPU-${n}-${g}`, model: "NVIDIA H100 80GB HBM3", price_hour: "6.88", hours: cells, use, runs: [0, hours, n % 50] };
        }),
    }));
    room.write("ten-thousand.html", head + JSON.stringify(block).replace(/</g, "\\u003c") + tail);
    const page = await room.page();
    const begin = Date.now();
    await page.goto("file://" + room.path("ten-thousand.html") + "#/fleet");
    await page.waitForSelector(".fleet-main");
    await settled(page);
    console.log(`     10,000 GPUs, ${hours} h: the picture stands ${Date.now() - begin} ms after the file was opened`);
    const frames = async (what) => {
        const list = await page.evaluate(() => {
            const found = performance.getEntriesByName("gputally-frame").map((e) => e.duration).sort((a, b) => a - b);
            performance.clearMeasures("gputally-frame");
            return found;
        });
        check(`${what}: frames were drawn`, list.length > 0);
        if (list.length) console.log(`     ${what}: ${list.length} frames, median ${list[list.length >> 1].toFixed(1)} ms, longest ${list[list.length - 1].toFixed(1)} ms`);
    };
    await frames("all rows at once");
    for (const rows of ["2", "5", "10", "18"]) {
        await open(page, "file://" + room.path("ten-thousand.html") + `#/fleet?rows=${rows}`);
        await page.evaluate(() => performance.clearMeasures("gputally-frame"));
        for (let i = 1; i <= 40; i++) {
            await page.evaluate((i) => {
                const box = document.querySelector(".fleet-scroll");
                box.scrollTop = ((box.scrollHeight - box.clientHeight) * i) / 40;
            }, i);
            await page.evaluate(() => new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done))));
        }
        await frames(`rows of ${rows} px, scrolled`);
    }
    const box = await (await page.$(".fleet-scroll")).boundingBox();
    await page.mouse.move(box.x + 600, box.y + box.height - 40);
    const said = await said_by(page, ".readout", /gpu-1249/);
    check("the last node is under the cursor", said.includes("gpu-1249"), said);
    if (shots) await page.screenshot({ path: `${shots}/ten-thousand.png` });
    await open(page, "file://" + room.path("ten-thousand.html") + "#/fleet");
    if (shots) await page.screenshot({ path: `${shots}/ten-thousand-all.png` });
    same("nothing went wrong", page.wrong, []);
    await page.context().close();
}
