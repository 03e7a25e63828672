// SPDX-License-Identifier: BSD-2-Clause
// drive.mjs PAGE DIFF TRACE: a browser shows the page, with the keyboard alone; nothing is requested, nothing fails, and axe-core
// finds nothing in any view.
import fs from "node:fs";
import puppeteer from "puppeteer-core";

const [file, diff, trace] = process.argv.slice(2);
const axe = fs.readFileSync(new URL("node_modules/axe-core/axe.min.js", import.meta.url), "utf8");
const failures = [];
const check = (condition, ...what) => condition || failures.push(what.join(" "));

const browser = await puppeteer.launch({ executablePath: "/usr/bin/chromium", args: ["--no-sandbox"] });
const page = await browser.newPage();
page.on("console", (m) => failures.push(`console: ${m.text()}`));
page.on("pageerror", (e) => failures.push(`error: ${e.message}`));
page.on("request", (r) => check(r.url().startsWith("file:"), "request of", r.url()));
await page.setViewport({ width: 1280, height: 800 });
await page.goto(`file://${file}`);
await page.waitForSelector("html[data-ready]");

const press = async (...keys) => {
    for (const key of keys) await page.keyboard.press(key);
    await new Promise((done) => setTimeout(done, 150));
};
const hash = () => page.evaluate(() => location.hash);
const details = () => page.evaluate(() => document.querySelector(".details").innerText);
const focus = () => page.evaluate(() => document.activeElement.className || document.activeElement.tagName);

async function drive() {
    // The flame graph: down, into a box, and out again.
    check((await details()).startsWith("all "), "at first:", await details());
    await press("ArrowDown", "ArrowDown", "Enter");
    check((await hash()).includes("zoom="), "Enter does not zoom:", await hash());
    const inside = await details();
    check(/\d.*%/.test(inside), "no figures:", inside);
    await press("Escape", "Escape", "Escape");
    check(!(await hash()).includes("zoom="), "Escape does not leave:", await hash());
    await press("d");
    check((await hash()).includes("direction=up"), "d:", await hash());
    await press("d", "m");
    check((await hash()).includes("amount=count"), "m:", await hash());

    // Each view by its number, with something that has the focus.
    const views = ["flame", "treemap", "timeline", "tables", "text"];
    for (const [i, view] of views.entries()) {
        await press(String(i + 1));
        check((await hash()).includes(`view=${view}`), "key", i + 1, await hash());
        if (view !== "text") check((await focus()) !== "BODY", "nothing has the focus in", view);
    }

    // The table: rows, what a function calls, a search.
    await press("4", "ArrowDown", "ArrowDown");
    const row = await details();
    check(row.includes("("), "no interval of a row:", row);
    await press("Enter");
    check((await hash()).includes("focus="), "Enter does not open the function:", await hash());
    await press("4", "/");
    await page.keyboard.type("json|dict");
    await press("Enter");
    check((await hash()).includes("search="), "search:", await hash());
    check(/\d+ of \d+ rows/.test(await details()), "rows that match:", await details());
    await press("1");
    const found = await page.evaluate(() => document.querySelector(".found").innerText);
    check(/%/.test(found), "sum of what matches:", found);

    // Controls keep the focus, and the list of keys opens and closes.
    await page.focus(".controls select");
    await press("ArrowDown");
    check((await focus()) === "SELECT", "a control loses the focus:", await focus());
    await press("Tab", "Tab");
    await page.evaluate(() => document.querySelector(".flame").focus());
    await press("?");
    check(await page.evaluate(() => document.querySelector("dialog").open), "no list of keys");
    const before = await hash();
    await press("2");
    check((await hash()) === before, "keys act behind the list");
    await press("Escape");
    check(!(await page.evaluate(() => document.querySelector("dialog").open)), "the list stays");

    // Colours, by the key and in the address; what they mean is said.
    await press("1", "o");
    check((await hash()).includes("colour=owner"), "o:", await hash());
    await press("o");
    check((await hash()).includes("colour=age"), "o again:", await hash());
    check(await page.evaluate(() => document.querySelector(".legend")?.innerText.length > 3), "no legend of ages");
    check((await details()).includes("oldest object") || (await details()).startsWith("all"), "no age:", await details());
    await press("2", "ArrowDown");
    check(/\(.*–.*\)/.test(await details()), "no interval of a part:", await details());

    // Moments: an earlier one by the key, in all views; the end again.
    if (await page.evaluate(() => !document.querySelector(".moments").hidden)) {
        await press("1", "<");
        check((await hash()).includes("at="), "<:", await hash());
        check(/^@/.test(await page.evaluate(() => document.querySelector(".moments output").value)), "no moment is named");
        await press("4", "3");
        check((await details()).startsWith("@"), "the moment in the timeline:", await details());
        await press(">");
        check(!(await hash()).includes("at="), ">:", await hash());
    } else failures.push("no stored moments in the page");

    await events();
    // axe-core runs outside the page's policy, in a world of its own.
    await look(trace, "events");
    for (const of of [file, diff])
        for (const view of views.filter((v) => of === file || v !== "timeline")) await look(of, view);
}

