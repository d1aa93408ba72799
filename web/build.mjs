// Builds the page: web/src -> web/dist. Run by CMake when a source is newer than the result, with
// Node 18 or later (Debian 12's); `node build.mjs --install` also installs the pinned packages first
// where they are missing.
//
//   index.html           as the server sends it: the first view's script and style inside, and a mark where the first
//                        answers go, so that it stands after one request
//   index.script.hash,   what the server's policy allows of it
//   index.style.hash
//   others.js, plot.js   what comes later, under assets/: views that are not the first one, and uPlot
//   report.html          one file with all inside, allowed by their hashes, and a mark where the report's data goes
//   *.gz                 the pages and scripts, packed; these are embedded

import { createHash } from "node:crypto";
import { spawnSync } from "node:child_process";
import { existsSync, mkdirSync, readFileSync, renameSync, rmSync, writeFileSync } from "node:fs";
import { basename, dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { gzipSync } from "node:zlib";

const here = dirname(fileURLToPath(import.meta.url));
const out = process.argv.find((a) => a.startsWith("--out="))?.slice(6) ?? join(here, "dist");
const BUDGET = 100 * 1024; // of the page as it is sent: all but report.html, packed

const NOTICE = `/* gputally, Apache-2.0. With preact (MIT, (c) 2015-present Jason Miller) and
 * uPlot (MIT, (c) 2022 Leon Sorokin); the MIT licence: https://opensource.org/license/mit */`;
const TITLE = "<title>gputally</title>";
const ICON = "<link rel=\"icon\" href=\"data:image/svg+xml,%3Csvg xmlns='http://www.w3.org/2000/svg' viewBox='0 0 20 20'%3E%3Cpath d='M3 4v12M7 4v12M11 4v12M15 4v12M1 14 18 6' stroke='%231f5f99' stroke-width='2' fill='none'/%3E%3C/svg%3E\">";
const HEAD = `<meta charset="utf-8"><meta name="viewport" content="width=device-width, initial-scale=1"><meta name="color-scheme" content="light dark">`;

/** What is installed and not as package-lock.json pins it; the lock file that npm leaves says so. */
function missing() {
    const read = (path) => JSON.parse(readFileSync(join(here, path), "utf8"));
    const wanted = read("package-lock.json").packages;
    const left = "node_modules/.package-lock.json";
    const have = existsSync(join(here, left)) ? read(left).packages : {};
    return Object.keys(read("package.json").dependencies).filter((name) =>
        have[`node_modules/${name}`]?.version !== wanted[`node_modules/${name}`].version);
}

/** Several build folders share node_modules: one installs, the others wait for it. */
function install() {
    const lock = join(here, ".installing");
    for (let waited = 0; missing().length; waited++) {
        try {
            mkdirSync(lock);
        } catch {
            if (waited > 600) throw new Error(`${lock} has been there for 5 minutes; remove it if no build is running`);
            Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 500);
            continue;
        }
        try {
            if (!missing().length) return;
            console.log(`web: installing ${missing().join(", ")}`);
            const run = spawnSync("npm", ["ci", "--omit=dev", "--ignore-scripts", "--no-audit", "--no-fund", "--loglevel=error"],
                { cwd: here, stdio: ["ignore", "inherit", "inherit"] });
            if (run.status !== 0)
                throw new Error("npm ci failed: the page needs its packages (-DGPUTALLY_WEB=OFF builds without the page)");
        } finally {
            rmSync(lock, { recursive: true });
        }
    }
}

/** Two builds at once (release and sanitizers) must not see half a file. */
function write(name, bytes) {
    const path = join(out, name), half = `${path}.${process.pid}`;
    writeFileSync(half, bytes);
    renameSync(half, path);
}
const packed = (text) => {
    const bytes = gzipSync(text, { level: 9 });
    bytes[9] = 255; // the operating system: left out, so that every machine writes the same
    return bytes;
};
const hash = (text) => "'sha256-" + createHash("sha256").update(text).digest("base64") + "'";

