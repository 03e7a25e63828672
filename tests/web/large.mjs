// SPDX-License-Identifier: BSD-2-Clause
// large.mjs FOLDER: many.html with 2 M calls, deep.html with a stack of 100,000, rows.html with 1 M rows: everything
// works there, and it is printed how long it takes.
import puppeteer from "puppeteer-core";

const folder = process.argv[2];
const failures = [];
const check = (condition, ...what) => condition || failures.push(what.join(" "));
const browser = await puppeteer.launch({ executablePath: "/usr/bin/chromium", args: ["--no-sandbox"], protocolTimeout: 600000 });
const page = await browser.newPage();
page.on("console", (m) => failures.push(`console: ${m.text()}`));
page.on("pageerror", (e) => failures.push(`error: ${e.message}`));
await page.setViewport({ width: 1280, height: 800 });
const took = [];

async function open(name, hash = "") {
    const began = performance.now();
    await page.goto("about:blank");
    await page.goto(`file://${folder}/${name}.html#${hash}`);
    await page.waitForSelector("html[data-ready]", { timeout: 120000 });
    took.push(`${name}: ready in ${Math.round(performance.now() - began)} ms`);
}

/** Milliseconds until the page is drawn after something was done there; the longest of all. */
async function time(what, act) {
    const ms = await page.evaluate(act);
    took.push(`${what} ${Math.round(ms)} ms`);
}

const details = () => page.evaluate(() => document.querySelector(".details").innerText);
const found = () => page.evaluate(() => document.querySelector(".found").innerText);
const wait = (ms) => new Promise((done) => setTimeout(done, ms));

async function many() {
    await open("many");
    await time("hover", async () => {
        const canvas = document.querySelector(".flame canvas");
        let most = 0;
        for (let i = 0; i < 20; i++) {
            const began = performance.now();
            canvas.dispatchEvent(new PointerEvent("pointermove", { clientX: 60 + i * 60, clientY: 90 + i * 19, bubbles: true }));
            most = Math.max(most, performance.now() - began);
            await new Promise((done) => setTimeout(done, 30));
        }
        return most;
    });
    await time("zoom", async () => {
        const canvas = document.querySelector(".flame canvas");
        let most = 0;
        for (let i = 0; i < 6; i++) {
            const began = performance.now();
            canvas.dispatchEvent(new MouseEvent("click", { clientX: 300, clientY: 100 + 19 * i, bubbles: true }));
            await new Promise((done) => requestAnimationFrame(done));
            most = Math.max(most, performance.now() - began);
        }
        return most;
    });
    await page.evaluate(() => (location.hash = "view=flame"));
    await wait(300);
    await time("search", () => {
        const search = document.querySelector("input[type=search]");
        search.value = "function_1";
        const began = performance.now();
        search.dispatchEvent(new Event("input"));
        return performance.now() - began;
    });
    await page.waitForFunction(() => document.querySelector(".found").innerText.includes("–"), { timeout: 60000 });
    check(/%/.test(await found()), "what a search finds:", await found());
}

async function deep() {
    await open("deep");
    await page.evaluate(() => (document.querySelector(".flame").scrollTop = 1e9));
    await wait(300);
    await page.mouse.click(20, 700);
    await wait(500);
    const path = await page.evaluate(() => location.hash.length);
    check(path < 1000, "100,000 names in the address:", path);
    check(/function_\d+/.test(await details()), "the innermost call:", await details());
    const boxes = await page.evaluate(() => document.querySelector(".flame .sizer").style.height);
    check(parseFloat(boxes) > 1.8e6, "the height of 100,000 rows:", boxes);
    await page.focus(".flame");
    await page.keyboard.press("Escape");
    await page.keyboard.press("d");
    await wait(500);
    check((await details()).startsWith("all "), "from the bottom up:", await details());
    await page.keyboard.press("r");
    await page.keyboard.press("2");
    await page.keyboard.press("3");
    await wait(500);
    check(/\d+ rows/.test(await details()), "rows:", await details());
}

async function rows() {
    await open("rows", "view=tables");
    for (const [column, name] of [[2, "sort by number"], [0, "sort by name"]])
        await time(name, `(() => {
            const began = performance.now();
            document.querySelectorAll(".th button")[${column}].click();
            return performance.now() - began;
        })()`);
    const shown = await page.evaluate(() => [...document.querySelectorAll(".tbody .tr span:first-child")].map((e) => e.innerText));
    check(shown.length > 10 && shown.every((name, i) => !i || shown[i - 1] <= name), "names in their order:", shown.slice(0, 3));
}

for (const part of [many, deep, rows]) {
    try {
        await part();
    } catch (e) {
        failures.push(`${part.name}: ${e.message}`);
    }
}
await browser.close();
for (const line of failures) console.log("not ok -", line);
if (!failures.length) console.log("ok - large pages:", took.join(", "));
process.exit(failures.length ? 1 : 0);
