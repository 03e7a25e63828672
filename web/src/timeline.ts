// SPDX-License-Identifier: BSD-2-Clause
// Memory over time: of a profile, live bytes of all processes together, and their anonymous resident memory.

import uPlot from "uplot";
import { colours, el } from "./dom";
import { format, type Unit } from "./format";
import type { Profile } from "./profile";

export interface Curves {
    seconds: number[]; // since the beginning
    unit: Unit;
    lines: { label: string; values: (number | null)[] }[]; // the first one is filled
}

/** At the time of each point: the sum of what each process had last. null: the recording has no course of time. */
export function curvesOfProfile(profile: Profile): Curves | null {
    const p = profile.points;
    if (!p || p.time_ms.length < 2) return null;
    const order = Array.from(p.time_ms.keys()).sort((a, b) => p.time_ms[a] - p.time_ms[b]);
    const live = new Map<number, number>();
    const resident = new Map<number, number>();
    const ended = profile.images.map((image) => (image.ended ? image.taken_ms : Infinity));
    const began = Math.min(...profile.images.map((image) => image.began_ms));
    const sum = (m: Map<number, number>) => [...m.values()].reduce((a, b) => a + b, 0);
    const curves: Curves = {
        seconds: [], unit: "bytes",
        lines: [{ label: "Live", values: [] }, { label: "Resident (anonymous)", values: [] }],
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
        curves.seconds.push((now - began) / 1000);
        curves.lines[0].values.push(sum(live));
        curves.lines[1].values.push(resident.size === live.size ? sum(resident) : null);
    }
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
    readonly element = el("div", { class: "timeline", tabindex: "0", role: "img", "aria-label": "Timeline" });
    private plot: uPlot | null = null;
    private curves: Curves | null = null;

    constructor() {
        new ResizeObserver(() => this.resize()).observe(this.element);
    }

    private resize(): void {
        const { clientWidth: width, clientHeight: height } = this.element;
        if (!width || !height) return;
        if (this.plot) this.plot.setSize({ width, height: height - 40 });
        else this.draw();
    }

    show(curves: Curves): void {
        this.curves = curves;
        this.draw();
    }

    private draw(): void {
        const { clientWidth: width, clientHeight: height } = this.element;
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
                scales: { x: { time: false }, y: { range: (_, __, most) => [0, most * 1.05 || 1] } },
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
                        points: { show: false }, fill: i ? undefined : c.dark ? "#3b82f633" : "#3b82f622",
                    })),
                ],
            },
            [curves.seconds, ...curves.lines.map((line) => line.values)],
            this.element,
        );
    }
}
