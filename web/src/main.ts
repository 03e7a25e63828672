// SPDX-License-Identifier: BSD-2-Clause
// The page: its state, which stands in the address, and the views, which all show it.

import { Blob } from "./blob";
import { SIDES, changeOf, sideOf, verdictOf, type Change } from "./change";
import { colourOf, colours, el, keepFocus, type Colours } from "./dom";
import { intervalOf, type Estimate, type Interval } from "./estimate";
import { Flame } from "./flame";
import { formatDuration, formatInterval, formatShare, formatSigned } from "./format";
import { Profile, profileOfBlob, type Amount, type Metric } from "./profile";
import { describeColumns, sourceOfRows } from "./rows";
import { SHADING_LABELS, Shades, colourOfChange, shadingsOf, type Shading } from "./shades";
import { Summing } from "./slowly";
import type { Source, SourceTable } from "./source";
import { VIEWS, hashOfState, stateOfHash, type State, type View } from "./state";
import { Table } from "./table";
import { sourceOfProfile } from "./tables";
import { Timeline, zeroOf } from "./timeline";
import { Tree, boxAt, type Box } from "./tree";
import { Treemap, rowsOfPart, type PaintPart, type Part } from "./treemap";

const VIEW_LABELS: Record<View, string> = {
    flame: "Flame graph", treemap: "Treemap", timeline: "Timeline", tables: "Tables", text: "Summary",
};

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
    ["o", "the next meaning of colours"],
    ["< >", "an earlier or a later stored moment"],
    ["c", "copy the table"],
    ["?", "this list"],
];

class Page {
    private readonly source: Source; // of the end
    private shown: Source; // of the moment that is chosen
    private shownAt = -1; // that moment; -1: the end
    private shownSeconds: number | null = null; // the time that was asked for
    private state: State;
    private readonly flame: Flame;
    private readonly treemap: Treemap;
    private readonly table: Table;
    private readonly timeline = new Timeline((seconds) => this.moveTo(seconds));
    private readonly details = el("div", { class: "details", role: "status" });
    private readonly content = el("div", { id: "content" });
    private readonly tabs = el("nav", { role: "tablist", "aria-label": "Views" });
    private readonly controls = el("div", { class: "controls" });
    private readonly slider = el("input", { type: "range", min: 0, step: 1, "aria-label": "Moment" });
    private readonly moment = el("output", {});
    private readonly moments = el("label", { class: "moments" }, "Moment", this.slider, this.moment);
    private readonly search = el("input", { type: "search", placeholder: "Search (/)", "aria-label": "Search" });
    private readonly found = el("span", { class: "found", role: "status" });
    private readonly text: HTMLElement;
    private readonly help = el("dialog", { "aria-label": "Keys" });
    private trees = new Map<string, Tree>();
    private tables = new Map<string, SourceTable>();
    private shades: [string, Shades] | null = null; // for a metric and a moment
    private boxColours = new WeakMap<Box | Part, string>(); // where they take some time
    private readonly selecting = new Summing();
    private readonly searching = new Summing();

