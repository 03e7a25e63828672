// SPDX-License-Identifier: BSD-2-Clause
// The points of a recording over time: live bytes of all processes together, and their anonymous resident memory.

import uPlot from "uplot";
import { colours, el } from "./dom";
import { formatBytes } from "./format";
import type { Profile } from "./profile";

interface Curve {
    seconds: number[]; // since the beginning
    live: number[];
    resident: (number | null)[];
}

/** At the time of each point: the sum of what each process had last. */
function sumOverImages(profile: Profile): Curve {
    const p = profile.points;
    const order = Array.from(p.time_ms.keys()).sort((a, b) => p.time_ms[a] - p.time_ms[b]);
    const live = new Map<number, number>();
    const resident = new Map<number, number>();
    const ended = profile.images.map((image) => image.taken_ms);
    const curve: Curve = { seconds: [], live: [], resident: [] };
    const began = Math.min(...profile.images.map((image) => image.began_ms));
    for (const i of order) {
        const now = p.time_ms[i];
        for (const image of live.keys())
            if (ended[image] < now) {
                live.delete(image);
                resident.delete(image);
            }
        live.set(p.image[i], p.live_bytes[i]);
        if (p.rss_anon_bytes[i]) resident.set(p.image[i], p.rss_anon_bytes[i]);
        const sum = (m: Map<number, number>) => [...m.values()].reduce((a, b) => a + b, 0);
        curve.seconds.push((now - began) / 1000);
        curve.live.push(sum(live));
        curve.resident.push(resident.size === live.size ? sum(resident) : null);
    }
    return curve;
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
    readonly element = el("div", { class: "timeline", tabindex: "0" });
    private plot: uPlot | null = null;

    constructor(private readonly profile: Profile) {
        new ResizeObserver(() => this.resize()).observe(this.element);
        matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => this.draw());
    }

    static has(profile: Profile): boolean {
        return profile.points.time_ms.length > 1;
    }

    private resize(): void {
        const { clientWidth: width, clientHeight: height } = this.element;
        if (!width || !height) return;
        if (this.plot) this.plot.setSize({ width, height: height - 40 });
        else this.draw();
    }

    draw(): void {
        const { clientWidth: width, clientHeight: height } = this.element;
        if (!width || !height) return;
        this.plot?.destroy();
        const curve = sumOverImages(this.profile);
        const c = colours();
        const bytes = (_: uPlot, values: number[]) => values.map((v) => (v === null ? "" : formatBytes(v)));
        const shown = (_: uPlot, v: number | null) => (v === null || v === undefined ? "–" : formatBytes(v));
        const axis = { stroke: c.text, grid: { stroke: c.line, width: 1 }, ticks: { stroke: c.line, width: 1 } };
        this.plot = new uPlot(
            {
                width,
                height: height - 40,
                scales: { x: { time: false }, y: { range: (_, __, most) => [0, most * 1.05 || 1] } },
                axes: [
                    { ...axis, values: (_, values) => values.map((v) => `${v} s`) },
                    { ...axis, values: bytes, size: 80, splits: (_, __, low, high) => sizeTicks(low, high) },
                ],
                series: [
                    { label: "Time", value: (_, v) => (v === null || v === undefined ? "–" : `${v.toFixed(2)} s`) },
                    { label: "Live", stroke: c.focus, width: 2, fill: c.dark ? "#3b82f633" : "#3b82f622", value: shown },
                    { label: "Resident (anonymous)", stroke: c.faint, width: 1, value: shown, points: { show: false } },
                ],
            },
            [curve.seconds, curve.live, curve.resident],
            this.element,
        );
    }
}