/** The events of a trace: the chart, the table, and from one to the other. */
async function events() {
    await page.goto(`file://${trace}#view=text`);
    await page.reload();
    await page.waitForSelector("html[data-ready]");
    const tabs = await page.evaluate(() => [...document.querySelectorAll("nav button")].map((b) => b.innerText));
    await press(String(tabs.indexOf("Events") + 1)); // a very short trace has no timeline
    check((await hash()).includes("view=events"), "the key of the events:", await hash());
    await press("Home", "ArrowRight");
    const step = await details();
    check(/^\d+\.\d{9} – \d+\.\d{9} .*(live|events)/.test(step), "a step of time:", step);
    await press("+", "-", "Enter");
    const event = await details();
    check(/^\d+\.\d{9} \w+/.test(event) && event !== step, "Enter selects no event:", event);
    await page.focus(".events .tscroll");
    await press("End");
    const last = await details();
    check(last !== event, "the last event:", last);
    await press("Home", "ArrowDown", "Enter");
    await page.focus(".events [role=application]");
    await press("Escape");
    await press("/");
    await page.keyboard.type("size_bytes=\\d{4}");
    await press("Enter");
    check(/^\d+ of \d+ events/.test(await details()), "events that match:", await details());
    await page.evaluate(() => document.querySelector(".events .th button").click());
    check((await hash()).includes("sort=-Time"), "the order of time turned:", await hash());
}

async function look(of, view) {
    for (const scheme of ["light", "dark"])
        for (const width of [1280, 500]) {
            const where = `${of === diff ? "diff, " : of === trace ? "trace, " : ""}${view}, ${scheme}, ${width} px`;
            await page.emulateMediaFeatures([{ name: "prefers-color-scheme", value: scheme }]);
            await page.setViewport({ width, height: 800 });
            await page.goto(`file://${of}#view=${view}`);
            await page.reload();
            await page.waitForSelector("html[data-ready]");
            await page.evaluate(axe);
            const result = await page.evaluate(() => axe.run());
            for (const violation of result.violations)
                failures.push(`axe, ${where}: ${violation.id}: ${violation.help}: ` +
                    violation.nodes.map((n) => n.html.slice(0, 120)).slice(0, 3).join(" | "));
            const wide = await page.evaluate(() => document.documentElement.scrollWidth > window.innerWidth);
            check(!wide, "the page is wider than the window:", where);
        }
}

try {
    await drive();
} catch (e) {
    failures.push(`${e.message}, at ${await hash()}`);
}
await browser.close();
for (const line of failures) console.log("not ok -", line);
if (!failures.length) console.log("ok - three pages, by keyboard, in six views, two schemes, two widths");
process.exit(failures.length ? 1 : 0);