if (process.argv.includes("--install")) install();
const esbuild = await import("esbuild");
/** The page's scripts and style by name; `more`: in how many files. */
async function bundle(more) {
    const built = await esbuild.build({
        entryPoints: [join(here, "src", "main.ts")],
        bundle: true, minify: true, write: false, outdir: out, entryNames: "app", chunkNames: "[name]",
        target: ["es2020", "chrome100", "firefox100", "safari15"],
        jsx: "automatic", jsxImportSource: "preact",
        charset: "ascii", legalComments: "none", logLevel: "warning",
        define: { "process.env.NODE_ENV": '"production"' },
        ...more,
    });
    const texts = Object.fromEntries(built.outputFiles.map((f) => [basename(f.path), f.text.trim() + "\n"]));
    // Inside an element a closing tag would end it. esbuild writes <\/script> in strings by itself.
    for (const name in texts)
        if (/<\/script|<!--|<\/style/i.test(texts[name])) throw new Error(`${name} would end its own element`);
    return texts;
}

const one = await bundle({ format: "iife" });
const js = NOTICE + "\n" + one["app.js"], css = one["app.css"];

// In parts: what views/others.ts shares with the first view, which is all of it, stands in a chunk that the entry only
// names. The chunk goes into the page. A script inside a page has no address that another one could import from: what it
// exports stands in a constant, and others.js takes it from there.
const parts = await bundle({ format: "esm", splitting: true });
if (Object.keys(parts).sort().join() !== "app.css,app.js,chunk.js,others.js,plot.js" || !/^import"\.\/chunk\.js";$/.test(parts["app.js"].trim()))
    throw new Error(`the page came apart otherwise: ${Object.keys(parts)}`);
/** Replaces what stands there exactly once. */
function instead(text, what, by) {
    const found = [...text.matchAll(new RegExp(what.source, "g"))];
    if (found.length !== 1) throw new Error(`${what} is there ${found.length} times`);
    return text.replace(what, by);
}
/** "a as b,c" of an import or export as the inside of an object literal or pattern. */
const pairs = (list, pair) => list.split(",").map((one) => {
    const [from, to = from] = one.trim().split(/\s+as\s+/);
    return pair(from, to);
}).join(",");
const SHARED = "gputallyFirst";
const shown = (text) => NOTICE + "\n" + text;
const first = shown(`(()=>{"use strict";${instead(instead(parts["chunk.js"], /import\("\.\/others\.js"\)/, 'import("./assets/others.js")'),
    /export\{([^}]*)\};?\s*$/, (_, list) => `Object.defineProperty(globalThis,"${SHARED}",{value:{${pairs(list, (from, to) => `${to}:${from}`)}}})`)}})();\n`);
const others = shown(instead(parts["others.js"], /import\{([^}]*)\}from"\.\/chunk\.js";/, (_, list) => `const{${pairs(list, (from, to) => `${from}:${to}`)}}=${SHARED};`));
for (const [name, text] of Object.entries({ first, others, plot: parts["plot.js"] }))
    if (/\bimport\s*[{*"]|\}from"/.test(text)) throw new Error(`${name} imports what is not there`);

const index = `<!doctype html><html lang="en"><head>${HEAD}${TITLE}${ICON}<style>${css}</style></head><body><div id="app"></div><noscript>This page needs JavaScript. The same figures: gputally report, or api/v1/report.</noscript><script type="application/json" id="gputally-first">@@DATA@@</script><script>${first}</script></body></html>\n`;
const policy = `default-src 'none'; script-src ${hash(js)}; style-src ${hash(css)}; img-src data:; base-uri 'none'; form-action 'none'`;
const report = `<!doctype html><html lang="en"><head>${HEAD}<meta http-equiv="Content-Security-Policy" content="${policy}">${TITLE}${ICON}<style>${css}</style></head><body><div id="app"></div><noscript>This report needs JavaScript to be shown.</noscript><script type="application/json" id="gputally-data">@@DATA@@</script><script>${js}</script></body></html>\n`;

mkdirSync(out, { recursive: true });
let sum = 0;
for (const [name, body] of Object.entries({ "index.html": index, "others.js": others, "plot.js": shown(parts["plot.js"]), "report.html": report })) {
    const bytes = packed(body);
    write(name, body);
    write(name + ".gz", bytes);
    if (name !== "report.html") sum += bytes.length;
    console.log(`web: ${name.padEnd(12)} ${String(body.length).padStart(7)} B, packed ${String(bytes.length).padStart(6)} B`);
}
write("index.script.hash", hash(first));
write("index.style.hash", hash(css));
console.log(`web: ${sum} B packed of ${BUDGET} B`);
if (sum > BUDGET) {
    console.error("web: the page is over its budget");
    process.exit(1);
}
