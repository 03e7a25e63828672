// SPDX-License-Identifier: BSD-2-Clause
// The treemap: the memory of each directory, file and function, or module and function, as nested boxes.

import { hierarchy, treemap, treemapSquarify, type HierarchyRectangularNode } from "d3-hierarchy";
import { clipText, colourOf, colours, el, fitCanvas, FONT, onResize, type Colours } from "./dom";
import { format } from "./format";
import type { Unit } from "./format";

/** A part of the whole; leaves have values, others the sum of their children. */
export interface Part {
    name: string;
    value: number;
    kids: Map<string, Part>;
    rows: number[]; // of the profile or table; of a leaf: others have those of their parts
}

/** The rows of a part and of all parts in it. */
export function rowsOfPart(part: Part): number[] {
    const rows: number[] = [];
    const open = [part];
    for (let p = open.pop(); p; p = open.pop()) {
        for (const row of p.rows) rows.push(row);
        open.push(...p.kids.values());
    }
    return rows;
}

/** The colour of a part; null: that of the largest part that it is in. */
export type PaintPart = ((part: Part, c: Colours) => string) | null;

export function newPart(name: string): Part {
    return { name, value: 0, kids: new Map(), rows: [] };
}

export function addPath(root: Part, path: string[], value: number, row: number): void {
    let part = root;
    part.value += value;
    for (const name of path) {
        let kid = part.kids.get(name);
        if (!kid) part.kids.set(name, (kid = newPart(name)));
        kid.value += value;
        part = kid;
    }
    part.rows.push(row);
}

/** A box whose only part has parts itself is one with it: "src/view", or "src/main.c". */
export function joinLines(part: Part): Part {
    const kids = new Map<string, Part>();
    for (const kid of part.kids.values()) {
        let joined = kid;
        while (joined.kids.size === 1) {
            const [only] = joined.kids.values();
            if (!only.kids.size) break;
            joined = { name: `${joined.name}/${only.name}`, value: only.value, kids: only.kids, rows: [] };
        }
        kids.set(joined.name, joinLines(joined));
    }
    return { name: part.name, value: part.value, kids, rows: part.rows };
}

export interface TreemapEvents {
    select(path: Part[]): void;
    zoom(path: string[]): void;
}

type Node = HierarchyRectangularNode<Part>;

const HEAD = 16; // pixels above the children of a box

export class Treemap {
    readonly element: HTMLElement;
    private readonly canvas = el("canvas", { "aria-hidden": "true" });
    private readonly outline = el("ul", { role: "tree", class: "outline", "aria-label": "Parts" });
    private path: Part[] = [];
    private unit: Unit = "bytes";
    private nodes: Node[] = [];
    private selected: Node | null = null;
    private matches: ((name: string) => boolean) | null = null;
    private colour: PaintPart = null;

    constructor(private readonly events: TreemapEvents) {
        this.element = el("div", { class: "treemap", tabindex: "0", role: "application", "aria-label": "Treemap" },
            this.canvas, this.outline);
        this.canvas.addEventListener("pointermove", (e) => {
            const hit = this.hit(e);
            if (hit) this.select(hit);
        });
        this.canvas.addEventListener("click", (e) => {
            const hit = this.hit(e);
            if (hit) this.enter(hit);
        });
        this.element.addEventListener("keydown", (e) => this.key(e));
        onResize(this.element, () => this.layout());
    }

    show(root: Part, path: string[], unit: Unit, matches: ((name: string) => boolean) | null, colour: PaintPart): void {
        this.unit = unit;
        this.colour = colour;
        this.matches = matches;
        this.path = [root];
        for (const name of path) {
            const kid = this.path[this.path.length - 1].kids.get(name);
            if (!kid || !kid.kids.size) break;
            this.path.push(kid);
        }
        this.selected = null;
        this.layout();
    }

    private layout(): void {
        const width = this.element.clientWidth;
        const height = this.element.clientHeight;
        if (!width || !height) return;
        const top = this.path[this.path.length - 1];
        const made = hierarchy(top, (p) => (p && p.kids.size ? [...p.kids.values()] : undefined));
        made.sum((p) => (p.kids.size ? 0 : p.value)).sort((a, b) => b.value! - a.value! || (a.data.name < b.data.name ? -1 : 1));
        const laid = treemap<Part>().size([width, height]).tile(treemapSquarify).paddingInner(1).paddingOuter(2)
            .paddingTop(HEAD)(made);
        this.nodes = laid.descendants().filter((n) => n.x1 - n.x0 >= 1 && n.y1 - n.y0 >= 1);
        if (!this.selected || !this.nodes.includes(this.selected)) this.select(this.nodes[0]);
        this.paint();
    }

