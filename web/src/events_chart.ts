// SPDX-License-Identifier: BSD-2-Clause
// Events over time: bars of how many there were in each step, the live bytes, and below them the spans of each thread.

import { clipText, colourOf, colours, el, fitCanvas, FONT, onResize, type Colours } from "./dom";
import type { Events, Slice } from "./events_data";
import { formatBytes, formatCount, formatDuration } from "./format";

const BARS = 90; // pixels
const ROW = 13; // of a slice
const DEEPEST = 3; // rows of a thread; deeper slices are in the last one
const THREADS = 6; // those whose listed spans take longest
const KINDS = 6; // names of events with a colour of their own
const LEFT = 0.5; // pixels: narrower slices are that wide

export const BOUND = "~ marks a figure that may be too high or too low: events were lost, the recording was cut short, or the order of events is not sure";
const LOST = "Events of a CPU were lost in the marked time: bars are too low there, and spans may be missing";
const OPEN = "A dashed frame and ▸ mark a span that had not ended when its thread, its program or the trace ended";

interface Lane {
    thread: number;
    rows: Slice[][]; // by depth; time off the CPU is the last one
    top: number;
}

export interface ChartEvents {
    select(row: number): void;
    say(name: string, figures: string): void;
}

export class Chart {
    private readonly canvas = el("canvas", { "aria-hidden": "true" });
    private readonly outline = el("ul", { class: "outline", "aria-label": "Events" });
    private readonly legend = el("div", { class: "legend" });
    private readonly place = el("div", { tabindex: "0", role: "application", "aria-label": "Events over time" }, this.canvas, this.outline);
    readonly element = el("div", {}, this.legend, this.place);
    private readonly lanes: Lane[];
    private readonly height: number;
    private from: number; // what is shown
    private to: number;
    private step = 0; // that is selected
    private marked = NaN; // the time of the selected event

    constructor(private readonly events: Events, private readonly tell: ChartEvents) {
        [this.from, this.to] = [events.first, events.end];
        this.lanes = lanesOf(events.slices);
        this.height = BARS + this.lanes.reduce((sum, lane) => sum + lane.rows.length * ROW + 4, 4);
        for (let top = BARS + 4, i = 0; i < this.lanes.length; i++) {
            this.lanes[i].top = top;
            top += this.lanes[i].rows.length * ROW + 4;
        }
        Object.assign(this.legend.style, { flexWrap: "wrap", padding: "0.2rem 0.5rem" });
        Object.assign(this.place.style, { height: `${Math.min(this.height, 320)}px`, overflow: "hidden auto" });
        this.describe();
        this.place.addEventListener("keydown", (e) => this.key(e));
        this.place.addEventListener("wheel", (e) => this.wheel(e), { passive: false });
        this.canvas.addEventListener("click", (e) => this.click(e));
        this.canvas.addEventListener("dblclick", (e) => this.zoom(0.25, this.timeAt(e.offsetX)));
        onResize(this.place, () => this.draw());
    }

    // ---- what is told ----

    private describe(): void {
        const { events } = this;
        const length = (s: Slice) => (s.openName ? 1e18 : 0) + s.to - s.from; // the open ones come first
        const longest = [...events.slices].sort((a, b) => length(b) - length(a)).slice(0, 20);
        this.outline.replaceChildren(
            ...events.kinds.map((k) => el("li", {}, `${k.name}: ${k.sum} events`)),
            ...longest.map((s) => el("li", {}, `${events.spanName(s)}: ${s.openName && "open for "}${formatDuration(s.to - s.from)} at ${events.time(s.from)}, thread ${events.threadName(s.thread)}`)),
            ...events.stretches.slice(0, 20).map((l) => el("li", {}, `lost on CPU ${l.cpu}: ${l.events} events at ${events.time(l.from)} – ${events.time(l.to)}`)));
    }

    private sayStep(): void {
        const { events, step } = this;
        const from = events.first + step * events.step;
        const counts = events.kinds.filter((k) => k.counts[step]).map((k) => `${k.name} ${formatCount(k.counts[step])}`);
        const live = events.live ? `live ${this.liveText(events.live[step])}` : "";
        const lost = events.stretches.some((l) => l.from < from + events.step && l.to >= from) ? "other events were lost" : "";
        this.tell.say(`${events.time(from)} – ${events.time(from + events.step)}`, [live, counts.join(", ") || "no events", lost].filter(Boolean).join("; "));
    }

    /** With the mark of figures that may be too high or too low. */
    private liveText(bytes: number): string {
        return (this.events.isBound ? "~" : "") + formatBytes(bytes);
    }

    // ---- what is shown ----

    /** Marks the time of an event. */
    mark(row: number): void {
        this.marked = this.events.times[row];
        if (this.marked < this.from || this.marked > this.to) this.show(this.marked, this.to - this.from);
        else this.draw();
    }

