// SPDX-License-Identifier: BSD-2-Clause
// The head of the page: tabs of views, choices of what is shown, the search, and the list of keys.

import type { Context } from "./context";
import { colours, el, keepFocus } from "./dom";
import type { Paint } from "./paint";
import type { Amount } from "./profile";
import { SHADING_LABELS, type Shading } from "./shades";
import type { SourceTable } from "./source";
import type { State, View } from "./state";
import type { Table } from "./table";

const VIEW_LABELS: Record<View, string> = {
    flame: "Flame graph", treemap: "Treemap", timeline: "Timeline", tables: "Tables", events: "Events", text: "Summary",
};

const KEYS_HELP: [string, string][] = [
    ["1 – 6", "the views"],
    ["/", "search (a regular expression); Esc leaves the search"],
    ["Arrows", "move to another box or row"],
    ["Enter", "zoom in; of a table: show the function's callees"],
    ["Esc", "zoom out"],
    ["f", "callers or callees of the function alone"],
    ["m", "the next metric"],
    ["d", "the direction: called functions, or callers"],
    ["r", "fold recursion and wrappers of allocators, or do not"],
    ["o", "the next meaning of colours"],
    ["< >", "an earlier or a later stored moment"],
    ["c", "copy the table"],
    ["?", "this list"],
];

/** What the head makes the page do. */
export interface Owner {
    readonly table: Table;
    currentTable(): SourceTable;
    focusView(): void;
    copy(): void;
}

export class Controls {
    readonly search = el("input", { type: "search", placeholder: "Search (/)", "aria-label": "Search" });
    private readonly tabs = el("nav", { role: "tablist", "aria-label": "Views" });
    private readonly element = el("div", { class: "controls" });
    private readonly help = el("dialog", { "aria-label": "Keys" });

    constructor(private readonly context: Context, private readonly paint: Paint, private readonly owner: Owner) {
        this.search.addEventListener("input", () => context.set({ search: this.search.value }));
        this.search.addEventListener("keydown", (e) => {
            if (e.key === "Escape" || e.key === "Enter") owner.focusView();
            e.stopPropagation();
        });
        this.help.append(el("h2", {}, "Keys"),
            el("dl", {}, ...KEYS_HELP.flatMap(([key, what]) => [el("dt", {}, key), el("dd", {}, what)])),
            el("form", { method: "dialog" }, el("button", {}, "Close")));
    }

    /** Puts the head on the page. */
    place(title: string, moments: HTMLElement, found: HTMLElement): void {
        document.body.prepend(el("header", {}, el("h1", {}, title), this.tabs, this.element, moments,
            el("div", { class: "searching" }, this.search, found,
                el("button", { title: "Keys (?)", "aria-label": "Keys", onclick: () => this.showHelp() }, "?"))));
        document.body.append(this.help);
    }

    get isHelpOpen(): boolean {
        return this.help.open;
    }

    showHelp(): void {
        this.help.showModal();
    }

    nextMetric(): void {
        const all = this.metrics();
        const at = all.findIndex(([key]) => key === `${this.context.metric.key} ${this.context.metric.amount}`);
        this.setMetric(all[(at + 1) % all.length][0]);
    }

    show(): void {
        this.fillTabs();
        this.fillControls();
        const { search } = this.context.state;
        if (this.search.value !== search) this.search.value = search;
    }

    private select<T extends string>(label: string, options: [T, string][], value: T, set: (value: T) => void): HTMLElement {
        const e = el("select", { onchange: (event: Event) => set((event.target as HTMLSelectElement).value as T) },
            ...options.map(([key, text]) => el("option", { value: key, selected: key === value }, text)));
        e.setAttribute("aria-label", label);
        e.title = label;
        return e;
    }

    private metrics(): [string, string][] {
        const { metrics } = this.context.shown; // not those of single captures
        return metrics.filter((m) => !m.label.includes("capture")).map((m): [string, string] => [`${m.metric.key} ${m.metric.amount}`, m.label]);
    }

    private setMetric(words: string): void {
        const space = words.lastIndexOf(" ");
        this.context.set({ key: words.slice(0, space), amount: words.slice(space + 1) as Amount });
    }

    private fillControls(): void {
        const s = this.context.state;
        const made: HTMLElement[] = [];
        if (s.view !== "text" && s.view !== "events" && (s.view !== "timeline" || this.context.source.groups.length === 1))
            made.push(this.select("Show", this.metrics(), `${this.context.metric.key} ${this.context.metric.amount}`, (words) => this.setMetric(words)));
        if (s.view === "flame") {
            const directions: [State["direction"], string][] = [["down", "from the top down"], ["up", "from the bottom up"]];
            if (s.focus)
                directions.push(["callees", `what ${s.focus} calls`], ["callers", `what calls ${s.focus}`]);
            made.push(this.select("Direction", directions, s.direction, (direction) => this.context.set({ direction, zoom: [] })));
            made.push(el("label", {}, el("input", { type: "checkbox", checked: s.fold, title: "Fold recursion, and wrappers of allocators (r)",
                onchange: (e: Event) => this.context.set({ fold: (e.target as HTMLInputElement).checked }) }), "fold"));
            if (s.zoom.length) made.push(el("button", { onclick: () => this.context.set({ zoom: [] }) }, "Zoom out"));
        }
        if (s.view === "treemap")
            made.push(this.select("By", this.context.source.partings.map((p): [string, string] => [p, p]), s.parting, (parting) => this.context.set({ parting, part: [] })));
        if (s.view === "flame" || s.view === "treemap") {
            const choices: [Shading | "", string][] = this.paint.shadings().map((c) => [c, `coloured ${SHADING_LABELS[c]}`]);
            if (s.view === "treemap") choices.unshift(["", "coloured by part"]);
            if (choices.length > 1) made.push(this.select("Colour", choices, this.paint.shading(), (colour) => this.context.set({ colour })));
            const shading = this.paint.shading();
            const legend = shading && this.paint.shades().legend(shading, colours());
            if (legend) made.push(legend);
        }
        if (s.view === "tables") {
            if (this.context.source.groups.length > 1)
                made.push(this.select("By", this.context.source.groups.map((g): [string, string] => [g, g]), s.group,
                    (group) => this.context.set({ group })));
            const columns = el("details", { class: "columns" }, el("summary", {}, "Columns"),
                el("div", {}, ...this.owner.currentTable().columns.map((c) =>
                    el("label", {}, el("input", { type: "checkbox", checked: !this.owner.table.isHidden(c.label),
                        onchange: () => this.owner.table.toggle(c.label) }), c.label))));
            made.push(columns, el("button", { onclick: () => this.owner.copy() }, "Copy"));
        }
        keepFocus(this.element, () => this.element.replaceChildren(...made));
    }

    private fillTabs(): void {
        keepFocus(this.tabs, () => this.tabs.replaceChildren(...this.context.views().map((view, i) =>
            el("button", { role: "tab", "aria-selected": String(view === this.context.state.view), title: `Key ${i + 1}`,
                onclick: () => { this.context.set({ view }); this.owner.focusView(); } }, VIEW_LABELS[view]))));
    }
}
