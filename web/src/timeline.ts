// SPDX-License-Identifier: BSD-2-Clause
// Memory over time: of a profile, live bytes of all processes together, and their anonymous resident memory.

import uPlot from "uplot";
import { colours, el, onResize, type Colours } from "./dom";
import { format, formatInterval, formatSeconds, type Unit } from "./format";
import type { Profile } from "./profile";

export interface Curves {
    seconds: number[]; // since the beginning
    unit: Unit;
    lines: { label: string; values: (number | null)[] }[]; // the first one is filled
    band: Band | null; // the 95 % interval of the first line, where it is known
    marks: Mark[];
}

export interface Band {
    seconds: number[];
    value: number[];
    low: number[];
    high: number[];
}

/** An event. */
export interface Mark {
    seconds: number;
    label: string;
    isBad: boolean; // the process was killed
}

const MARKS = 20; // at most: of the processes with the highest peaks
const SIGNALS: Record<number, string> = { 6: "SIGABRT", 9: "SIGKILL", 11: "SIGSEGV", 15: "SIGTERM" };

function marksOf(profile: Profile, began: number): Mark[] {
    const { images } = profile;
    const at = (ms: number) => (ms - began) / 1000;
    const marks: Mark[] = profile.marks.map((m) => ({ seconds: at(m.time_ms), label: m.text, isBad: m.bad }));
    const largest = [...images].sort((a, b) => b.peak_bytes - a.peak_bytes).slice(0, MARKS);
    for (const image of largest) {
        const process = image.pid ? ` (${image.pid})` : ""; // the kernel has none
        const of = images.length > 1 ? ` of ${image.program}${process}` : "";
        if (image.peak_ms) marks.push({ seconds: at(image.peak_ms), label: `peak${of}`, isBad: false });
        const { signal } = image;
        if (signal) marks.push({ seconds: at(image.taken_ms), label: `killed by ${SIGNALS[signal] ?? `signal ${signal}`}${of}`, isBad: true });
        else if (image.ended && image.pid) marks.push({ seconds: at(image.taken_ms), label: `end${of}`, isBad: false });
    }
    return marks.sort((a, b) => a.seconds - b.seconds);
}

/** The times of a timeline count from here: the zero of FILE@TIME, where it is known. */
export function zeroOf(profile: Profile): number {
    return profile.started_ms ?? Math.min(...profile.images.map((image) => image.began_ms));
}

/** At the time of each point: the sum of what each process had last. null: the recording has no course of time. */
export function curvesOfProfile(profile: Profile): Curves | null {
    const p = profile.points;
    if (!p || p.time_ms.length < 2) return null;
    const order = Array.from(p.time_ms.keys()).sort((a, b) => p.time_ms[a] - p.time_ms[b]);
    const live = new Map<number, number>();
    const resident = new Map<number, number>();
    const ended = profile.images.map((image) => (image.ended ? image.taken_ms : Infinity));
    const began = zeroOf(profile);
    const sum = (m: Map<number, number>) => [...m.values()].reduce((a, b) => a + b, 0);
    const curves: Curves = {
        seconds: [], unit: "bytes",
        lines: [{ label: "Live", values: [] }, { label: "Resident (anonymous)", values: [] }],
        band: null, marks: marksOf(profile, began),
    };
    const times = profile.moments?.times;
    if (times)
        curves.band = {
            seconds: Array.from(times.time_ms, (t) => (t - began) / 1000), value: Array.from(times.live_bytes),
            low: Array.from(times.live_bytes_low), high: Array.from(times.live_bytes_high),
        };
    for (const i of order) {
        const now = p.time_ms[i];
        for (const image of live.keys())
            if (ended[image] < now) {
                live.delete(image);
                resident.delete(image);
            }
        live.set(p.image[i], p.live_bytes[i]);
        if (p.rss_anon_bytes[i]) resident.set(p.image[i], p.rss_anon_bytes[i]);
        const seconds = (now - began) / 1000;
        let at = curves.seconds.length;
        if (at && curves.seconds[at - 1] === seconds) at--; // of several images
        curves.seconds[at] = seconds;
        curves.lines[0].values[at] = sum(live);
        curves.lines[1].values[at] = resident.size === live.size ? sum(resident) : null;
    }
    if (curves.lines[1].values.every((v) => v === null)) curves.lines.pop(); // of the kernel there is none
    return curves;
}

/** Some five whole sizes in units of 1024. */
function sizeTicks(low: number, high: number): number[] {
    const least = (high - low) / 6;
    let step = 1024 ** Math.max(0, Math.floor(Math.log(least) / Math.log(1024)));
    for (let i = 0; step < least; i++) step *= [2, 2.5, 2][i % 3];
    const ticks: number[] = [];
    for (let at = Math.ceil(low / step) * step; at <= high; at += step) ticks.push(at);
    return ticks;
}

export class Timeline {
    private readonly outline = el("ul", { class: "outline", "aria-label": "Moments and events" });
    private readonly place = el("div", { class: "plot" });
    readonly element = el("div", { class: "timeline", tabindex: "0", role: "group", "aria-label": "Timeline" },
        this.place, this.outline);
    private at: number | null = null; // seconds: the moment that all views show
    private plot: uPlot | null = null;
    private curves: Curves | null = null;

    /** `pick`: somebody points at a time, in seconds, and presses. */
    constructor(private readonly pick: (seconds: number) => void) {
        onResize(this.element, () => this.resize());
    }