    /** Shows the span that an event ends, or the time around the event. */
    zoomTo(row: number): void {
        const time = this.events.times[row];
        const took = this.events.took[row];
        if (took > 0) this.show(this.events.isOpen(row) ? time + took / 2 : time - took / 2, took * 1.5);
        else this.show(time, (this.to - this.from) / 4);
    }

    private show(middle: number, width: number): void {
        const { first, end } = this.events;
        const wide = Math.min(end - first, Math.max(width, 100));
        this.from = Math.max(first, Math.min(middle - wide / 2, end - wide));
        this.to = this.from + wide;
        this.draw();
    }

    /** `at` stays where it is. */
    private zoom(by: number, at: number): void {
        const middle = at + ((this.from + this.to) / 2 - at) * by;
        this.show(middle, (this.to - this.from) * by);
    }

    private timeAt(x: number): number {
        return this.from + (x / (this.place.clientWidth || 1)) * (this.to - this.from);
    }

    // ---- keys and the pointer ----

    private key(e: KeyboardEvent): void {
        if (e.ctrlKey || e.altKey || e.metaKey) return;
        const { events } = this;
        const last = events.steps - 1;
        const to = { ArrowRight: this.step + 1, ArrowLeft: this.step - 1, Home: 0, End: last }[e.key];
        const at = events.first + (this.step + 0.5) * events.step;
        if (to !== undefined) this.selectStep(Math.max(0, Math.min(last, to)));
        else if (e.key === "+") this.zoom(0.5, at);
        else if (e.key === "-") this.zoom(2, at);
        else if (e.key === "Escape") this.show(0, Infinity);
        else if (e.key === "Enter") this.selectFrom(events.first + this.step * events.step);
        else return;
        e.preventDefault();
        e.stopPropagation();
    }

    private selectStep(step: number): void {
        const { events } = this;
        this.step = step;
        const at = events.first + (step + 0.5) * events.step;
        if (at < this.from || at > this.to) this.show(at, this.to - this.from);
        else this.draw();
        this.sayStep();
    }

    /** Selects the first listed event from then on. */
    private selectFrom(time: number): void {
        const row = this.events.times.findIndex((t) => t >= time);
        if (row >= 0) this.tell.select(row);
    }

    private wheel(e: WheelEvent): void {
        if (!e.deltaY || this.place.scrollHeight > this.place.clientHeight) return;
        e.preventDefault();
        this.zoom(e.deltaY > 0 ? 1.25 : 0.8, this.timeAt(e.offsetX));
    }

    private click(e: MouseEvent): void {
        const slice = this.sliceAt(e.offsetX, e.offsetY);
        if (slice && slice.row >= 0) this.tell.select(slice.row);
        else if (slice) this.tell.say(this.events.spanName(slice), `open for ${formatDuration(slice.to - slice.from)}, thread ${this.events.threadName(slice.thread)}; its beginning is not listed`);
        else this.selectStep(Math.max(0, Math.min(this.events.steps - 1, Math.floor((this.timeAt(e.offsetX) - this.events.first) / this.events.step))));
    }

    private sliceAt(x: number, y: number): Slice | undefined {
        const lane = this.lanes.find((l) => y >= l.top && y < l.top + l.rows.length * ROW);
        const [from, to] = [this.timeAt(x - 1), this.timeAt(x + 1)];
        return lane?.rows[Math.floor((y - lane.top) / ROW)].find((s) => s.from <= to && s.to >= from);
    }

    // ---- drawing ----

    draw(): void {
        const width = this.place.clientWidth;
        if (!width) return;
        const c = colours();
        const context = fitCanvas(this.canvas, width, this.height);
        context.fillStyle = c.background;
        context.fillRect(0, 0, width, this.height);
        context.font = FONT;
        context.textBaseline = "middle";
        const x = (time: number) => ((time - this.from) / (this.to - this.from)) * width;
        this.drawBars(context, x, c);
        for (const lane of this.lanes) this.drawLane(context, lane, x, width, c);
        context.fillStyle = c.focus;
        if (this.marked >= this.from && this.marked <= this.to) context.fillRect(x(this.marked), 0, 1, this.height);
        this.showLegend(c);
    }

    private kindColour(at: number, c: Colours): string {
        return at < KINDS ? `hsl(${210 + 60 * at} ${c.dark ? "45% 42%" : "60% 68%"})` : colourOf("", "", c.dark);
    }

