// SPDX-License-Identifier: BSD-2-Clause
// The stored moments of a recording: which of them is shown, and the slider that goes through them.

import type { Context } from "./context";
import { el } from "./dom";
import type { Source } from "./source";
import { zeroOf } from "./timeline";

export class Slider {
    private readonly slider = el("input", { type: "range", min: 0, step: 1, "aria-label": "Moment" });
    private readonly moment = el("output", {});
    readonly element = el("label", { class: "moments" }, "Moment", this.slider, this.moment);
    private shownAt = -1; // the moment that is shown; -1: the end

    constructor(private readonly context: Context) {
        this.slider.addEventListener("input", () => {
            const last = this.context.source.moments!.n;
            const at = Number(this.slider.value);
            this.context.set({ at: at < last ? this.secondsOf(at) : null });
        });
    }

    /** The moment that is shown, in seconds; null: the end. */
    get shownSeconds(): number | null {
        return this.shownAt < 0 ? null : this.secondsOf(this.shownAt);
    }

    /** The last stored moment that is shown: at the end, the last one. */
    get shownMoment(): number {
        return this.shownAt < 0 ? this.context.source.moments!.n - 1 : this.shownAt;
    }

    /** A time for FILE@TIME at which this moment is the last one: of whole ms, if the next moment is later. */
    secondsOf(moment: number): number {
        const { time_ms } = this.context.source.moments!.times;
        const zero = zeroOf(this.context.source.profile!);
        const ms = Math.ceil(time_ms[moment] - zero - 1e-3);
        const isLast = !(time_ms[moment + 1] - zero <= ms);
        return isLast ? ms / 1000 : (Math.ceil((time_ms[moment] - zero) * 1000) + 1) / 1e6;
    }

    /** The stored moment that was there at this time; -1: the end. */
    private momentAt(seconds: number | null): number {
        const { moments } = this.context.source;
        if (!moments || seconds === null) return -1;
        let found = 0;
        for (let i = 1; i < moments.n && this.secondsOf(i) <= seconds; i++) found = i;
        return found;
    }

    moveTo(seconds: number): void {
        const { moments } = this.context.source;
        if (!moments) return;
        let nearest = 0;
        for (let i = 1; i < moments.n; i++)
            if (Math.abs(this.secondsOf(i) - seconds) < Math.abs(this.secondsOf(nearest) - seconds)) nearest = i;
        this.context.set({ at: this.secondsOf(nearest) });
    }

    step(by: number): void {
        const { moments } = this.context.source;
        if (!moments) return;
        const now = this.shownAt < 0 ? moments.n : this.shownAt;
        const to = Math.max(0, Math.min(moments.n, now + by));
        this.context.set({ at: to < moments.n ? this.secondsOf(to) : null });
    }

    /** What was at this time; null: the end. */
    sourceAt(seconds: number | null): Source {
        const { source } = this.context;
        this.shownAt = this.momentAt(seconds);
        return seconds === null ? source : source.at(this.shownAt, zeroOf(source.profile!) + seconds * 1000);
    }

    show(): void {
        const { source, state } = this.context;
        const { moments } = source;
        this.element.hidden = !moments || state.view === "text";
        if (!moments) return;
        this.slider.max = String(moments.n);
        this.slider.value = String(this.shownAt < 0 ? moments.n : this.shownAt);
        const text = state.at === null ? "end" : `@${state.at}s`;
        this.moment.value = text;
        this.slider.setAttribute("aria-valuetext", text);
    }
}
