// SPDX-License-Identifier: BSD-2-Clause
// A profile: the tree of all stacks in columns, and what was allocated by each stack (see src/model/profile/call_tree.h).

import type { Blob, Numbers } from "./blob";
import { PARTS, emptyEstimate, intervalOf, mergeRow, type Interval, type Part } from "./estimate";
import { baseName, cleanName } from "./format";

export type Amount = "bytes" | "count";

/** What is shown: live bytes, or allocated objects, and so on. */
export interface Metric {
    key: string;
    amount: Amount;
}

export interface Image {
    program: string;
    pid: number;
    began_ms: number;
    taken_ms: number;
    peak_ms: number;
    peak_bytes: number;
}

interface MetricData {
    key: string;
    columns: Record<Amount, Record<Part, Numbers>>;
    total: Record<Amount, Interval>;
}

/** Sums of each node's own stacks, and of everything below it, too. */
export interface Sums {
    self: Float64Array;
    inclusive: Float64Array;
}

const INLINED = 1;
const WRAPPER = 2;
const PROCESS = 4;
const MARKER = 8;

export class Profile {
    readonly nodes: number;
    readonly parent: Uint32Array;
    readonly end: Uint32Array; // the first node behind those below
    readonly frame: Numbers; // of the root: without meaning
    readonly line: Numbers;
    readonly rowNode: Numbers;
    readonly rowSite: Numbers;
    readonly functionOf: Numbers; // by frame: numbers of strings
    readonly moduleOf: Numbers;
    readonly fileOf: Numbers;
    readonly flags: Numbers;
    readonly strings: string[];
    /** By frame: the first frame with that function in that module. Frames of one group are one box. */
    readonly group: Uint32Array;
    readonly images: Image[];
    readonly points: Record<"image" | "time_ms" | "live_bytes" | "allocated_bytes" | "rss_anon_bytes", Numbers>;
    private metrics: MetricData[];
    private sums = new Map<string, Sums>();

    constructor(blob: Blob) {
        const h = blob.header.profile;
        this.strings = blob.texts(h.strings).map(cleanName);
        this.functionOf = blob.numbers(h.frames.function);
        this.moduleOf = blob.numbers(h.frames.module);
        this.fileOf = blob.numbers(h.frames.file);
        this.flags = blob.numbers(h.frames.flags);
        this.frame = blob.numbers(h.nodes.frame);
        this.line = blob.numbers(h.nodes.line);
        this.rowNode = blob.numbers(h.row_node);
        this.rowSite = blob.numbers(h.row_site);
        this.nodes = this.frame.length;
        const depth = blob.numbers(h.nodes.depth);
        [this.parent, this.end] = linksOf(depth);
        this.group = groupsOf(this.functionOf, this.moduleOf);
        this.images = h.images;
        this.points = Object.fromEntries(
            Object.entries(h.points).map(([key, c]) => [key, blob.numbers(c as any)]),
        ) as any;
        const read = (columns: any) =>
            Object.fromEntries(PARTS.map((key) => [key, blob.numbers(columns[key])])) as Record<Part, Numbers>;
        this.metrics = h.metrics.map((m: any) => ({
            key: m.key,
            total: m.total,
            columns: { bytes: read(m.bytes), count: read(m.count) },
        }));
    }

    get metricKeys(): string[] {
        return this.metrics.map((m) => m.key);
    }

    private metric(key: string): MetricData {
        return this.metrics.find((m) => m.key === key) ?? this.metrics[0];
    }

    total(m: Metric): Interval {
        return this.metric(m.key).total[m.amount];
    }

    /** By row. */
    values(m: Metric): Numbers {
        return this.metric(m.key).columns[m.amount].value;
    }

    sumsOf(m: Metric): Sums {
        const key = m.key + m.amount;
        let found = this.sums.get(key);
        if (!found) {
            const self = new Float64Array(this.nodes);
            const values = this.values(m);
            for (let i = 0; i < values.length; i++) self[this.rowNode[i]] += values[i];
            const inclusive = self.slice();
            for (let i = this.nodes - 1; i > 0; i--) inclusive[this.parent[i]] += inclusive[i];
            found = { self, inclusive };
            this.sums.set(key, found);
        }
        return found;
    }

    /** The first row at this node or behind it. */
    private rowFrom(node: number): number {
        let low = 0;
        let high = this.rowNode.length;
        while (low < high) {
            const middle = (low + high) >> 1;
            if (this.rowNode[middle] < node) low = middle + 1;
            else high = middle;
        }
        return low;
    }

    /** The estimate of all rows of these ranges of nodes, which must not overlap. */
    interval(m: Metric, ranges: Iterable<[number, number]>): Interval {
        const columns = this.metric(m.key).columns[m.amount];
        const e = emptyEstimate();
        for (const [from, to] of ranges) {
            const last = this.rowFrom(to);
            for (let i = this.rowFrom(from); i < last; i++) mergeRow(e, columns, i);
        }
        return intervalOf(e);
    }

    name(frame: number): string {
        return this.strings[this.functionOf[frame]];
    }

    module(frame: number): string {
        return this.strings[this.moduleOf[frame]];
    }

    file(frame: number): string {
        return this.strings[this.fileOf[frame]];
    }

    isInlined(frame: number): boolean {
        return (this.flags[frame] & INLINED) !== 0;
    }

    isWrapper(frame: number): boolean {
        return (this.flags[frame] & WRAPPER) !== 0;
    }

    isProcess(frame: number): boolean {
        return (this.flags[frame] & PROCESS) !== 0;
    }

    isMarker(frame: number): boolean {
        return (this.flags[frame] & MARKER) !== 0;
    }

    /** "fs/pipe.c:12", or the module where the file is not known. */
    place(frame: number, line: number): string {
        const file = this.file(frame);
        if (file) return line ? `${file}:${line}` : file;
        return this.module(frame);
    }

    /** What a colour by module stands for. */
    owner(frame: number): string {
        if (this.isProcess(frame)) return "";
        return baseName(this.module(frame)) || this.name(frame);
    }
}

/** Parents and ends of nodes that are in the order of a walk from the top. */
function linksOf(depth: Numbers): [Uint32Array, Uint32Array] {
    const n = depth.length;
    const parent = new Uint32Array(n);
    const end = new Uint32Array(n).fill(n);
    const open: number[] = []; // by depth: the node that is being walked
    for (let i = 0; i < n; i++) {
        const d = depth[i];
        for (let k = d; k < open.length; k++) end[open[k]] = i;
        open.length = d;
        open.push(i);
        parent[i] = d ? open[d - 1] : 0;
    }
    return [parent, end];
}

function groupsOf(functions: Numbers, modules: Numbers): Uint32Array {
    const first = new Map<number, number>();
    const group = new Uint32Array(functions.length);
    for (let i = 0; i < functions.length; i++) {
        const key = functions[i] * 2 ** 26 + modules[i];
        const found = first.get(key);
        if (found === undefined) first.set(key, i);
        group[i] = found ?? i;
    }
    return group;
}