    private showLegend(c: Colours): void {
        const { kinds, live, stretches, isBound, slices } = this.events;
        const entry = (text: string, colour: string, title = "") => {
            const swatch = el("span", { class: "swatch" });
            Object.assign(swatch.style, { background: colour, display: "inline-block", margin: "0 0.3rem -0.1rem 0.5rem" });
            return el("span", { title }, swatch, text);
        };
        this.legend.replaceChildren(
            ...kinds.slice(0, KINDS).map((k, at) => entry(`${k.name} ${formatCount(k.sum)}`, this.kindColour(at, c))),
            ...(kinds.length > KINDS ? [entry(`${kinds.length - KINDS} others`, this.kindColour(KINDS, c))] : []),
            ...(live ? [entry(`live bytes, up to ${this.liveText(this.events.mostLive)}`, c.focus, isBound ? BOUND : "")] : []),
            ...(stretches.length ? [entry("events were lost", c.mark, LOST)] : []),
            ...(slices.some((s) => s.openName) ? [entry("▸ open spans", c.line, OPEN)] : []));
    }

    /** Each step is a bar; the line is the most live bytes in it. */
    private drawBars(context: CanvasRenderingContext2D, x: (time: number) => number, c: Colours): void {
        const { events } = this;
        const sums = Array.from({ length: events.steps }, (_, i) => events.kinds.reduce((sum, k) => sum + k.counts[i], 0));
        const most = Math.max(1, ...sums);
        const left = (i: number) => x(events.first + i * events.step);
        for (let i = 0; i < events.steps; i++) {
            let y = BARS;
            const wide = Math.max(left(i + 1) - left(i) - (i === this.step ? 0 : 0.5), LEFT);
            events.kinds.forEach((k, at) => {
                const high = (k.counts[i] / most) * (BARS - 4);
                context.fillStyle = this.kindColour(at, c);
                context.fillRect(left(i), (y -= high), wide, high);
            });
        }
        context.fillStyle = c.mark;
        for (const l of events.stretches) {
            const wide = Math.max(x(l.to) - x(l.from), 2);
            context.fillRect(x(l.from), 0, wide, 4);
            context.globalAlpha = 0.3;
            context.fillRect(x(l.from), 0, wide, BARS);
            context.globalAlpha = 1;
        }
        context.strokeStyle = c.focus;
        context.strokeRect(left(this.step), 1, Math.max(left(this.step + 1) - left(this.step), 1), BARS - 1);
        if (!events.live) return;
        context.beginPath();
        for (let i = 0; i < events.steps; i++)
            for (const at of [left(i), left(i + 1)]) context.lineTo(at, BARS - (events.live[i] / events.mostLive) * (BARS - 4));
        context.stroke();
    }

    private drawOpenEnd(context: CanvasRenderingContext2D, from: number, wide: number, y: number, c: Colours): void {
        context.strokeStyle = c.text;
        context.setLineDash([3, 2]);
        context.strokeRect(from + 0.5, y + 0.5, Math.max(wide - 1, 1), ROW - 2);
        context.setLineDash([]);
        context.fillStyle = c.text;
        if (wide > 12) context.fillText("▸", from + wide - 9, y + ROW / 2);
    }

    private drawLane(context: CanvasRenderingContext2D, lane: Lane, x: (time: number) => number, width: number, c: Colours): void {
        const { events } = this;
        lane.rows.forEach((slices, depth) => {
            const y = lane.top + depth * ROW;
            for (const s of slices) {
                if (s.to < this.from || s.from > this.to) continue;
                const from = Math.max(0, x(s.from));
                const wide = Math.max(Math.min(width, x(s.to)) - from, LEFT);
                const name = events.spanName(s);
                context.fillStyle = s.isOff ? c.line : colourOf(name, "", c.dark);
                context.fillRect(from, y, wide, ROW - 1);
                context.fillStyle = c.text;
                const text = wide > 40 ? clipText(context, name + (s.openName && ", open"), wide - (s.openName ? 14 : 4)) : "";
                if (text) context.fillText(text, from + 2, y + ROW / 2);
                if (s.openName) this.drawOpenEnd(context, from, wide, y, c);
            }
        });
        const name = events.threadName(lane.thread);
        context.fillStyle = c.background;
        context.globalAlpha = 0.75;
        context.fillRect(0, lane.top, context.measureText(name).width + 6, ROW - 1);
        context.globalAlpha = 1;
        context.fillStyle = c.text;
        context.fillText(name, 2, lane.top + ROW / 2);
    }
}

/** The threads whose spans take longest, and their slices in rows. */
function lanesOf(slices: Slice[]): Lane[] {
    const lanes = new Map<number, { sum: number; own: Slice[][]; off: Slice[] }>();
    for (const s of slices) {
        let lane = lanes.get(s.thread);
        if (!lane) lanes.set(s.thread, (lane = { sum: 0, own: [], off: [] }));
        lane.sum += s.to - s.from;
        if (s.isOff) lane.off.push(s);
        else (lane.own[Math.min(s.depth, DEEPEST - 1)] ??= []).push(s);
    }
    return [...lanes].sort((a, b) => b[1].sum - a[1].sum).slice(0, THREADS).map(([thread, { own, off }]) =>
        ({ thread, top: 0, rows: [...Array.from(own, (row) => row ?? []), ...(off.length ? [off] : [])] }));
}
