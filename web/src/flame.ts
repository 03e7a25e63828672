// SPDX-License-Identifier: BSD-2-Clause
// The flame graph, with its root on top: a box for each call, as wide as what was allocated below it.

import { clipText, colours, el, fitCanvas, FONT, onResize, type Colours } from "./dom";
import { format, formatShare } from "./format";
import type { Box, Tree } from "./tree";
import { pathOf } from "./tree";

const ROW = 19; // pixels
const NARROW = 0.5; // boxes of less pixels are drawn together with their neighbours

interface Rect {
    x: number;
    width: number;
    box: Box | null; // null: several boxes that are too narrow, children of `of`
    of: Box;
}

/** The colour of a box. */
export type Paint = (box: Box, c: Colours) => string;

export interface FlameEvents {
    select(box: Box): void; // the pointer or the keyboard is on it
    zoom(path: string[]): void;
    focus(box: Box): void; // callers and callees of its function are wanted
}

export class Flame {
    readonly element: HTMLElement;
    private readonly canvas = el("canvas", { "aria-hidden": "true" });
    private readonly sizer = el("div", { class: "sizer" });
    private readonly outline = el("ul", { role: "tree", class: "outline", "aria-label": "Calls" });
    private rows: Rect[][] = [];
    private tree: Tree | null = null;
    private zoomed: Box | null = null;
    private selected: Box | null = null;
    private matches: ((frame: number) => boolean) | null = null;
    private colour: Paint = () => "";
    private pending = false;

    constructor(private readonly events: FlameEvents) {
        this.element = el("div", { class: "flame", tabindex: "0", role: "application", "aria-label": "Flame graph" },
            this.sizer, this.canvas, this.outline);
        this.element.addEventListener("scroll", () => this.draw());
        this.canvas.addEventListener("pointermove", (e) => this.point(e));
        this.canvas.addEventListener("click", (e) => this.click(e));
        this.canvas.addEventListener("dblclick", (e) => {
            const hit = this.hit(e);
            if (hit?.box && hit.box.frame >= 0) this.events.focus(hit.box);
        });
        this.element.addEventListener("keydown", (e) => this.key(e));
        onResize(this.element, () => this.layout());
    }

    show(tree: Tree, zoomed: Box, matches: ((frame: number) => boolean) | null, colour: Paint): void {
        const other = this.tree !== tree;
        this.tree = tree;
        this.colour = colour;
        this.matches = matches;
        if (other || this.zoomed !== zoomed || !this.selected) this.selected = zoomed;
        this.zoomed = zoomed;
        this.layout();
        this.events.select(this.selected);
    }

    /** Places the boxes: the zoomed one and all above it over the whole width, and what is below it. */
    private layout(): void {
        const { tree, zoomed } = this;
        const width = this.element.clientWidth;
        if (!tree || !zoomed || !width) return;
        this.rows = [];
        for (let b: Box | null = zoomed; b; b = b.parent)
            this.rows[b.depth] = [{ x: 0, width, box: b, of: b }];
        const scale = zoomed.value > 0 ? width / zoomed.value : 0;
        let level: Rect[] = this.rows[zoomed.depth];
        while (level.length) {
            const next: Rect[] = [];
            for (const rect of level) if (rect.box) this.place(tree.kids(rect.box), rect, scale, next);
            if (next.length) this.rows.push(next);
            level = next;
        }
        this.sizer.style.height = `${this.rows.length * ROW}px`;
        this.describe();
        this.draw();
    }

    private place(kids: Box[], above: Rect, scale: number, out: Rect[]): void {
        let x = above.x;
        for (let i = 0; i < kids.length; i++) {
            const width = kids[i].value * scale;
            if (width < NARROW) {
                let rest = 0; // children come largest first
                for (; i < kids.length; i++) rest += kids[i].value;
                if (rest * scale >= NARROW) out.push({ x, width: rest * scale, box: null, of: above.box! });
                return;
            }
            out.push({ x, width, box: kids[i], of: above.box! });
            x += width;
        }
    }

    draw(): void {
        if (this.pending) return;
        this.pending = true;
        requestAnimationFrame(() => {
            this.pending = false;
            this.paint();
        });
    }

    private paint(): void {
        const { tree } = this;
        const width = this.element.clientWidth;
        const height = this.element.clientHeight;
        if (!tree || !width) return;
        const c = colours();
        const top = this.element.scrollTop;
        const context = fitCanvas(this.canvas, width, height);
        this.canvas.style.transform = `translateY(${top}px)`;
        context.fillStyle = c.background;
        context.fillRect(0, 0, width, height);
        context.font = FONT;
        context.textBaseline = "middle";
        const first = Math.max(0, Math.floor(top / ROW));
        const last = Math.min(this.rows.length, Math.ceil((top + height) / ROW));
        for (let depth = first; depth < last; depth++)
            for (const rect of this.rows[depth]) this.paintBox(context, rect, depth * ROW - top, c, tree);
    }

