// SPDX-License-Identifier: BSD-2-Clause
// Sums of very many rows, a few milliseconds at a time, so that the page answers meanwhile.

import type { Estimate } from "./estimate";
import type { Metric, Profile } from "./profile";

const SLICE_MS = 6;
const ROWS = 500; // between two looks at the clock

/** One sum at a time: a new one ends the one before. */
export class Summing {
    private turn = 0;

    stop(): void {
        this.turn++;
    }

    /** Calls `done` with the estimate of the rows for each metric: at once, if that takes no longer than one slice. */
    start(profile: Profile, metrics: Metric[], rows: Iterable<number>, done: (sums: Estimate[]) => void): void {
        const turn = ++this.turn;
        const of = metrics.map((m) => profile.metric(m).values);
        const sums = of.map((values) => values.begin());
        const left = rows[Symbol.iterator]();
        const step = () => {
            if (turn !== this.turn) return;
            for (const until = performance.now() + SLICE_MS; performance.now() < until; )
                for (let i = 0; i < ROWS; i++) {
                    const next = left.next();
                    if (next.done) return done(sums);
                    for (let k = 0; k < of.length; k++) of[k].add(sums[k], next.value);
                }
            setTimeout(step);
        };
        step();
    }
}