    private resize(): void {
        const { clientWidth: width, clientHeight: height } = this.place;
        if (!width || !height) return;
        if (this.plot) this.plot.setSize({ width, height: height - 40 });
        else this.draw();
    }

    show(curves: Curves, at: number | null): void {
        this.curves = curves;
        this.at = at;
        this.describe(curves);
        this.draw();
    }

    /** For those who do not see the curves. */
    private describe(curves: Curves): void {
        const { band } = curves;
        const moments = band ? band.seconds.map((seconds, i) =>
            `moment @${formatSeconds(seconds)}: ${formatInterval({ value: band.value[i], low: band.low[i], high: band.high[i] }, curves.unit)}`) : [];
        const events = curves.marks.map((m) => `@${formatSeconds(m.seconds)}: ${m.label}`);
        this.outline.replaceChildren(...[...events, ...moments].map((text) => el("li", {}, text)));
    }

    /** Behind the curves: the band; on top of them: marks, a tick for each moment, and the one that is shown. */
    private drawBand(u: uPlot, c: Colours): void {
        const { band } = this.curves!;
        if (!band || !band.seconds.length) return;
        const [x, y] = [(v: number) => u.valToPos(v, "x", true), (v: number) => u.valToPos(v, "y", true)];
        u.ctx.save();
        u.ctx.fillStyle = c.dark ? "#7fb0ff40" : "#1d4ed82e";
        u.ctx.beginPath();
        band.seconds.forEach((t, i) => u.ctx.lineTo(x(t), y(band.high[i])));
        for (let i = band.seconds.length; i-- > 0; ) u.ctx.lineTo(x(band.seconds[i]), y(band.low[i]));
        u.ctx.fill();
        u.ctx.restore();
    }

    private drawMarks(u: uPlot, c: Colours): void {
        const { marks, band } = this.curves!;
        const { left, top, width, height } = u.bbox;
        const ratio = devicePixelRatio || 1;
        const x = (v: number) => Math.round(u.valToPos(v, "x", true));
        const { ctx } = u;
        ctx.save();
        ctx.font = `${11 * ratio}px system-ui, sans-serif`;
        ctx.textBaseline = "top";
        ctx.textAlign = "left"; // as `from` assumes; the axes have left another one
        let free = [left, left, left]; // lines of labels: from where each is free
        for (const mark of marks) {
            const at = x(mark.seconds);
            if (at < left || at > left + width) continue;
            ctx.strokeStyle = ctx.fillStyle = mark.isBad ? (c.dark ? "#ff9a8a" : "#b3261e") : c.faint;
            ctx.lineWidth = ratio;
            ctx.setLineDash([4 * ratio, 3 * ratio]);
            ctx.beginPath();
            ctx.moveTo(at, top);
            ctx.lineTo(at, top + height);
            ctx.stroke();
            const wide = ctx.measureText(mark.label).width + 8 * ratio;
            const from = at + wide > left + width ? at - wide : at + 4 * ratio;
            const line = free.findIndex((f) => f <= from);
            if (line < 0) continue;
            free[line] = from + wide;
            ctx.fillText(mark.label, from, top + line * 14 * ratio);
        }
        ctx.setLineDash([]);
        ctx.fillStyle = c.faint;
        for (const t of band?.seconds ?? []) ctx.fillRect(x(t), top + height - 6 * ratio, ratio, 6 * ratio);
        if (this.at !== null) {
            ctx.fillStyle = c.focus;
            ctx.fillRect(x(this.at) - ratio, top, 2 * ratio, height);
        }
        ctx.restore();
    }

    private draw(): void {
        const { clientWidth: width, clientHeight: height } = this.place;
        const { curves } = this;
        if (!width || !height || !curves) return;
        this.plot?.destroy();
        const c = colours();
        const shown = (_: uPlot, v: number | null) => (v === null || v === undefined ? "–" : format(v, curves.unit));
        const axis = { stroke: c.text, grid: { stroke: c.line, width: 1 }, ticks: { stroke: c.line, width: 1 } };
        const strokes = [c.focus, c.faint];
        this.plot = new uPlot(
            {
                width,
                height: height - 40,
                scales: { x: { time: false }, y: { range: (_, __, most) => [0, Math.max(most, ...(curves.band?.high ?? [])) * 1.05 || 1] } },
                axes: [
                    { ...axis, values: (_, values) => values.map((v) => `${v} s`) },
                    {
                        ...axis, size: 80, values: (_, values) => values.map((v) => format(v, curves.unit)),
                        splits: curves.unit === "bytes" ? (_, __, low, high) => sizeTicks(low, high) : undefined,
                    },
                ],
                series: [
                    { label: "Time", value: (_, v) => (v === null || v === undefined ? "–" : `${v.toFixed(2)} s`) },
                    ...curves.lines.map((line, i) => ({
                        label: line.label, value: shown, stroke: strokes[i], width: i ? 1 : 2,
                        points: { show: false }, fill: i || curves.band ? undefined : c.dark ? "#3b82f633" : "#3b82f622",
                    })),
                ],
                hooks: { drawAxes: [(u) => this.drawBand(u, c)], draw: [(u) => this.drawMarks(u, c)] },
            },
            [curves.seconds, ...curves.lines.map((line) => line.values)],
            this.place,
        );
        this.plot.over.addEventListener("click", () => {
            const x = this.plot!.cursor.left;
            if (x !== undefined && x >= 0) this.pick(this.plot!.posToVal(x, "x"));
        });
    }
}
