// SPDX-License-Identifier: BSD-2-Clause
// What the parts of the page share: the source, what of it is shown, and the state, which each of them may change.

import type { Metric, Profile } from "./profile";
import type { Source } from "./source";
import type { State, View } from "./state";

export interface Context {
    readonly source: Source; // of the end
    readonly shown: Source; // of the moment that is chosen
    readonly shownSeconds: number | null; // that moment; null: the end
    readonly state: State;
    /** The profile: only where there is a flame graph. */
    readonly profile: Profile;
    /** The metric that is chosen; of a moment in which it is not known, the first one. */
    readonly metric: Metric;
    readonly metricData: Source["metrics"][number];
    views(): View[];
    set(change: Partial<State>): void;
}

/** Do parts and tables tell which rows of the profile they have? */
export function hasProfileRows(c: Context): boolean {
    return c.shown.profile !== null && c.shown.groups.length > 1;
}
