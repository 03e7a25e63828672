// SPDX-License-Identifier: BSD-2-Clause
// The page: its state, which stands in the address, and the views, which all show it.

import { Blob } from "./blob";
import { el, keepFocus } from "./dom";
import { Flame } from "./flame";
import type { Interval } from "./estimate";
import { formatInterval, formatShare } from "./format";
import { Profile, profileOfBlob, type Amount, type Metric } from "./profile";
import { describeColumns, sourceOfRows } from "./rows";
import type { Source, SourceTable } from "./source";
import { Table } from "./table";
import { sourceOfProfile } from "./tables";
import { Timeline } from "./timeline";
import { Tree, boxAt, type Box } from "./tree";
import { Treemap } from "./treemap";

const VIEWS = ["flame", "treemap", "timeline", "tables", "text"] as const;
type View = (typeof VIEWS)[number];
const VIEW_LABELS: Record<View, string> = {
    flame: "Flame graph", treemap: "Treemap", timeline: "Timeline", tables: "Tables", text: "Summary",
};

interface State extends Metric {
    view: View;
    direction: "down" | "up" | "callers" | "callees";
    focus: string; // a function
    zoom: string[]; // names of boxes
    part: string[]; // of the treemap
    group: string;
    parting: string;
    sort: string;
    search: string;
    fold: boolean;
}

const KEYS_HELP: [string, string][] = [
    ["1 – 5", "the views"],
    ["/", "search (a regular expression); Esc leaves the search"],
    ["Arrows", "move to another box or row"],
    ["Enter", "zoom in; of a table: show the function's callees"],
    ["Esc", "zoom out"],
    ["f", "callers or callees of the function alone"],
    ["m", "the next metric"],
    ["d", "the direction: called functions, or callers"],
    ["r", "fold recursion and wrappers of allocators, or do not"],
    ["c", "copy the table"],
    ["?", "this list"],
];

class Page {
    private readonly source: Source;
    private state: State;
    private readonly flame: Flame;
    private readonly treemap: Treemap;
    private readonly table: Table;
    private readonly timeline = new Timeline();
    private readonly details = el("div", { class: "details", role: "status" });
    private readonly content = el("div", { id: "content" });
    private readonly tabs = el("nav", { role: "tablist", "aria-label": "Views" });
    private readonly controls = el("div", { class: "controls" });
    private readonly search = el("input", { type: "search", placeholder: "Search (/)", "aria-label": "Search" });
    private readonly found = el("span", { class: "found", role: "status" });
    private readonly text: HTMLElement;
    private readonly help = el("dialog", { "aria-label": "Keys" });
    private trees = new Map<string, Tree>();
    private tables = new Map<string, SourceTable>();

