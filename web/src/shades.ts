// SPDX-License-Identifier: BSD-2-Clause
// The colours of boxes: by module, by who is responsible for the memory, by its age, or by how it changed.

import { changeOfRows, isNoise, type Change } from "./change";
import { colourOf, el, type Colours } from "./dom";
import { formatDuration } from "./format";
import type { Metric, Profile } from "./profile";

export const SHADINGS = ["module", "owner", "age", "difference"] as const;
export type Shading = (typeof SHADINGS)[number];

export const SHADING_LABELS: Record<Shading, string> = {
    module: "by module", owner: "by owner", age: "by age", difference: "by difference",
};

export function shadingsOf(profile: Profile): Shading[] {
    const has: Record<Shading, boolean> = {
        module: true, owner: true, age: profile.rowOldest !== null, difference: profile.isDiff,
    };
    return SHADINGS.filter((s) => has[s]);
}

/** What the colours of boxes are made of, for one metric of a profile. */
export class Shades {
    private ownerAt: Uint32Array | null = null; // by node: a frame + 1
    private oldestAt: Float64Array | null = null;
    private oldestOwn: Float64Array | null = null;
    private range: [number, number] | null = null;

    constructor(
        private readonly profile: Profile,
        private readonly metric: Metric,
    ) {}

    /**
     * By node: who owns what one finds by following the largest part to its end, as `report --by owner` names it. 0:
     * nobody.
     */
    private owners(): Uint32Array {
        if (this.ownerAt) return this.ownerAt;
        const { profile } = this;
        const { inclusive } = profile.sumsOf(this.metric);
        const values = profile.values(this.metric);
        const owner = new Uint32Array(profile.nodes);
        const most = new Float64Array(profile.nodes);
        for (let row = 0; row < values.length; row++) {
            const node = profile.rowNode[row];
            if (!(values[row] > most[node])) continue;
            most[node] = values[row];
            owner[node] = profile.rowOwner[row] ? profile.frame[profile.rowOwner[row]] + 1 : 0;
        }
        for (let i = profile.nodes - 1; i > 0; i--) {
            const above = profile.parent[i];
            if (!(inclusive[i] > most[above])) continue;
            most[above] = inclusive[i];
            owner[above] = owner[i];
        }
        return (this.ownerAt = owner);
    }

    ownerOfNodes(nodes: readonly number[]): string {
        const { profile } = this;
        const { inclusive } = profile.sumsOf(this.metric);
        let at = nodes[0];
        for (const i of nodes) if (inclusive[i] > inclusive[at]) at = i;
        const frame = this.owners()[at];
        return frame ? profile.name(frame - 1) : "";
    }

    /** The age of the oldest live object at the nodes, and below them unless `ownOnly`, in ns; 0: not known. */
    oldestOfNodes(nodes: readonly number[], ownOnly: boolean): number {
        const { profile } = this;
        if (!profile.rowOldest) return 0;
        if (!this.oldestAt) {
            this.oldestOwn = new Float64Array(profile.nodes);
            profile.rowOldest.forEach((age, row) => {
                const node = profile.rowNode[row];
                if (age > this.oldestOwn![node]) this.oldestOwn![node] = age;
            });
            this.oldestAt = this.oldestOwn.slice();
            for (let i = profile.nodes - 1; i > 0; i--) {
                const above = profile.parent[i];
                if (this.oldestAt[i] > this.oldestAt[above]) this.oldestAt[above] = this.oldestAt[i];
            }
        }
        const of = ownOnly ? this.oldestOwn! : this.oldestAt;
        let most = 0;
        for (const i of nodes) if (of[i] > most) most = of[i];
        return most;
    }

    oldestOfRows(rows: readonly number[]): number {
        let most = 0;
        for (const row of rows) if (this.profile.rowOldest![row] > most) most = this.profile.rowOldest![row];
        return most;
    }

    ownerOfRows(rows: readonly number[]): string {
        const { profile } = this;
        const values = profile.values(this.metric);
        let at = rows[0];
        for (const row of rows) if (values[row] > values[at]) at = row;
        return at !== undefined && profile.rowOwner[at] ? profile.name(profile.frame[profile.rowOwner[at]]) : "";
    }

    moduleOfRows(rows: readonly number[]): string {
        const { profile } = this;
        const values = profile.values(this.metric);
        let at = rows[0];
        for (const row of rows) if (values[row] > values[at]) at = row;
        return at !== undefined && profile.rowSite[at] ? profile.owner(profile.frame[profile.rowSite[at]]) : "";
    }

    change(rows: readonly number[]): Change {
        return changeOfRows(this.profile, this.metric, rows);
    }

    /** Ages, in ns, of the youngest and of the oldest rows. */
    ages(): [number, number] {
        if (!this.range) {
            let [low, high] = [Infinity, 0];
            for (const age of this.profile.rowOldest ?? []) {
                if (age > 0 && age < low) low = age;
                if (age > high) high = age;
            }
            this.range = [Math.min(low, high / 10), high]; // ages that are nearly the same have nearly one colour
        }
        return this.range;
    }

    colourOfAge(age: number, c: Colours): string {
        if (!(age > 0)) return colourOf("", "", c.dark);
        const [low, high] = this.ages();
        return ageColour(high > low ? Math.log(age / low) / Math.log(high / low) : 1, c.dark);
    }

    /** What the colours mean; null: names have their hue. */
    legend(shading: Shading, c: Colours): HTMLElement | null {
        const swatches = (colours: string[]) => colours.map((colour) => {
            const e = el("span", { class: "swatch" });
            e.style.background = colour;
            return e;
        });
        const steps = [0, 0.25, 0.5, 0.75, 1];
        if (shading === "age") {
            const [low, high] = this.ages();
            return el("span", { class: "legend" }, formatDuration(low), ...swatches(steps.map((t) => ageColour(t, c.dark))),
                formatDuration(high));
        }
        if (shading !== "difference") return null;
        const shares = [-1, -0.5, 0, 0.5, 1];
        return el("span", { class: "legend" }, "shrank", ...swatches(shares.map((t) => changeColour(t, c.dark))), "grew");
    }
}

function ageColour(t: number, dark: boolean): string {
    const at = Math.max(0, Math.min(1, t));
    return `hsl(${195 - 170 * at} ${dark ? 45 : 65}% ${dark ? 24 + 8 * at : 84 - 12 * at}%)`;
}

/** `share`: from -1, all of it has gone, to 1, all of it is new; 0: no change that is certain. */
function changeColour(share: number, dark: boolean): string {
    if (share === 0) return colourOf("", "", dark);
    const much = Math.min(1, Math.abs(share));
    const light = dark ? 30 + 8 * much : 86 - 18 * much;
    return share < 0 ? `hsl(212 ${40 + 35 * much}% ${light}%)` : `hsl(${dark ? 24 : 28} ${50 + 40 * much}% ${light}%)`;
}

export function colourOfChange(c: Change, dark: boolean): string {
    if (isNoise(c)) return changeColour(0, dark);
    return changeColour(c.value / Math.max(c.before.value, c.after.value), dark);
}

