// SPDX-License-Identifier: BSD-2-Clause
// Unpacks the data and makes the page of them; a browser that cannot shows the text of the report.

import { Blob } from "./blob";
import { Page } from "./page";

async function start(): Promise<void> {
    const text = document.getElementById("text")!;
    const data = document.getElementById("data")!;
    if (typeof DecompressionStream === "undefined") {
        text.querySelector("#notice")!.textContent =
            "This browser is too old for the graphs of this page (it lacks DecompressionStream). What follows is the text of the report.";
        return;
    }
    const blob = await Blob.unpack(data.textContent ?? "");
    data.remove();
    new Page(blob, text);
    document.documentElement.dataset.ready = "1";
}

start().catch((e) => {
    document.querySelector("#notice")!.textContent = `The data of this page could not be read: ${e}`;
});
