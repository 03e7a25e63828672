// SPDX-License-Identifier: BSD-2-Clause
// What colours of boxes and parts mean: the module, the owner, the age, or a difference.

import { hasProfileRows, type Context } from "./context";
import { colourOf, type Colours } from "./dom";
import { Shades, colourOfChange, shadingsOf, type Shading } from "./shades";
import type { Box, Tree } from "./tree";
import { rowsOfPart, type PaintPart, type Part } from "./treemap";

export class Paint {
    private made: [string, Shades] | null = null; // for a metric and a moment
    private boxColours = new WeakMap<Box | Part, string>(); // where they take some time

    constructor(private readonly context: Context) {}

    shadings(): Shading[] {
        const { profile } = this.context.shown;
        return profile && (this.context.state.view === "flame" || hasProfileRows(this.context)) ? shadingsOf(profile) : [];
    }

    /** What colours mean now; "": a part of the treemap has that of the part around it. */
    shading(): Shading | "" {
        const s = this.context.state;
        const has = this.shadings();
        if (s.colour && has.includes(s.colour)) return s.colour;
        if (has.includes("difference")) return "difference";
        return s.view === "flame" ? "module" : "";
    }

    next(): void {
        const all: (Shading | "")[] = this.shadings();
        if (this.context.state.view === "treemap" && all.length) all.unshift("");
        if (all.length) this.context.set({ colour: all[(all.indexOf(this.shading()) + 1) % all.length] });
    }

    shades(): Shades {
        const key = [this.context.metric.key, this.context.metric.amount, this.context.shownSeconds].join(" ");
        if (this.made?.[0] !== key) this.made = [key, new Shades(this.context.profile, this.context.metric)];
        return this.made[1];
    }

    boxColour(tree: Tree): (box: Box, c: Colours) => string {
        const shading = this.shading();
        const shades = this.shades();
        const { profile } = this.context;
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

    partColour(): PaintPart {
        const shading = this.shading();
        if (!shading) return null;
        const shades = this.shades();
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
}
