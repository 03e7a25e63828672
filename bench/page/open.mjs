// SPDX-License-Identifier: BSD-2-Clause
// open.mjs VIEWER ADDRESS LONGEST_S: opens a page in a browser of its own, and prints how many seconds it took from the
// navigation until the picture of the profile was drawn; "-": longer than LONGEST_S.
import puppeteer from "puppeteer-core";

const [viewer, address, longest] = process.argv.slice(2);
const timeout = Number(longest) * 1000;

/** True once the viewer shows the profile. */
const isShown = {
    allium: () => document.documentElement.hasAttribute("data-ready"),
    // The toolbar has the profile's name from when the profile is drawn.
    speedscope: () => !!document.querySelector("canvas") && document.body.innerText.includes("profile.folded"),
    "d3-flame-graph": () => document.querySelectorAll("#chart svg .frame").length > 1,
}[viewer];

const browser = await puppeteer.launch({
    executablePath: "/usr/bin/chromium", protocolTimeout: 2 * timeout,
    args: ["--no-sandbox", "--allow-file-access-from-files"],
});
try {
    const page = await browser.newPage();
    await page.setViewport({ width: 1280, height: 800 });
    await page.goto("about:blank");
    const began = performance.now();
    try {
        await page.goto(address, { timeout, waitUntil: "domcontentloaded" });
        await page.waitForFunction(isShown, { timeout, polling: "raf" });
        await page.evaluate(() => new Promise((done) => requestAnimationFrame(() => setTimeout(done))));
        console.log(((performance.now() - began) / 1000).toFixed(3));
    } catch (e) {
        if (e.name !== "TimeoutError") throw e;
        console.log("-");
    }
} finally {
    await browser.close();
}