    constructor(blob: Blob, text: HTMLElement) {
        this.source = blob.header.table ? sourceOfRows(blob) : sourceOfProfile(new Profile(profileOfBlob(blob)));
        this.shown = this.source;
        this.text = el("section", { class: "text", tabindex: "0", "aria-label": "Summary" }, text.querySelector("pre")!);
        this.state = stateOfHash(location.hash, this.source, this.views());
        this.flame = new Flame({
            select: (box) => this.describeBox(box),
            zoom: (path) => this.set({ zoom: path }),
            focus: (box) => this.focusOn(this.profile.fullName(box.frame)),
        });
        this.treemap = new Treemap({
            select: (path) => this.describePart(path),
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
            this.state = stateOfHash(location.hash, this.source, this.views());
            this.show();
        });
        this.slider.addEventListener("input", () => {
            const last = this.source.moments!.n;
            const at = Number(this.slider.value);
            this.set({ at: at < last ? this.secondsOf(at) : null });
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
        return this.shown.profile!;
    }

    private views(): View[] {
        const { source } = this;
        const has: Record<View, boolean> = {
            flame: source.profile !== null, treemap: source.partings.length > 0,
            timeline: source.curves(source.first) !== null, tables: true, text: true,
        };
        return VIEWS.filter((view) => has[view]);
    }

    private set(change: Partial<State>): void {
        this.state = { ...this.state, ...change };
        history.replaceState(null, "", hashOfState(this.state, this.source));
        this.show();
    }

    /** The metric that is chosen; of a moment in which it is not known, the first one. */
    private metricData(): Source["metrics"][number] {
        const { key, amount } = this.state;
        const is = (m: { metric: Metric }, k: string, a: Amount) => m.metric.key === k && m.metric.amount === a;
        const { metrics } = this.shown;
        return metrics.find((m) => is(m, key, amount)) ?? metrics.find((m) => m.metric.amount === amount) ?? metrics[0];
    }

    private get metric(): Metric {
        return this.metricData().metric;
    }

    // ---- moments ----

    /** A time for FILE@TIME at which this moment is the last one: of whole ms, if the next moment is later. */
    private secondsOf(moment: number): number {
        const { time_ms } = this.source.moments!.times;
        const zero = zeroOf(this.source.profile!);
        const ms = Math.ceil(time_ms[moment] - zero - 1e-3);
        const isLast = !(time_ms[moment + 1] - zero <= ms);
        return isLast ? ms / 1000 : (Math.ceil((time_ms[moment] - zero) * 1000) + 1) / 1e6;
    }

    /** The stored moment that was there at this time; -1: the end. */
    private momentAt(seconds: number | null): number {
        const { moments } = this.source;
        if (!moments || seconds === null) return -1;
        let found = 0;
        for (let i = 1; i < moments.n && this.secondsOf(i) <= seconds; i++) found = i;
        return found;
    }

    private moveTo(seconds: number): void {
        const { moments } = this.source;
        if (!moments) return;
        let nearest = 0;
        for (let i = 1; i < moments.n; i++)
            if (Math.abs(this.secondsOf(i) - seconds) < Math.abs(this.secondsOf(nearest) - seconds)) nearest = i;
        this.set({ at: this.secondsOf(nearest) });
    }

    private step(by: number): void {
        const { moments } = this.source;
        if (!moments) return;
        const now = this.shownAt < 0 ? moments.n : this.shownAt;
        const to = Math.max(0, Math.min(moments.n, now + by));
        this.set({ at: to < moments.n ? this.secondsOf(to) : null });
    }

    private showMoment(): void {
        const seconds = this.state.at;
        const at = this.momentAt(seconds);
        if (seconds !== this.shownSeconds) {
            this.shown = seconds === null ? this.source : this.source.at(at, zeroOf(this.source.profile!) + seconds * 1000);
            this.shownAt = at;
            this.shownSeconds = seconds;
            this.trees.clear();
            this.tables.clear();
        }
        const { moments } = this.source;
        this.moments.hidden = !moments || this.state.view === "text";
        if (!moments) return;
        this.slider.max = String(moments.n);
        this.slider.value = String(at < 0 ? moments.n : at);
        const text = seconds === null ? "end" : `@${seconds}s`;
        this.moment.value = text;
        this.slider.setAttribute("aria-valuetext", text);
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
        const head = el("header", {}, el("h1", {}, title), this.tabs, this.controls, this.moments,
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
        return this.shown.metrics.map((m): [string, string] => [`${m.metric.key} ${m.metric.amount}`, m.label]);
    }

    private setMetric(words: string): void {
        const space = words.lastIndexOf(" ");
        this.set({ key: words.slice(0, space), amount: words.slice(space + 1) as Amount });
    }

    private fillControls(): void {
        const s = this.state;
        const made: HTMLElement[] = [];
        if (s.view !== "text" && (s.view !== "timeline" || this.source.groups.length === 1))
            made.push(this.select("Show", this.metrics(), `${this.metric.key} ${this.metric.amount}`, (words) => this.setMetric(words)));
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
        if (s.view === "flame" || s.view === "treemap") {
            const choices: [Shading | "", string][] = this.shadings().map((c) => [c, `coloured ${SHADING_LABELS[c]}`]);
            if (s.view === "treemap") choices.unshift(["", "coloured by part"]);
            if (choices.length > 1) made.push(this.select("Colour", choices, this.shading(), (colour) => this.set({ colour })));
            const shading = this.shading();
            const legend = shading && this.shadesNow().legend(shading, colours());
            if (legend) made.push(legend);
        }
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
        this.showMoment();
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
        this.searching.stop();
        this.selecting.stop();
        if (s.view === "flame") this.showFlame(matches);
        else if (s.view === "treemap") this.showTreemap(matches);
        else if (s.view === "tables") this.showTable(matches);
        else this.details.replaceChildren();
        if (s.view === "timeline") this.showTimeline();
    }

    private showTimeline(): void {
        const { moments } = this.source;
        this.timeline.show(this.source.curves(this.metric)!, this.shownAt < 0 ? null : this.secondsOf(this.shownAt));
        if (!moments) return;
        const { times } = moments;
        const at = this.shownAt < 0 ? moments.n - 1 : this.shownAt;
        const i = { value: times.live_bytes[at], low: times.live_bytes_low[at], high: times.live_bytes_high[at] };
        this.say(`@${this.secondsOf(at)}s`, `Live: ${formatInterval(i, "bytes")}, at the stored moment; the band is the 95 % interval at all ${moments.n}`, "", i);
    }

    private showTreemap(matches: ((name: string) => boolean) | null): void {
        const s = this.state;
        const root = this.shown.parts(s.parting, this.metric);
        this.treemap.show(root, s.part, this.metric.amount, matches, this.partColour());
        if (!matches) return;
        const found: Part[] = [];
        const open = [root];
        for (let p = open.pop(); p; p = open.pop())
            if (p !== root && matches(p.name)) found.push(p);
            else open.push(...p.kids.values());
        const value = found.reduce((sum, p) => sum + p.value, 0);
        this.sayFound(value, this.profileRows() ? found.flatMap(rowsOfPart) : null);
    }

    // ---- colours ----

    private shadings(): Shading[] {
        const { profile } = this.shown;
        return profile && (this.state.view === "flame" || this.profileRows()) ? shadingsOf(profile) : [];
    }

    /** What colours mean now; "": a part of the treemap has that of the part around it. */
    private shading(): Shading | "" {
        const s = this.state;
        const has = this.shadings();
        if (s.colour && has.includes(s.colour)) return s.colour;
        if (has.includes("difference")) return "difference";
        return s.view === "flame" ? "module" : "";
    }

    private nextShading(): void {
        const all: (Shading | "")[] = this.shadings();
        if (this.state.view === "treemap" && all.length) all.unshift("");
        if (all.length) this.set({ colour: all[(all.indexOf(this.shading()) + 1) % all.length] });
    }

    private shadesNow(): Shades {
        const key = [this.metric.key, this.metric.amount, this.shownSeconds].join(" ");
        if (this.shades?.[0] !== key) this.shades = [key, new Shades(this.profile, this.metric)];
        return this.shades[1];
    }

    private boxColour(tree: Tree): (box: Box, c: Colours) => string {
        const shading = this.shading();
        const shades = this.shadesNow();
        const { profile } = this;
        if (shading === "difference") {
            this.boxColours = new WeakMap();
            return (box, c) => {
                let found = this.boxColours.get(box);
                if (!found) this.boxColours.set(box, (found = colourOfChange(shades.change([...tree.rows(box)]), c.dark)));
                return found;
            };
        }
        if (shading === "age")
            return (box, c) => shades.colourOfAge(shades.oldestOfNodes(tree.nodes(box), tree.showsOwnOnly), c);
        return (box, c) => {
            if (box.frame < 0) return colourOf("", "", c.dark);
            const hue = shading === "owner" ? shades.ownerOfNodes(tree.nodes(box)) : profile.owner(box.frame);
            return colourOf(hue, tree.name(box), c.dark);
        };
    }

    private partColour(): PaintPart {
        const shading = this.shading();
        if (!shading) return null;
        const shades = this.shadesNow();
        const made = new Map<Part, string>();
        const make = (part: Part, c: Colours): string => {
            const rows = rowsOfPart(part);
            if (shading === "difference") return colourOfChange(shades.change(rows), c.dark);
            if (shading === "age") return shades.colourOfAge(shades.oldestOfRows(rows), c);
            return colourOf(shading === "owner" ? shades.ownerOfRows(rows) : shades.moduleOfRows(rows), part.name, c.dark);
        };
        return (part, c) => {
            let found = made.get(part);
            if (!found) made.set(part, (found = make(part, c)));
            return found;
        };
    }

    /** Do parts and tables tell which rows of the profile they have? */
    private profileRows(): boolean {
        return this.shown.profile !== null && this.shown.groups.length > 1;
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
        const key = [this.metric.key, this.metric.amount, s.direction, focus, s.fold].join(" ");
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
            const { profile } = this;
            const known = Uint8Array.from(profile.functionOf, (_, frame) =>
                Number(matches(profile.name(frame)) || matches(profile.file(frame)) || matches(profile.module(frame))));
            found = (frame) => known[frame] === 1;
            const nodes = this.outermostMatches(known);
            const { inclusive } = profile.sumsOf(this.metric);
            let sum = 0;
            for (let k = 0; k < nodes.length; k++) sum += inclusive[nodes[k]];
            this.sayFound(sum, profile.rowsBelow(nodes));
        }
        this.flame.show(tree, boxAt(tree, this.state.zoom), found, this.boxColour(tree));
    }

    private outermostMatches(matches: Uint8Array): Uint32Array {
        const { frame, end, nodes } = this.profile;
        const found = new Uint32Array(nodes);
        let n = 0;
        for (let i = 1; i < nodes; )
            if (matches[frame[i]]) {
                found[n++] = i;
                i = end[i];
            } else i++;
        return found.subarray(0, n);
    }

    private currentTable(): SourceTable {
        const key = `${this.state.group} ${this.metric.key} ${this.metric.amount}`;
        let found = this.tables.get(key);
        if (!found) this.tables.set(key, (found = this.shown.table(this.state.group, this.metric)));
        return found;
    }

    private showTable(matches: ((name: string) => boolean) | null): void {
        const data = this.currentTable();
        const texts = data.columns.filter((c) => c.texts && !c.isFigure).map((c) => c.texts!);
        const known = new Map<string, boolean>();
        const fits = (text: string): boolean => {
            let is = known.get(text);
            if (is === undefined) known.set(text, (is = matches!(text)));
            return is;
        };
        const filter = matches && ((row: number) => texts.some((text) => fits(text(row))));
        const usual = this.source.groups.length === 1 ? this.metricData().label : ""; // a table without groups: by what is chosen above
        this.table.show(data, this.state.sort || usual, filter);
        this.say(filter ? `${this.table.shown} of ${data.rows} rows` : `${data.rows} rows`, "");
        if (!filter || !data.self) return;
        const { self } = data;
        const values = this.profile.values(this.metric);
        const rows = [...this.table.shownRows].flatMap((row) => self(row));
        this.sayFound(rows.reduce((sum, row) => sum + values[row], 0), rows);
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

    /** What a search has found: its sum at once, and the interval when that is known. `rows` null: it is exact. */
    private sayFound(value: number, rows: Iterable<number> | null): void {
        const all = this.metricData().total.value;
        const { amount } = this.metric;
        const tell = (i: Interval) => {
            this.found.textContent = `${formatInterval(i, amount)}, ${formatShare(value, all)}`;
            for (const key of ["value", "low", "high"] as const) this.found.dataset[key] = String(i[key]);
        };
        tell({ value, low: value, high: value });
        if (rows) this.searching.start(this.profile, [this.metric], rows, ([e]) => tell(intervalOf(e)));
    }

    /** Says what these rows have: the value at once, its interval or its change when they are known. */
    private sayRows(name: string, value: number, rows: Iterable<number>, place = "", words = ""): void {
        const { amount } = this.metric;
        const { label } = this.metricData();
        const all = this.profile.total(this.metric).value;
        const tell = (i: Interval | null) => {
            const figures = i ? formatInterval(i, amount) : formatInterval({ value, low: value, high: value }, amount);
            this.say(name, `${label}${words}: ${figures}, ${formatShare(value, all)} of all`, place, i ?? undefined);
        };
        if (!this.profile.isDiff) {
            tell(null);
            this.selecting.start(this.profile, [this.metric], rows, ([e]) => tell(intervalOf(e)));
            return;
        }
        tell(null);
        const metrics = SIDES.map((side) => sideOf(this.metric, side));
        this.selecting.start(this.profile, metrics, rows, (sums) => {
            const of = Object.fromEntries(SIDES.map((side, k) => [side, sums[k]])) as Record<(typeof SIDES)[number], Estimate>;
            this.sayChange(name, changeOf(of), place, words);
        });
    }

    private sayChange(name: string, c: Change, place: string, words: string): void {
        const { amount } = this.metric;
        const range = c.low === c.high ? "" : ` (${formatSigned(c.low, amount)} – ${formatSigned(c.high, amount)})`;
        const label = this.metricData().label.replace(/,[^,]*$/, "");
        this.say(name, `${label}${words}: ${formatSigned(c.value, amount)}${range}, ${verdictOf(c)}; before ` +
            `${formatInterval(c.before, amount)}, after ${formatInterval(c.after, amount)}`, place, c);
    }

    private describeBox(box: Box): void {
        const tree = this.tree();
        const inlined = box.frame >= 0 && this.profile.isInlined(box.frame) ? ", inlined" : "";
        const place = box.frame < 0 ? "" : this.profile.place(box.frame, box.line) + inlined;
        const words = this.ageOf(box, tree);
        if (box.frame < 0 && !this.profile.isDiff) {
            const i = this.profile.total(this.metric);
            this.say("all", `${this.metricData().label}: ${formatInterval(i, this.metric.amount)}`, "", i);
            return;
        }
        this.sayRows(tree.name(box), box.value, tree.rows(box), place + words);
    }

    private ageOf(box: Box, tree: Tree): string {
        if (!this.profile.rowOldest || box.frame < 0) return "";
        const age = this.shadesNow().oldestOfNodes(tree.nodes(box), tree.showsOwnOnly);
        return age > 0 ? `, oldest object ${formatDuration(age)}` : "";
    }

    private describePart(path: Part[]): void {
        const part = path[path.length - 1];
        const name = path.slice(1).map((p) => p.name).join("/") || "all";
        if (this.profileRows()) {
            this.sayRows(name, part.value, rowsOfPart(part));
            return;
        }
        const i = { value: part.value, low: part.value, high: part.value };
        this.say(name, `${formatInterval(i, this.metric.amount)}, ${formatShare(part.value, path[0].value)} of all`, "", i);
    }

    private describeRow(row: number): void {
        const table = this.currentTable();
        const frame = table.frames[row];
        const first = table.columns[0];
        if (!table.total) {
            this.say(first.texts ? first.texts(row) : String(first.numbers![row]), describeColumns(table.columns, row));
            return;
        }
        const values = this.profile.values(this.metric);
        let value = 0;
        for (const i of table.total(row)) value += values[i];
        const isSite = this.state.group === "site";
        this.sayRows(first.texts!(row), value, table.total(row), frame >= 0 && !isSite ? this.profile.place(frame, 0) : "",
            isSite ? "" : ", total");
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
            const at = all.findIndex(([key]) => key === `${this.metric.key} ${this.metric.amount}`);
            this.setMetric(all[(at + 1) % all.length][0]);
        } else if (e.key === "d") this.set({ direction: this.state.direction === "up" ? "down" : "up", zoom: [] });
        else if (e.key === "r") this.set({ fold: !this.state.fold });
        else if (e.key === "o") this.nextShading();
        else if (e.key === "<" || e.key === ">") this.step(e.key === "<" ? -1 : 1);
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