    constructor(blob: Blob, text: HTMLElement) {
        this.source = blob.header.table ? sourceOfRows(blob) : sourceOfProfile(new Profile(profileOfBlob(blob)));
        this.text = el("section", { class: "text", tabindex: "0", "aria-label": "Summary" }, text.querySelector("pre")!);
        this.state = this.fromHash();
        this.flame = new Flame({
            select: (box) => this.describeBox(box),
            zoom: (path) => this.set({ zoom: path }),
            focus: (box) => this.focusOn(this.profile.fullName(box.frame)),
        });
        this.treemap = new Treemap({
            select: (path) => {
                const top = path[0].value;
                const part = path[path.length - 1];
                const name = path.slice(1).map((p) => p.name).join("/") || "all";
                this.say(name, `${formatInterval({ value: part.value, low: part.value, high: part.value }, this.state.amount)}, ${formatShare(part.value, top)} of all`);
            },
            zoom: (path) => this.set({ part: path }),
        });
        this.table = new Table({
            select: (row) => this.describeRow(row),
            open: (row) => {
                const frame = this.currentTable().frames[row];
                if (frame >= 0) this.focusOn(this.profile.fullName(frame));
            },
            sort: (label) => this.set({ sort: label }),
        });
        this.search.addEventListener("input", () => this.set({ search: this.search.value }));
        this.search.addEventListener("keydown", (e) => {
            if (e.key === "Escape" || e.key === "Enter") this.focusView();
            e.stopPropagation();
        });
        window.addEventListener("hashchange", () => {
            this.state = this.fromHash();
            this.show();
        });
        document.addEventListener("keydown", (e) => this.key(e));
        matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => this.show());
        this.build();
        this.show();
        this.focusView();
    }

    // ---- state ----

    /** The profile: only where there is a flame graph. */
    private get profile(): Profile {
        return this.source.profile!;
    }

    private views(): View[] {
        const { source } = this;
        const has: Record<View, boolean> = {
            flame: source.profile !== null, treemap: source.partings.length > 0,
            timeline: source.curves(source.first) !== null, tables: true, text: true,
        };
        return VIEWS.filter((view) => has[view]);
    }

    private fromHash(): State {
        const h = new URLSearchParams(location.hash.slice(1));
        const one = <T extends string>(key: string, of: readonly T[], instead: T): T =>
            of.includes(h.get(key) as T) ? (h.get(key) as T) : instead;
        const { source } = this;
        const amount = h.get("amount") ?? "bytes";
        const metric = source.metrics.find((m) => m.metric.key === h.get("metric") && m.metric.amount === amount);
        const views = this.views();
        return {
            view: one("view", views, views[0]),
            ...(metric?.metric ?? source.first),
            direction: one("direction", ["down", "up", "callers", "callees"], "down"),
            focus: h.get("focus") ?? "",
            zoom: h.getAll("zoom"),
            part: h.getAll("part"),
            group: one("by", source.groups, source.groups[0]),
            parting: one("parts", source.partings, source.partings[0] ?? ""),
            sort: h.get("sort") ?? "",
            search: h.get("search") ?? "",
            fold: h.get("fold") === "1",
        };
    }

    private toHash(): string {
        const s = this.state;
        const h = new URLSearchParams();
        h.set("view", s.view);
        h.set("metric", s.key);
        if (s.amount !== "bytes") h.set("amount", s.amount);
        if (s.direction !== "down") h.set("direction", s.direction);
        if (s.focus) h.set("focus", s.focus);
        for (const name of s.zoom) h.append("zoom", name);
        for (const name of s.part) h.append("part", name);
        if (s.group !== this.source.groups[0]) h.set("by", s.group);
        if (s.parting !== this.source.partings[0]) h.set("parts", s.parting);
        if (s.sort) h.set("sort", s.sort);
        if (s.search) h.set("search", s.search);
        if (s.fold) h.set("fold", "1");
        return "#" + h.toString();
    }

    private set(change: Partial<State>): void {
        this.state = { ...this.state, ...change };
        history.replaceState(null, "", this.toHash());
        this.show();
    }

    private get metric(): Metric {
        return { key: this.state.key, amount: this.state.amount };
    }

    private metricData(): Source["metrics"][number] {
        const { key, amount } = this.state;
        return this.source.metrics.find((m) => m.metric.key === key && m.metric.amount === amount)!;
    }

    private focusOn(name: string): void {
        const direction = this.state.direction === "callers" ? "callers" : "callees";
        this.set({ view: "flame", direction, focus: name, zoom: [] });
        this.focusView();
    }

    // ---- what is shown ----

    private build(): void {
        const title = document.querySelector("h1")!.textContent ?? "";
        document.body.classList.add("app");
        const head = el("header", {}, el("h1", {}, title), this.tabs, this.controls,
            el("div", { class: "searching" }, this.search, this.found,
                el("button", { title: "Keys (?)", "aria-label": "Keys", onclick: () => this.help.showModal() }, "?")));
        this.help.append(el("h2", {}, "Keys"),
            el("dl", {}, ...KEYS_HELP.flatMap(([key, what]) => [el("dt", {}, key), el("dd", {}, what)])),
            el("form", { method: "dialog" }, el("button", {}, "Close")));
        document.body.prepend(head);
        this.content.replaceChildren();
        document.querySelector("main")!.remove();
        document.body.append(el("main", {}, this.content, this.details), this.help);
    }

    private select<T extends string>(label: string, options: [T, string][], value: T, set: (value: T) => void): HTMLElement {
        const e = el("select", { onchange: (event: Event) => set((event.target as HTMLSelectElement).value as T) },
            ...options.map(([key, text]) => el("option", { value: key, selected: key === value }, text)));
        e.setAttribute("aria-label", label);
        e.title = label;
        return e;
    }

    private metrics(): [string, string][] {
        return this.source.metrics.map((m): [string, string] => [`${m.metric.key} ${m.metric.amount}`, m.label]);
    }

    private setMetric(words: string): void {
        const [key, amount] = words.split(" ");
        this.set({ key, amount: amount as Amount });
    }

    private fillControls(): void {
        const s = this.state;
        const made: HTMLElement[] = [];
        if (s.view !== "text" && (s.view !== "timeline" || this.source.groups.length === 1))
            made.push(this.select("Show", this.metrics(), `${s.key} ${s.amount}`, (words) => this.setMetric(words)));
        if (s.view === "flame") {
            const directions: [State["direction"], string][] = [["down", "from the top down"], ["up", "from the bottom up"]];
            if (s.focus)
                directions.push(["callees", `what ${s.focus} calls`], ["callers", `what calls ${s.focus}`]);
            made.push(this.select("Direction", directions, s.direction, (direction) => this.set({ direction, zoom: [] })));
            made.push(el("label", {}, el("input", { type: "checkbox", checked: s.fold, title: "Fold recursion, and wrappers of allocators (r)",
                onchange: (e: Event) => this.set({ fold: (e.target as HTMLInputElement).checked }) }), "fold"));
            if (s.zoom.length) made.push(el("button", { onclick: () => this.set({ zoom: [] }) }, "Zoom out"));
        }
        if (s.view === "treemap")
            made.push(this.select("By", this.source.partings.map((p): [string, string] => [p, p]), s.parting, (parting) => this.set({ parting, part: [] })));
        if (s.view === "tables") {
            if (this.source.groups.length > 1)
                made.push(this.select("By", this.source.groups.map((g): [string, string] => [g, g]), s.group,
                    (group) => this.set({ group })));
            const columns = el("details", { class: "columns" }, el("summary", {}, "Columns"),
                el("div", {}, ...this.currentTable().columns.map((c) =>
                    el("label", {}, el("input", { type: "checkbox", checked: !this.table.isHidden(c.label),
                        onchange: () => this.table.toggle(c.label) }), c.label))));
            made.push(columns, el("button", { onclick: () => this.copy() }, "Copy"));
        }
        keepFocus(this.controls, () => this.controls.replaceChildren(...made));
    }

    private fillTabs(): void {
        keepFocus(this.tabs, () => this.tabs.replaceChildren(...this.views().map((view, i) =>
            el("button", { role: "tab", "aria-selected": String(view === this.state.view), title: `Key ${i + 1}`,
                onclick: () => { this.set({ view }); this.focusView(); } }, VIEW_LABELS[view]))));
    }

    private show(): void {
        const s = this.state;
        this.fillTabs();
        this.fillControls();
        if (this.search.value !== s.search) this.search.value = s.search;
        const element = {
            flame: this.flame.element, treemap: this.treemap.element, tables: this.table.element, text: this.text,
            timeline: this.timeline.element,
        }[s.view];
        if (this.content.firstElementChild !== element) this.content.replaceChildren(element);
        const pattern = this.pattern();
        const matches = pattern && ((name: string) => pattern.test(name));
        this.found.textContent = "";
        if (s.view === "flame") this.showFlame(matches);
        else if (s.view === "treemap")
            this.treemap.show(this.source.parts(s.parting, this.metric), s.part, s.amount, matches);
        else if (s.view === "tables") this.showTable(matches);
        else this.details.replaceChildren();
        if (s.view === "timeline") this.timeline.show(this.source.curves(this.metric)!);
    }

    private pattern(): RegExp | null {
        if (!this.state.search) return null;
        try {
            return new RegExp(this.state.search, "i");
        } catch {
            return new RegExp(this.state.search.replace(/[.*+?^${}()|[\]\\]/g, "\\$&"), "i");
        }
    }

    private tree(): Tree {
        const s = this.state;
        const focused = s.direction === "callers" || s.direction === "callees";
        const focus = focused ? this.groupOf(s.focus) : -1;
        const key = [s.key, s.amount, s.direction, focus, s.fold].join(" ");
        let tree = this.trees.get(key);
        if (!tree) {
            tree = new Tree(this.profile, {
                metric: this.metric, focus, foldRecursion: s.fold, foldWrappers: s.fold,
                direction: s.direction === "up" || s.direction === "callers" ? "up" : "down",
            });
            this.trees.clear(); // one at a time: boxes are many
            this.trees.set(key, tree);
        }
        return tree;
    }

    private groupOf(name: string): number {
        for (let frame = 0; frame < this.profile.functionOf.length; frame++)
            if (this.profile.fullName(frame) === name) return this.profile.group[frame];
        return -1;
    }

    private showFlame(matches: ((name: string) => boolean) | null): void {
        const tree = this.tree();
        let found: ((frame: number) => boolean) | null = null;
        if (matches) {
            const known = Array.from(this.profile.functionOf, (_, frame) =>
                matches(this.profile.name(frame)) || matches(this.profile.file(frame)) || matches(this.profile.module(frame)));
            found = (frame) => known[frame];
            const ranges = this.outermostMatches(known);
            const sum = this.profile.interval(this.metric, ranges);
            this.found.textContent = `${formatInterval(sum, this.state.amount)}, ${formatShare(sum.value, this.profile.total(this.metric).value)}`;
        }
        this.flame.show(tree, boxAt(tree, this.state.zoom), found);
    }

    private outermostMatches(matches: boolean[]): [number, number][] {
        const { profile } = this;
        const ranges: [number, number][] = [];
        for (let i = 1; i < profile.nodes; )
            if (matches[profile.frame[i]]) {
                ranges.push([i, profile.end[i]]);
                i = profile.end[i];
            } else i++;
        return ranges;
    }

    private currentTable(): SourceTable {
        const key = `${this.state.group} ${this.state.key} ${this.state.amount}`;
        let found = this.tables.get(key);
        if (!found) this.tables.set(key, (found = this.source.table(this.state.group, this.metric)));
        return found;
    }

    private showTable(matches: ((name: string) => boolean) | null): void {
        const data = this.currentTable();
        const texts = data.columns.filter((c) => c.texts).map((c) => c.texts!);
        const filter = matches && ((row: number) => texts.some((text) => matches(text(row))));
        const usual = this.source.groups.length === 1 ? this.metricData().label : ""; // a table without groups: by what is chosen above
        this.table.show(data, this.state.sort || usual, filter);
        this.say(filter ? `${this.table.shown} of ${data.rows} rows` : `${data.rows} rows`, "");
    }

    // ---- the line at the bottom ----

    /** `i`: the figures, whole, for scripts. */
    private say(name: string, figures: string, place = "", i?: Interval): void {
        for (const key of ["value", "low", "high"] as const)
            if (i) this.details.dataset[key] = String(i[key]);
            else delete this.details.dataset[key];
        this.details.replaceChildren(el("b", {}, name), " ", figures,
            place ? el("span", { class: "place" }, place) : "");
    }

    private describeBox(box: Box): void {
        const tree = this.tree();
        const i = tree.interval(box);
        const all = this.profile.total(this.metric).value;
        const figures = `${this.metricData().label}: ${formatInterval(i, this.state.amount)}, ${formatShare(i.value, all)} of all`;
        const place = box.frame < 0 ? "" : this.profile.place(box.frame, box.line);
        const inlined = box.frame >= 0 && this.profile.isInlined(box.frame) ? ", inlined" : "";
        this.say(tree.name(box), figures, place + inlined, i);
    }

    private describeRow(row: number): void {
        const table = this.currentTable();
        const frame = table.frames[row];
        if (this.state.group !== "function" || frame < 0) {
            const first = table.columns[0];
            this.say(first.texts ? first.texts(row) : String(first.numbers![row]), describeColumns(table.columns, row));
            return;
        }
        const group = this.profile.group[frame];
        const ranges = this.outermostMatches(Array.from(this.profile.group, (g) => g === group));
        const i = this.profile.interval(this.metric, ranges);
        this.say(this.profile.name(frame), `${this.metricData().label}, total: ${formatInterval(i, this.state.amount)}`,
            this.profile.place(frame, 0), i);
    }

    // ---- keys ----

    private focusView(): void {
        (this.content.querySelector("[tabindex]") as HTMLElement | null)?.focus({ preventScroll: true });
    }

    private copy(): void {
        void navigator.clipboard?.writeText(this.table.copyText()).then(() => this.say("Copied", ""));
    }

    private key(e: KeyboardEvent): void {
        if (e.ctrlKey || e.altKey || e.metaKey || this.help.open || e.target instanceof HTMLInputElement || e.target instanceof HTMLSelectElement)
            return;
        const views = this.views();
        const number = Number(e.key) - 1;
        if (views[number]) {
            this.set({ view: views[number] });
            this.focusView();
        } else if (e.key === "/") this.search.focus();
        else if (e.key === "?") this.help.showModal();
        else if (e.key === "m") {
            const all = this.metrics();
            const at = all.findIndex(([key]) => key === `${this.state.key} ${this.state.amount}`);
            this.setMetric(all[(at + 1) % all.length][0]);
        } else if (e.key === "d") this.set({ direction: this.state.direction === "up" ? "down" : "up", zoom: [] });
        else if (e.key === "r") this.set({ fold: !this.state.fold });
        else if (e.key === "c" && this.state.view === "tables") this.copy();
        else return;
        e.preventDefault();
    }
}

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
