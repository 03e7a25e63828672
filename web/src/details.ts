// SPDX-License-Identifier: BSD-2-Clause
// The line at the bottom, which has the figures of what is selected, and the figures beside the search.

import { SIDES, changeOf, sideOf, verdictOf, type Change } from "./change";
import { hasProfileRows, type Context } from "./context";
import { el } from "./dom";
import { intervalOf, type Estimate, type Interval } from "./estimate";
import { formatDuration, formatInterval, formatShare, formatSigned } from "./format";
import type { Paint } from "./paint";
import { describeColumns } from "./rows";
import { Summing } from "./slowly";
import type { SourceTable } from "./source";
import type { Box, Tree } from "./tree";
import { rowsOfPart, type Part } from "./treemap";

export class Details {
    readonly element = el("div", { class: "details", role: "status" });
    readonly found = el("span", { class: "found", role: "status" });
    private readonly selecting = new Summing();
    private readonly searching = new Summing();

    constructor(private readonly context: Context, private readonly paint: Paint) {}

    /** Another view, or other figures, are about to be shown. */
    begin(): void {
        this.found.textContent = "";
        this.searching.stop();
        this.selecting.stop();
    }

    clear(): void {
        this.element.replaceChildren();
    }

    /** `i`: the figures, whole, for scripts. */
    say(name: string, figures: string, place = "", i?: Interval): void {
        for (const key of ["value", "low", "high"] as const)
            if (i) this.element.dataset[key] = String(i[key]);
            else delete this.element.dataset[key];
        this.element.replaceChildren(el("b", {}, name), " ", figures,
            place ? el("span", { class: "place" }, place) : "");
    }

    /** What a search has found: its sum at once, and the interval when that is known. `rows` null: it is exact. */
    sayFound(value: number, rows: Iterable<number> | null): void {
        const all = this.context.metricData.total.value;
        const { amount } = this.context.metric;
        const tell = (i: Interval) => {
            this.found.textContent = `${formatInterval(i, amount)}, ${formatShare(value, all)}`;
            for (const key of ["value", "low", "high"] as const) this.found.dataset[key] = String(i[key]);
        };
        tell({ value, low: value, high: value });
        if (rows) this.searching.start(this.context.profile, [this.context.metric], rows, ([e]) => tell(intervalOf(e)));
    }

    /** Says what these rows have: the value at once, its interval or its change when they are known. */
    sayRows(name: string, value: number, rows: Iterable<number>, place = "", words = ""): void {
        const { amount } = this.context.metric;
        const { label } = this.context.metricData;
        const all = this.context.profile.total(this.context.metric).value;
        const tell = (i: Interval | null) => {
            const figures = i ? formatInterval(i, amount) : formatInterval({ value, low: value, high: value }, amount);
            this.say(name, `${label}${words}: ${figures}, ${formatShare(value, all)} of all`, place, i ?? undefined);
        };
        if (!this.context.profile.isDiff) {
            tell(null);
            this.selecting.start(this.context.profile, [this.context.metric], rows, ([e]) => tell(intervalOf(e)));
            return;
        }
        tell(null);
        const metrics = SIDES.map((side) => sideOf(this.context.metric, side));
        this.selecting.start(this.context.profile, metrics, rows, (sums) => {
            const of = Object.fromEntries(SIDES.map((side, k) => [side, sums[k]])) as Record<(typeof SIDES)[number], Estimate>;
            this.sayChange(name, changeOf(of), place, words);
        });
    }

    sayChange(name: string, c: Change, place: string, words: string): void {
        const { amount } = this.context.metric;
        const range = c.low === c.high ? "" : ` (${formatSigned(c.low, amount)} – ${formatSigned(c.high, amount)})`;
        const label = this.context.metricData.label.replace(/,[^,]*$/, "");
        this.say(name, `${label}${words}: ${formatSigned(c.value, amount)}${range}, ${verdictOf(c)}; before ` +
            `${formatInterval(c.before, amount)}, after ${formatInterval(c.after, amount)}`, place, c);
    }

    describeBox(box: Box, tree: Tree): void {
        const inlined = box.frame >= 0 && this.context.profile.isInlined(box.frame) ? ", inlined" : "";
        const place = box.frame < 0 ? "" : this.context.profile.place(box.frame, box.line) + inlined;
        const words = this.ageOf(box, tree);
        if (box.frame < 0 && !this.context.profile.isDiff) {
            const i = this.context.profile.total(this.context.metric);
            this.say("all", `${this.context.metricData.label}: ${formatInterval(i, this.context.metric.amount)}`, "", i);
            return;
        }
        this.sayRows(tree.name(box), box.value, tree.rows(box), place + words);
    }

    ageOf(box: Box, tree: Tree): string {
        if (!this.context.profile.rowOldest || box.frame < 0) return "";
        const age = this.paint.shades().oldestOfNodes(tree.nodes(box), tree.showsOwnOnly);
        return age > 0 ? `, oldest object ${formatDuration(age)}` : "";
    }

    describePart(path: Part[]): void {
        const part = path[path.length - 1];
        const name = path.slice(1).map((p) => p.name).join("/") || "all";
        if (hasProfileRows(this.context)) {
            this.sayRows(name, part.value, rowsOfPart(part));
            return;
        }
        const i = { value: part.value, low: part.value, high: part.value };
        this.say(name, `${formatInterval(i, this.context.metric.amount)}, ${formatShare(part.value, path[0].value)} of all`, "", i);
    }

    describeRow(row: number, table: SourceTable): void {
        const frame = table.frames[row];
        const first = table.columns[0];
        if (!table.total) {
            this.say(first.texts ? first.texts(row) : String(first.numbers![row]), describeColumns(table.columns, row));
            return;
        }
        const values = this.context.profile.values(this.context.metric);
        let value = 0;
        for (const i of table.total(row)) value += values[i];
        const isSite = this.context.state.group === "site";
        this.sayRows(first.texts!(row), value, table.total(row), frame >= 0 && !isSite ? this.context.profile.place(frame, 0) : "",
            isSite ? "" : ", total");
    }
}
