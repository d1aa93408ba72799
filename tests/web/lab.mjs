// What the tests of the page stand on: ledgers made by the binary, the server, the browser, and checks.

import { spawn, spawnSync } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync, writeFileSync, existsSync } from "node:fs";
import { createRequire } from "node:module";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";

const ROOT = join(dirname(fileURLToPath(import.meta.url)), "..", "..");
export const require = createRequire(join(ROOT, "web", "package.json"));
const { chromium } = require("playwright-core");
const AXE = readFileSync(require.resolve("axe-core/axe.min.js"), "utf8");

/** Far more than anything takes that comes at all, on a machine that does ten other things. */
export const PATIENCE_MS = 120_000;

const CHROMIUM = ["/usr/bin/chromium", "/usr/bin/chromium-browser", "/usr/bin/google-chrome"].find(existsSync);

export let passed = 0, failed = 0;
export function check(what, good, detail = "") {
    if (good) passed++;
    else {
        failed++;
        console.log(`FAIL ${what}${detail === "" ? "" : ": " + String(detail).slice(0, 600)}`);
    }
}
export const same = (what, came, expected) =>
    check(what, JSON.stringify(came) === JSON.stringify(expected), `came ${JSON.stringify(came)}, expected ${JSON.stringify(expected)}`);

const only = process.argv.includes("--only") ? process.argv[process.argv.indexOf("--only") + 1] : null;

/** A test: its failure is counted and the next one runs. */
export async function test(name, run) {
    if (only && !name.includes(only)) return;
    const before = failed;
    try {
        await run();
    } catch (error) {
        failed++;
        console.log(`FAIL ${name}: ${String(error?.stack ?? error).slice(0, 900)}`);
    }
    console.log(`${failed === before ? "ok  " : "FAIL"} ${name}`);
}

export class Lab {
    constructor(binary) {
        this.binary = binary;
        this.folder = mkdtempSync(join(tmpdir(), "gputally-web-"));
        this.servers = [];
    }
    path = (name) => join(this.folder, name);
    write = (name, text) => (writeFileSync(this.path(name), text), this.path(name));

    run(...args) {
        const done = spawnSync(this.binary, args, { cwd: this.folder, encoding: "utf8", maxBuffer: 1 << 29, env: { PATH: process.env.PATH, TZ: "UTC" } });
        if (done.status !== 0) throw new Error(`gputally ${args.join(" ")}: status ${done.status}: ${done.stderr}`);
        return done.stdout;
    }
    html(name, ...args) {
        this.write(name, this.run("report", ...args, "--output", "html"));
        return "file://" + this.path(name);
    }
    /** The server on a port of its own; its address. Its clock stands shortly after the ledgers of the tests, so that no
     *  hour turns while it is asked. */
    async serve(...args) {
        const child = spawn(this.binary, ["serve", "--listen", "127.0.0.1:0", ...args], { cwd: this.folder, stdio: ["ignore", "pipe", "pipe"],
            env: { PATH: process.env.PATH, TZ: "UTC", GPUTALLY_TEST_CLOCK: "2026-11-30T00:05:00Z,1" } });
        this.servers.push(child);
        let said = "";
        return await new Promise((done, fail) => {
            const timer = setTimeout(() => fail(new Error("gputally serve is not ready: " + said)), PATIENCE_MS);
            const hear = (bytes) => {
                said += bytes;
                const url = /serves at (http:\/\/\S+)/.exec(said)?.[1];
                if (url) (clearTimeout(timer), done(url.replace(/\/?$/, "/")));
            };
            child.stdout.on("data", hear);
            child.stderr.on("data", hear);
            child.on("exit", (status) => (clearTimeout(timer), fail(new Error(`gputally serve ended with ${status}: ${said}`))));
        });
    }
    async browse() {
        if (!CHROMIUM) throw new Error("there is no Chromium: scripts/deps test installs it");
        this.browser = await chromium.launch({
            executablePath: CHROMIUM,
            args: ["--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking", "--disable-component-update", "--disable-sync"],
        });
        return this.browser;
    }
    /** A page that tells what went wrong in it: errors, refused scripts, requests to elsewhere. */
    async page(options = {}) {
        const context = await this.browser.newContext({ viewport: { width: 1280, height: 900 }, timezoneId: "UTC", locale: "en-US", ...options });
        const page = await context.newPage();
        page.wrong = [];
        page.on("response", (r) => r.status() >= 400 && page.wrong.push(`${r.status()} ${r.url()}`));
        page.on("pageerror", (e) => page.wrong.push("error: " + e.message));
        page.on("console", (m) => (m.type() === "error" || m.type() === "warning") && page.wrong.push(`${m.type()}: ${m.text()}`));
        page.on("request", (r) => !/^(file:|data:|blob:|about:|http:\/\/127\.0\.0\.1[:/])/.test(r.url()) && page.wrong.push("request: " + r.url()));
        page.setDefaultTimeout(PATIENCE_MS);
        return page;
    }
    /** Ends the servers. */
    async stop() {
        for (const child of this.servers.splice(0))
            if (child.exitCode === null) {
                const ended = new Promise((done) => child.on("exit", done));
                child.kill("SIGTERM");
                await Promise.race([ended, new Promise((done) => setTimeout(done, 30_000))]);
                if (child.exitCode === null) child.kill("SIGKILL");
            }
    }
    async close() {
        await this.browser?.close();
        await this.stop();
        rmSync(this.folder, { recursive: true, force: true });
    }
}

/** Everything that was asked for is there, and nothing is about to change. */
export async function settled(page) {
    const whole = () => page.waitForFunction(() => document.querySelector("#main, main.state, main .failed") &&
        !document.querySelector(".loading, .stale") && document.documentElement.dataset.asking === "0");
    const frames = () => page.evaluate(() => new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(() => setTimeout(done, 20)))));
    await frames(); // what a click set off is asked in the next frame
    await whole();
    await frames(); // and an answer may ask for more
    await whole();
}
export async function open(page, url) {
    const there = page.url().split("#")[0], [base, hash = ""] = url.split("#");
    if (there === base) await page.evaluate((h) => void (location.hash = h), hash);
    else await page.goto(url);
    await settled(page);
}

/** What an element says once it has such words, or in the end. */
export async function said_by(page, selector, words) {
    const has = ([selector, source, flags]) => new RegExp(source, flags).test(document.querySelector(selector)?.textContent ?? "");
    await page.waitForFunction(has, [selector, words.source, words.flags]).catch(() => {});
    return (await texts(page, selector))[0] ?? "";
}

export async function violations(page) {
    // axe is put into the page by the test's own channel, which the page's policy does not reach
    await page.evaluate(AXE);
    const found = await page.evaluate(() => window.axe.run(document, { resultTypes: ["violations"] }));
    return found.violations.map((v) => `${v.id}: ${v.nodes.slice(0, 3).map((n) => n.target.join(" ") + " " + (n.any[0]?.message ?? "")).join(" | ")}`);
}

export const overflow = (page) => page.evaluate(() => document.documentElement.scrollWidth - innerWidth);
export const texts = (page, selector) => page.$$eval(selector, (all) => all.map((e) => e.textContent.trim()));