    private paint(): void {
        const width = this.element.clientWidth;
        const height = this.element.clientHeight;
        const c = colours();
        const context = fitCanvas(this.canvas, width, height);
        context.fillStyle = c.background;
        context.fillRect(0, 0, width, height);
        context.font = FONT;
        context.textBaseline = "middle";
        for (const n of this.nodes) {
            const [w, h] = [n.x1 - n.x0, n.y1 - n.y0];
            const group = n.depth ? n.ancestors()[n.depth - 1] : n;
            const matched = this.matches?.(n.data.name);
            context.globalAlpha = this.matches && !matched && !n.children ? 0.45 : 1;
            context.fillStyle = matched ? c.mark
                : !n.depth ? c.line
                : this.colour ? this.colour(n.data, c)
                : colourOf(group.data.name, n.data.name, c.dark);
            context.fillRect(n.x0, n.y0, w, h);
            context.globalAlpha = 1;
            if (w > 3 && h > 3) {
                context.strokeStyle = c.background;
                context.lineWidth = 1;
                context.strokeRect(n.x0 + 0.5, n.y0 + 0.5, w - 1, h - 1);
            }
            if (n === this.selected) {
                context.strokeStyle = c.focus;
                context.lineWidth = 2;
                context.strokeRect(n.x0 + 1, n.y0 + 1, w - 2, h - 2);
            }
            if (h < 13) continue;
            const text = clipText(context, `${n.data.name}  ${format(n.value!, this.unit)}`, w - 6)
                || clipText(context, n.data.name, w - 6);
            context.fillStyle = c.text;
            if (text) context.fillText(text, n.x0 + 3, n.y0 + 8.5);
        }
    }

    private hit(e: MouseEvent): Node | undefined {
        const at = this.canvas.getBoundingClientRect();
        const [x, y] = [e.clientX - at.left, e.clientY - at.top];
        let found: Node | undefined;
        for (const n of this.nodes) if (x >= n.x0 && x < n.x1 && y >= n.y0 && y < n.y1) found = n; // the innermost is last
        return found;
    }

    private fullPath(n: Node): Part[] {
        return [...this.path.slice(0, -1), ...n.ancestors().reverse().map((a) => a.data)];
    }

    private select(n: Node | undefined): void {
        if (!n || n === this.selected) return;
        this.selected = n;
        this.events.select(this.fullPath(n));
        this.outline.replaceChildren(...[n, ...(n.children ?? []).slice(0, 20)].map((part) =>
            el("li", { role: "treeitem", "aria-level": part.depth + 1, "aria-selected": String(part === n) },
                `${part.data.name}, ${format(part.value!, this.unit)}`)));
        this.paint();
    }

    /** Zooms into the box, or into the one around it if it has no parts. From the top one it zooms out. */
    private enter(n: Node): void {
        const to = n.children ? n : n.parent ?? n;
        const path = to.depth ? this.fullPath(to) : this.path.slice(0, -1);
        this.events.zoom(path.slice(1).map((p) => p.name));
    }

    private key(e: KeyboardEvent): void {
        const n = this.selected;
        if (!n || e.ctrlKey || e.altKey || e.metaKey) return;
        const siblings = n.parent?.children ?? [n];
        const at = siblings.indexOf(n);
        const to =
            e.key === "ArrowDown" ? n.children?.[0]
            : e.key === "ArrowUp" ? n.parent
            : e.key === "ArrowRight" ? siblings[at + 1]
            : e.key === "ArrowLeft" ? siblings[at - 1]
            : undefined;
        if (to) this.select(to);
        else if (e.key === "Enter") this.enter(n);
        else if (e.key === "Escape" && this.path.length > 1)
            this.events.zoom(this.path.slice(1, -1).map((p) => p.name));
        else if (!e.key.startsWith("Arrow")) return;
        e.preventDefault();
        e.stopPropagation();
    }
}
