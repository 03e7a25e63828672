// SPDX-License-Identifier: BSD-2-Clause
// The page: its state, which stands in the address, and the views, which all show it.

import type { Blob } from "./blob";
import type { Context } from "./context";
import { hasProfileRows } from "./context";
import { Controls } from "./controls";
import { Details } from "./details";
import { el } from "./dom";
import type { EventsView } from "./events_view";
import { Flame } from "./flame";
import { formatInterval } from "./format";
import { matcherOf, matchingFrames, outermostMatches } from "./matches";
import { Paint } from "./paint";
import { Profile, profileOfBlob, type Amount, type Metric } from "./profile";
import { sourceOfRows } from "./rows";
import { Slider } from "./slider";
import type { Source, SourceTable } from "./source";
import { VIEWS, hashOfState, stateOfHash, type State, type View } from "./state";
import { Table } from "./table";
import { sourceOfProfile } from "./tables";
import { Timeline } from "./timeline";
import { Tree, boxAt } from "./tree";
import { Treemap, rowsOfPart, type Part } from "./treemap";

type Matches = ((name: string) => boolean) | null;

export class Page implements Context {
    readonly source: Source;
    shown: Source;
    shownSeconds: number | null = null; // the time that was asked for
    state: State;
    private readonly slider = new Slider(this);
    private readonly paint = new Paint(this);
    private readonly details = new Details(this, this.paint);
    private readonly flame: Flame;
    private readonly treemap: Treemap;
    private readonly timeline = new Timeline((seconds) => this.slider.moveTo(seconds));
    readonly table: Table;
    private readonly events: EventsView | undefined; // of a trace
    private readonly text: HTMLElement;
    private readonly content = el("div", { id: "content" });
    private readonly controls = new Controls(this, this.paint, this);
    private trees = new Map<string, Tree>();
    private tables = new Map<string, SourceTable>();

