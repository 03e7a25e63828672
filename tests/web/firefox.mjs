// SPDX-License-Identifier: BSD-2-Clause
// firefox.mjs PAGE REPORT DIFF: Firefox shows the page from its file, with the keyboard alone; its figures are those of REPORT
// (allium report --json), nothing is requested, nothing fails. What works in one browser only would be seen here.
import fs from "node:fs";
import puppeteer from "puppeteer-core";

const [file, report, diff] = process.argv.slice(2);
const total = JSON.parse(fs.readFileSync(report, "utf8")).total;
const failures = [];
const check = (condition, ...what) => condition || failures.push(what.join(" "));

const executablePath = ["/usr/bin/firefox-esr", "/usr/bin/firefox"].find((path) => fs.existsSync(path));
if (!executablePath) {
    console.error("not ok - firefox.mjs: there is no Firefox: apt-get install firefox-esr (tools/setup web does it)");
    process.exit(1);
}
const browser = await puppeteer.launch({ browser: "firefox", executablePath, args: ["--headless"] });
const version = await browser.version();
const page = await browser.newPage();
page.on("console", (m) => failures.push(`console: ${m.text()}`));
page.on("pageerror", (e) => failures.push(`error: ${e.message}`));
// A font for Firefox's own marks is among what the protocol reports: it is in no page, whose policy would not let it.
const ofBrowser = (url) => url.startsWith("data:font/") && !fs.readFileSync(file, "utf8").includes("font/woff");
page.on("request", (r) => check(/^(file:|about:blank$)/.test(r.url()) || ofBrowser(r.url()), "request of", r.url().slice(0, 200)));

async function open(path, hash = "") {
    await page.goto("about:blank");
    await page.goto(`file://${path}${hash}`);
    await page.waitForSelector("html[data-ready]");
}

const press = async (...keys) => {
    for (const key of keys) await page.keyboard.press(key);
    await new Promise((done) => setTimeout(done, 200));
};
const hash = () => page.evaluate(() => location.hash);
const details = () => page.evaluate(() => document.querySelector(".details").innerText);

/** The figures of what is selected, when their interval is known. */
async function figures() {
    await page.waitForFunction(() => document.querySelector(".details").dataset.high !== undefined);
    return page.evaluate(() => ({ ...document.querySelector(".details").dataset }));
}

const near = (a, b) => Math.abs(a - b) <= 1 + Math.abs(b) * 1e-9; // the report has whole bytes

async function drive() {
    for (const key of ["live", "peak", "allocated", "temporary"])
        for (const amount of ["bytes", "count"]) {
            const name = amount === "bytes" ? `${key}_bytes`
                : { live: "live_objects", peak: "peak_objects", allocated: "allocations", temporary: "temporary_allocations" }[key];
            await open(file, `#view=flame&metric=${key}&amount=${amount}`);
            const shown = await figures();
            for (const [part, end] of [["value", ""], ["low", "_low"], ["high", "_high"]])
                check(near(Number(shown[part]), total[name + end]), name + end, shown[part], "is", total[name + end]);
        }

    await open(file);
    await press("ArrowDown", "ArrowDown", "Enter");
    check((await hash()).includes("zoom="), "Enter does not zoom:", await hash());
    await press("Escape", "Escape", "Escape");
    check(!(await hash()).includes("zoom="), "Escape does not leave:", await hash());
    for (const [i, view] of ["flame", "treemap", "timeline", "tables", "text"].entries()) {
        await press(String(i + 1));
        check((await hash()).includes(`view=${view}`), "key", i + 1, await hash());
    }
    await press("4", "ArrowDown", "/");
    await page.keyboard.type("json|dict");
    await press("Enter");
    check(/\d+ of \d+ rows/.test(await details()), "rows that match:", await details());
    await press("1", "<");
    check((await hash()).includes("at="), "<:", await hash());
    await press("?");
    check(await page.evaluate(() => document.querySelector("dialog").open), "no list of keys");
    await press("Escape");
    await open(diff);
    await press("2", "ArrowDown");
    check(/before .* after /.test(await details()), "no change of a part:", await details());
}

try {
    await drive();
} catch (e) {
    failures.push(String(e.stack ?? e));
}
await browser.close();
for (const failure of failures) console.error(`not ok - ${failure}`);
if (!failures.length) console.log(`ok - ${version}: the report's figures, by keyboard, without a request`);
process.exitCode = failures.length ? 1 : 0;
