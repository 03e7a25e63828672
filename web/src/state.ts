// SPDX-License-Identifier: BSD-2-Clause
// What the page shows, and how that stands in its address.

import type { Metric } from "./profile";
import { SHADINGS, type Shading } from "./shades";
import type { Source } from "./source";

export const VIEWS = ["flame", "treemap", "timeline", "tables", "events", "text"] as const;
export type View = (typeof VIEWS)[number];

export interface State extends Metric {
    view: View;
    direction: "down" | "up" | "callers" | "callees";
    focus: string; // a function
    zoom: string[]; // names of boxes
    part: string[]; // of the treemap
    group: string;
    parting: string;
    sort: string;
    search: string;
    fold: boolean;
    colour: Shading | ""; // "": what the view has unless another one is chosen
    at: number | null; // seconds: the stored moment that was there then; null: the end
}

const LONGEST = 1 << 17; // characters of an address: browsers refuse one of a few MB

export function stateOfHash(hash: string, source: Source, views: View[]): State {
    const h = new URLSearchParams(hash.slice(1));
    const one = <T extends string>(key: string, of: readonly T[], instead: T): T =>
        of.includes(h.get(key) as T) ? (h.get(key) as T) : instead;
    const amount = h.get("amount") ?? source.first.amount;
    const metric = source.metrics.find((m) => m.metric.key === h.get("metric") && m.metric.amount === amount);
    const at = parseFloat(h.get("at") ?? "");
    return {
        view: one("view", views, views[0]),
        ...(metric?.metric ?? source.first),
        direction: one("direction", ["down", "up", "callers", "callees"], "down"),
        focus: h.get("focus") ?? "",
        zoom: h.getAll("zoom"),
        part: h.getAll("part"),
        group: one("by", source.groups, source.groups[0]),
        parting: one("parts", source.partings, source.partings[0] ?? ""),
        sort: h.get("sort") ?? "",
        search: h.get("search") ?? "",
        fold: h.get("fold") === "1",
        colour: one<Shading | "">("colour", SHADINGS, ""),
        at: source.moments && at >= 0 ? at : null,
    };
}

export function hashOfState(s: State, source: Source): string {
    const h = new URLSearchParams();
    h.set("view", s.view);
    h.set("metric", s.key);
    if (s.amount !== source.first.amount) h.set("amount", s.amount);
    if (s.direction !== "down") h.set("direction", s.direction);
    if (s.focus) h.set("focus", s.focus);
    const deep = s.zoom.reduce((sum, name) => sum + name.length + 6, 0);
    if (deep < LONGEST) for (const name of s.zoom) h.append("zoom", name); // deeper: the page alone knows
    for (const name of s.part) h.append("part", name);
    if (s.group !== source.groups[0]) h.set("by", s.group);
    if (s.parting !== source.partings[0]) h.set("parts", s.parting);
    if (s.sort) h.set("sort", s.sort);
    if (s.search) h.set("search", s.search);
    if (s.fold) h.set("fold", "1");
    if (s.colour) h.set("colour", s.colour);
    if (s.at !== null) h.set("at", String(s.at));
    return "#" + h.toString();
}