    constructor(blob: Blob, text: HTMLElement) {
        this.source = blob.header.table ? sourceOfRows(blob) : sourceOfProfile(new Profile(profileOfBlob(blob)));
        this.shown = this.source;
        this.text = el("section", { class: "text", tabindex: "0", "aria-label": "Summary" }, text.querySelector("pre")!);
        this.events = globalThis.alliumEvents?.(blob, {
            say: (name, figures, place) => this.details.say(name, figures, place),
            sort: (label) => this.set({ sort: label }),
        });
        this.state = stateOfHash(location.hash, this.source, this.views());
        this.flame = new Flame({
            select: (box) => this.details.describeBox(box, this.tree()),
            zoom: (path) => this.set({ zoom: path }),
            focus: (box) => this.focusOn(this.profile.fullName(box.frame)),
        });
        this.treemap = new Treemap({
            select: (path) => this.details.describePart(path),
            zoom: (path) => this.set({ part: path }),
        });
        this.table = new Table({
            select: (row) => this.details.describeRow(row, this.currentTable()),
            open: (row) => {
                const frame = this.currentTable().frames[row];
                if (frame >= 0) this.focusOn(this.profile.fullName(frame));
            },
            sort: (label) => this.set({ sort: label }),
        });
        window.addEventListener("hashchange", () => {
            this.state = stateOfHash(location.hash, this.source, this.views());
            this.show();
        });
        document.addEventListener("keydown", (e) => this.key(e));
        matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => this.show());
        this.build();
        this.show();
        this.focusView();
    }

    private build(): void {
        const title = document.querySelector("h1")!.textContent ?? "";
        document.body.classList.add("app");
        document.querySelector("main")!.remove();
        document.body.append(el("main", {}, this.content, this.details.element));
        this.controls.place(title, this.slider.element, this.details.found);
    }

    // ---- state ----

    get profile(): Profile {
        return this.shown.profile!;
    }

    views(): View[] {
        const { source } = this;
        const has: Record<View, boolean> = {
            flame: source.profile !== null, treemap: source.partings.length > 0,
            timeline: source.curves(source.first) !== null, tables: true, text: true,
            events: this.events !== undefined,
        };
        return VIEWS.filter((view) => has[view]);
    }

    set(change: Partial<State>): void {
        this.state = { ...this.state, ...change };
        history.replaceState(null, "", hashOfState(this.state, this.source));
        this.show();
    }

    get metricData(): Source["metrics"][number] {
        const { key, amount } = this.state;
        const is = (m: { metric: Metric }, k: string, a: Amount) => m.metric.key === k && m.metric.amount === a;
        const { metrics } = this.shown;
        return metrics.find((m) => is(m, key, amount)) ?? metrics.find((m) => m.metric.amount === amount) ?? metrics[0];
    }

    get metric(): Metric {
        return this.metricData.metric;
    }

    private focusOn(name: string): void {
        const direction = this.state.direction === "callers" ? "callers" : "callees";
        this.set({ view: "flame", direction, focus: name, zoom: [] });
        this.focusView();
    }

    // ---- what is shown ----

    private showMoment(): void {
        const seconds = this.state.at;
        if (seconds !== this.shownSeconds) {
            this.shown = this.slider.sourceAt(seconds);
            this.shownSeconds = seconds;
            this.trees.clear();
            this.tables.clear();
        }
        this.slider.show();
    }

    private show(): void {
        const s = this.state;
        this.showMoment();
        this.controls.show();
        const element = {
            flame: this.flame.element, treemap: this.treemap.element, tables: this.table.element, text: this.text,
            timeline: this.timeline.element, events: this.events?.element,
        }[s.view]!;
        if (this.content.firstElementChild !== element) this.content.replaceChildren(element);
        const matches = matcherOf(s.search);
        this.details.begin();
        if (s.view === "flame") this.showFlame(matches);
        else if (s.view === "treemap") this.showTreemap(matches);
        else if (s.view === "tables") this.showTable(matches);
        else if (s.view === "events") this.events!.show(matches, s.sort);
        else this.details.clear();
        if (s.view === "timeline") this.showTimeline();
    }

    private showTimeline(): void {
        const { moments } = this.source;
        this.timeline.show(this.source.curves(this.metric)!, this.slider.shownSeconds);
        if (!moments) return;
        const { times } = moments;
        const at = this.slider.shownMoment;
        const i = { value: times.live_bytes[at], low: times.live_bytes_low[at], high: times.live_bytes_high[at] };
        this.details.say(`@${this.slider.secondsOf(at)}s`, `Live: ${formatInterval(i, "bytes")}, at the stored moment; the band is the 95 % interval at all ${moments.n}`, "", i);
    }

    private showTreemap(matches: Matches): void {
        const s = this.state;
        const root = this.shown.parts(s.parting, this.metric);
        this.treemap.show(root, s.part, this.metric.amount, matches, this.paint.partColour());
        if (!matches) return;
        const found: Part[] = [];
        const open = [root];
        for (let p = open.pop(); p; p = open.pop())
            if (p !== root && matches(p.name)) found.push(p);
            else open.push(...p.kids.values());
        const value = found.reduce((sum, p) => sum + p.value, 0);
        this.details.sayFound(value, hasProfileRows(this) ? found.flatMap(rowsOfPart) : null);
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

    private showFlame(matches: Matches): void {
        const tree = this.tree();
        let found: ((frame: number) => boolean) | null = null;
        if (matches) {
            const { profile } = this;
            const known = matchingFrames(profile, matches);
            found = (frame) => known[frame] === 1;
            const nodes = outermostMatches(profile, known);
            const { inclusive } = profile.sumsOf(this.metric);
            let sum = 0;
            for (let k = 0; k < nodes.length; k++) sum += inclusive[nodes[k]];
            this.details.sayFound(sum, profile.rowsBelow(nodes));
        }
        this.flame.show(tree, boxAt(tree, this.state.zoom), found, this.paint.boxColour(tree));
    }

    currentTable(): SourceTable {
        const key = `${this.state.group} ${this.metric.key} ${this.metric.amount}`;
        let found = this.tables.get(key);
        if (!found) this.tables.set(key, (found = this.shown.table(this.state.group, this.metric)));
        return found;
    }

    private showTable(matches: Matches): void {
        const data = this.currentTable();
        const texts = data.columns.filter((c) => c.texts && !c.isFigure).map((c) => c.texts!);
        const known = new Map<string, boolean>();
        const fits = (text: string): boolean => {
            let is = known.get(text);
            if (is === undefined) known.set(text, (is = matches!(text)));
            return is;
        };
        const filter = matches && ((row: number) => texts.some((text) => fits(text(row))));
        const usual = this.source.groups.length === 1 ? this.metricData.label : ""; // a table without groups: by what is chosen above
        this.table.show(data, this.state.sort || usual, filter);
        this.details.say(filter ? `${this.table.shown} of ${data.rows} rows` : `${data.rows} rows`, "");
        if (!filter || !data.self) return;
        const { self } = data;
        const values = this.profile.values(this.metric);
        const rows = [...this.table.shownRows].flatMap((row) => self(row));
        this.details.sayFound(rows.reduce((sum, row) => sum + values[row], 0), rows);
    }

    // ---- keys ----

    focusView(): void {
        (this.content.querySelector("[tabindex]") as HTMLElement | null)?.focus({ preventScroll: true });
    }

    copy(): void {
        void navigator.clipboard?.writeText(this.table.copyText()).then(() => this.details.say("Copied", ""));
    }

    private key(e: KeyboardEvent): void {
        if (e.ctrlKey || e.altKey || e.metaKey || this.controls.isHelpOpen || e.target instanceof HTMLInputElement || e.target instanceof HTMLSelectElement)
            return;
        const views = this.views();
        const number = Number(e.key) - 1;
        if (views[number]) {
            this.set({ view: views[number] });
            this.focusView();
        } else if (e.key === "/") this.controls.search.focus();
        else if (e.key === "?") this.controls.showHelp();
        else if (e.key === "m") this.controls.nextMetric();
        else if (e.key === "d") this.set({ direction: this.state.direction === "up" ? "down" : "up", zoom: [] });
        else if (e.key === "r") this.set({ fold: !this.state.fold });
        else if (e.key === "o") this.paint.next();
        else if (e.key === "<" || e.key === ">") this.slider.step(e.key === "<" ? -1 : 1);
        else if (e.key === "c" && this.state.view === "tables") this.copy();
        else return;
        e.preventDefault();
    }
}