    private paintBox(context: CanvasRenderingContext2D, rect: Rect, y: number, c: Colours, tree: Tree): void {
        const { box } = rect;
        const { profile } = tree;
        const gap = rect.width > 3 ? 1 : 0;
        const above = box && this.zoomed && box.depth < this.zoomed.depth;
        const matched = box && box.frame >= 0 && this.matches?.(box.frame);
        context.globalAlpha = above ? 0.55 : this.matches && !matched ? 0.5 : 1;
        context.fillStyle = !box ? c.line
            : matched ? c.mark
            : this.colour(box, c);
        context.fillRect(rect.x, y, Math.max(rect.width - gap, NARROW), ROW - 1);
        if (box && box === this.selected) {
            context.strokeStyle = c.focus;
            context.lineWidth = 2;
            context.strokeRect(rect.x + 1, y + 1, Math.max(rect.width - gap - 2, 1), ROW - 3);
        }
        if (box && rect.width > 24) {
            const inlined = box.frame >= 0 && profile.isInlined(box.frame);
            const text = clipText(context, (inlined ? "» " : "") + tree.name(box), rect.width - 8);
            context.fillStyle = c.text;
            if (text) context.fillText(text, rect.x + 4, y + ROW / 2);
        }
        context.globalAlpha = 1;
    }

    private hit(e: MouseEvent): Rect | undefined {
        const at = this.canvas.getBoundingClientRect();
        const row = this.rows[Math.floor((e.clientY - at.top + this.element.scrollTop) / ROW)];
        const x = e.clientX - at.left;
        if (!row) return undefined;
        let [low, high] = [0, row.length];
        while (low < high) {
            const middle = (low + high) >> 1;
            if (row[middle].x + row[middle].width <= x) low = middle + 1;
            else high = middle;
        }
        return row[low] && row[low].x <= x ? row[low] : undefined;
    }

    private point(e: MouseEvent): void {
        const hit = this.hit(e);
        this.canvas.style.cursor = hit?.box ? "pointer" : "default";
        if (hit?.box) this.select(hit.box, false);
    }

    private click(e: MouseEvent): void {
        const hit = this.hit(e);
        if (hit?.box) this.events.zoom(pathOf(this.tree!, hit.box));
        else if (hit) this.events.zoom(pathOf(this.tree!, hit.of));
    }

    private select(box: Box, scroll: boolean): void {
        if (this.selected === box) return;
        this.selected = box;
        this.events.select(box);
        if (scroll) {
            const y = box.depth * ROW;
            if (y < this.element.scrollTop) this.element.scrollTop = y;
            else if (y + ROW > this.element.scrollTop + this.element.clientHeight)
                this.element.scrollTop = y + ROW - this.element.clientHeight;
            this.describe();
        }
        this.draw();
    }

    private key(e: KeyboardEvent): void {
        const { tree, selected, zoomed } = this;
        if (!tree || !selected || e.ctrlKey || e.altKey || e.metaKey) return;
        const siblings = selected.parent ? tree.kids(selected.parent) : [selected];
        const at = siblings.indexOf(selected);
        const to =
            e.key === "ArrowDown" ? tree.kids(selected)[0]
            : e.key === "ArrowUp" ? selected.parent
            : e.key === "ArrowRight" ? siblings[at + 1]
            : e.key === "ArrowLeft" ? siblings[at - 1]
            : e.key === "Home" ? tree.root
            : undefined;
        if (to) this.select(to, true);
        else if (e.key === "Enter") this.events.zoom(pathOf(tree, selected));
        else if (e.key === "Escape" && zoomed?.parent) this.events.zoom(pathOf(tree, zoomed.parent));
        else if (e.key === "f" && selected.frame >= 0) this.events.focus(selected);
        else if (!e.key.startsWith("Arrow")) return;
        e.preventDefault();
        e.stopPropagation();
    }

    /** What a screen reader is told: the selected box, and those below it. */
    private describe(): void {
        const { tree, selected } = this;
        if (!tree || !selected) return;
        const unit = tree.options.metric.amount;
        const item = (box: Box, level: number) =>
            el("li", { role: "treeitem", "aria-level": level, "aria-selected": String(box === selected) },
                `${tree.name(box)}, ${format(box.value, unit)}, ${formatShare(box.value, tree.root.value)}`);
        this.outline.replaceChildren(
            item(selected, selected.depth + 1),
            ...tree.kids(selected).slice(0, 20).map((kid) => item(kid, selected.depth + 2)),
        );
    }
}
