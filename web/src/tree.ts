// SPDX-License-Identifier: BSD-2-Clause
// Trees of boxes over a profile. Boxes are made when they are needed: a view asks for the children of those that it can
// show, so that a profile of millions of nodes costs only what is seen of it.

import type { Metric, Profile, Sums } from "./profile";

export type Direction = "down" | "up"; // to the functions that are called, or to the callers

export interface Box {
    frame: number; // -1: the root
    line: number; // 0: not known, or several
    parent: Box | null;
    depth: number;
    value: number;
    at: number[]; // nodes of the profile
    from: number[] | null; // upwards: from[k] is the node at which the walk to at[k] began, and its value counts
    kids: Box[] | null; // null: not made yet
}

export interface TreeOptions {
    metric: Metric;
    direction: Direction;
    /** A group of frames: only its outermost calls, and what is below or above them. -1: everything. */
    focus: number;
    foldRecursion: boolean;
    foldWrappers: boolean;
}

export class Tree {
    readonly root: Box;
    private readonly sums: Sums;
    /** Upwards without a focus: a node counts its own stacks alone, so that nothing counts twice. */
    private readonly ownOnly: boolean;
    private readonly own: Float64Array; // by node: its own stacks; with wrappers folded, those that it requested

    constructor(
        readonly profile: Profile,
        readonly options: TreeOptions,
    ) {
        this.sums = profile.sumsOf(options.metric);
        this.own = options.foldWrappers ? profile.siteSums(options.metric) : this.sums.self;
        this.ownOnly = options.direction === "up" && options.focus < 0;
        this.root = this.makeRoot();
    }

    private makeRoot(): Box {
        const { focus, direction } = this.options;
        const box = (frame: number, at: number[]): Box => ({
            frame, line: 0, parent: null, depth: 0, value: 0, at, from: direction === "up" ? at : null, kids: null,
        });
        let root: Box;
        if (focus >= 0) {
            root = box(focus, this.outermost(focus));
        } else if (direction === "down") {
            root = box(-1, [0]);
        } else {
            root = box(-1, this.withOwn());
            root.kids = this.group(root, root.at, root.at);
        }
        root.value = this.sum(root.from ?? root.at);
        return root;
    }

    /** Nodes of this group that have none of it above them. */
    private outermost(group: number): number[] {
        const { profile } = this;
        const found: number[] = [];
        for (let i = 1; i < profile.nodes; ) {
            if (profile.group[profile.frame[i]] === group) {
                found.push(i);
                i = profile.end[i];
            } else {
                i++;
            }
        }
        return found;
    }

    private withOwn(): number[] {
        const { profile, options } = this;
        const found: number[] = [];
        if (profile.isDiff) return [...new Set(options.foldWrappers ? profile.rowSite : profile.rowNode)].filter(Boolean);
        for (let i = 1; i < profile.nodes; i++) if (this.own[i] !== 0) found.push(i);
        return found;
    }

    private sum(nodes: number[]): number {
        const values = this.ownOnly ? this.own : this.sums.inclusive;
        let sum = 0;
        for (const i of nodes) sum += values[i];
        return sum;
    }

    kids(box: Box): Box[] {
        if (!box.kids) box.kids = this.options.direction === "down" ? this.callees(box) : this.callers(box);
        return box.kids;
    }

    private callees(box: Box): Box[] {
        const { profile } = this;
        const below: number[] = [];
        const pending = box.at.slice();
        for (let node = pending.pop(); node !== undefined; node = pending.pop())
            for (let i = node + 1; i < profile.end[node]; i = profile.end[i])
                (this.folds(profile.frame[i], box) ? pending : below).push(i);
        return this.group(box, below, null);
    }

    private callers(box: Box): Box[] {
        const { profile } = this;
        const at: number[] = [];
        const from: number[] = [];
        box.at.forEach((node, k) => {
            let i = profile.parent[node];
            while (i && this.folds(profile.frame[i], box)) i = profile.parent[i];
            if (!i) return;
            at.push(i);
            from.push(box.from![k]);
        });
        return this.group(box, at, from);
    }

    /** Is this frame left out below that box? */
    private folds(frame: number, box: Box): boolean {
        const { profile, options } = this;
        if (options.foldWrappers && profile.isWrapper(frame)) return true;
        return options.foldRecursion && box.frame >= 0 && profile.group[frame] === profile.group[box.frame];
    }

    private group(parent: Box, at: number[], from: number[] | null): Box[] {
        const { profile } = this;
        const groups = new Map<number, Box>();
        const values = this.ownOnly ? this.own : this.sums.inclusive;
        at.forEach((node, k) => {
            const frame = profile.frame[node];
            const value = values[from ? from[k] : node];
            if (value === 0 && !profile.isDiff) return; // of a diff: it may have been there before
            let box = groups.get(profile.group[frame]);
            if (!box) {
                box = {
                    frame, line: profile.line[node], parent, depth: parent.depth + 1, value: 0, at: [],
                    from: from ? [] : null, kids: null,
                };
                groups.set(profile.group[frame], box);
            }
            if (box.line !== profile.line[node]) box.line = 0;
            box.value += value;
            box.at.push(node);
            box.from?.push(from![k]);
        });
        return [...groups.values()].sort((a, b) => b.value - a.value || this.order(a, b));
    }

    private order(a: Box, b: Box): number {
        const [x, y] = [this.profile.name(a.frame), this.profile.name(b.frame)];
        return x < y ? -1 : x > y ? 1 : a.frame - b.frame;
    }

    name(box: Box): string {
        return box.frame < 0 ? "all" : this.profile.name(box.frame);
    }

    /** As it stands in the page's address. */
    fullName(box: Box): string {
        return box.frame < 0 ? "all" : this.profile.fullName(box.frame);
    }

    /** Nodes at which the memory of the box is. */
    nodes(box: Box): number[] {
        return box.from ?? box.at;
    }

    /** The rows whose memory the box shows. */
    rows(box: Box): Iterable<number> {
        const { profile } = this;
        if (box.frame < 0) return profile.rowsOf([[0, profile.nodes]]);
        const ofSites = this.ownOnly && this.options.foldWrappers;
        const end = (i: number) => (this.ownOnly && !ofSites ? i + 1 : profile.end[i]);
        return profile.rowsOf(this.nodes(box).map((i): [number, number] => [i, end(i)]), ofSites);
    }

    /** How many rows there are to look at for the box, at most. */
    effort(box: Box): number {
        const { profile } = this;
        if (box.frame < 0) return profile.rowNode.length;
        let sum = 0;
        for (const i of this.nodes(box)) sum += this.ownOnly ? 1 : profile.end[i] - i;
        return sum;
    }

    /** Does a box show only what was allocated at its nodes, and not below them? */
    get showsOwnOnly(): boolean {
        return this.ownOnly;
    }
}

/** Names from below the root down to the box: how a box is found again in another tree. */
export function pathOf(tree: Tree, box: Box): string[] {
    const names: string[] = [];
    for (let b: Box | null = box; b && b.parent; b = b.parent) names.push(tree.fullName(b));
    return names.reverse();
}

export function boxAt(tree: Tree, path: string[]): Box {
    let box = tree.root;
    for (const name of path) {
        const found = tree.kids(box).find((kid) => tree.fullName(kid) === name);
        if (!found) break;
        box = found;
    }
    return box;
}
