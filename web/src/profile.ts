// SPDX-License-Identifier: BSD-2-Clause
// A profile: the tree of all stacks in columns, and what was allocated by each stack (see src/model/profile/call_tree.h).

import type { Blob, Numbers } from "./blob";
import { intervalOf, type Estimate, type Interval } from "./estimate";
import type { Captures } from "./change";
import { baseName, cleanName } from "./format";
import { Moments } from "./moments";
import {
    CellValues, OwnValues, cellsOf, columnsOf, readLive, readRequested, readSums, type Cells, type Own, type ReadCell, type Values,
} from "./values";

export type Amount = "bytes" | "count" | "ns";

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
    ended: boolean; // at taken_ms
    signal: number; // that ended it; 0: none, or not known
}

/** An event of no process. */
export interface Mark {
    time_ms: number;
    text: string;
    bad: boolean;
}

export interface MetricData {
    metric: Metric;
    label: string;
    readonly values: Values; // by row
    readonly total: Interval;
}

/** A metric whose values are made when they are needed. */
class LazyMetric implements MetricData {
    private made: Values | null = null;
    private sum: Interval | null;

    constructor(
        readonly metric: Metric,
        readonly label: string,
        private readonly make: () => Values,
        total: Interval | null, // null: of all rows
    ) {
        this.sum = total;
    }

    get values(): Values {
        return (this.made ??= this.make());
    }

    get total(): Interval {
        if (this.sum) return this.sum;
        const e = this.values.begin();
        for (let row = 0; row < this.values.value.length; row++) this.values.add(e, row);
        return (this.sum = intervalOf(e));
    }
}

export type Points = Record<"image" | "time_ms" | "live_bytes" | "allocated_bytes" | "rss_anon_bytes", Numbers>;

/** What a profile is made of. Nodes are in the order of a walk from the top; node 0 is the root. */
export interface ProfileData {
    strings: string[];
    frames: Record<"function" | "module" | "file" | "flags", Numbers>;
    nodes: Record<"depth" | "frame" | "line", Numbers>;
    rowNode: Numbers; // ascending
    rowSite: Numbers;
    rowOwner: Numbers;
    rowLine: Numbers; // of the site
    rowOldest: Numbers | null; // ns: of what is live
    metrics: MetricData[];
    images: Image[];
    marks: Mark[];
    points: Points | null;
    started_ms: number | null; // the zero of FILE@TIME
    first: Metric | null; // what is shown first; null: what has something
    moments: Moments | null;
    past: ((moment: number, ms: number) => MetricData[]) | null;
    captures: Captures | null; // of a diff of several
}

const LABELS: Record<string, string> = {
    "live bytes": "Live", "live count": "Live objects", "peak bytes": "Peak", "peak count": "Objects at the peak",
    "allocated bytes": "Allocated", "allocated count": "Allocations", "temporary bytes": "Temporary",
    "temporary count": "Temporary allocations", "requested bytes": "Requested", "slack bytes": "Slack",
};

/** "Live", "Live objects, grew": of the key of a metric, and of a side of a diff. */
function labelOf(key: string, amount: Amount): string {
    const [metric, side] = key.split(" ");
    return LABELS[`${metric} ${amount}`] + (side ? `, ${side}` : "");
}

const AMOUNTS = ["bytes", "count"] as const;

/** What is known of a metric at a stored moment, and of which sums of cells each metric is made. */
const PAST = ["live", "allocated", "requested", "slack"];

function readOf(cells: Cells["kinds"], key: string): ReadCell {
    if (key === "live") return readLive(cells.allocated, cells.freed);
    if (key === "requested" || key === "slack") return readRequested(cells.allocated, key === "slack");
    return readSums(cells[key as keyof Cells["kinds"]]);
}

/** The metrics of cells, and of rows that have estimates of their own. */
function metricsOf(blob: Blob, h: any, cells: Cells | null): MetricData[] {
    const rows = h.sums_row ? blob.numbers(h.sums_row) : new Uint32Array(0);
    return h.metrics.flatMap((m: any) => AMOUNTS.filter((amount) => m[amount]).map((amount) => {
        const make = (): Values => {
            const own: Own = { row: rows, columns: columnsOf(blob, m[amount]) };
            return cells ? new CellValues(cells, readOf(cells.kinds, m.key), amount === "count", h.nothing[amount], own)
                : new OwnValues(own.columns);
        };
        return new LazyMetric({ key: m.key, amount }, (m.bound ? "~" : "") + labelOf(m.key, amount), make, m.total[amount]);
    }));
}

/** The metrics at a stored moment. */
function pastMetrics(h: any, moments: Moments, cells: Cells) {
    const known: [string, (typeof AMOUNTS)[number]][] = h.metrics.filter((m: any) => PAST.includes(m.key)).flatMap((m: any) =>
        AMOUNTS.filter((amount) => m[amount]).map((amount) => [m.key, amount]));
    const none = new Uint32Array(0);
    const own = { row: none, columns: {} } as unknown as Own;
    return (moment: number, ms: number): MetricData[] => {
        const kinds = { ...cells.kinds, ...moments.at(moment, ms) };
        return known.map(([key, amount]) => new LazyMetric(
            { key, amount }, labelOf(key, amount),
            () => new CellValues(cells, readOf(kinds, key), amount === "count", h.nothing[amount], own), null));
    };
}

/** Reads what src/view/page/html_profile.c wrote. */
export function profileOfBlob(blob: Blob): ProfileData {
    const h = blob.header.profile;
    const rowNode = blob.numbers(h.row_node);
    const cells = h.cells ? cellsOf(blob, h.cells, rowNode.length) : null;
    const moments = cells && h.moments ? new Moments(blob, h.moments, cells, h.images) : null;
    return {
        strings: blob.texts(h.strings).map(cleanName),
        frames: columnsOf(blob, h.frames),
        nodes: columnsOf(blob, h.nodes),
        rowNode,
        rowSite: blob.numbers(h.row_site),
        rowOwner: blob.numbers(h.row_owner),
        rowLine: blob.numbers(h.row_line),
        rowOldest: h.row_oldest_ns.kind === "zero" ? null : blob.numbers(h.row_oldest_ns),
        metrics: metricsOf(blob, h, cells),
        images: h.images,
        marks: h.marks ?? [],
        points: h.points ? columnsOf(blob, h.points) : null,
        started_ms: h.started_ms ?? null,
        first: h.first ?? null,
        moments,
        past: moments && pastMetrics(h, moments, cells!),
        captures: h.captures ?? null,
    };
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
const NAMELESS = 16;


export class Profile {
    readonly nodes: number;
    readonly parent: Uint32Array;
    readonly end: Uint32Array; // the first node behind those below
    readonly frame: Numbers; // of the root: without meaning
    readonly line: Numbers;
    readonly rowNode: Numbers;
    readonly rowSite: Numbers;
    readonly rowOwner: Numbers;
    readonly rowLine: Numbers;
    readonly rowOldest: Numbers | null;
    readonly functionOf: Numbers; // by frame: numbers of strings
    readonly moduleOf: Numbers;
    readonly fileOf: Numbers;
    readonly flags: Numbers;
    readonly strings: string[];
    /** By frame: the first frame with that function in that module. Frames of one group are one box. */
    readonly group: Uint32Array;
    readonly images: Image[];
    readonly marks: Mark[];
    readonly points: Points | null;
    readonly started_ms: number | null;
    readonly first: Metric | null;
    readonly moments: Moments | null;
    metrics: MetricData[];
    readonly isDiff: boolean;
    readonly captures: Captures | null;
    private named: Uint32Array | null = null;
    private readonly past: ProfileData["past"];
    private readonly ambiguous = new Set<number>(); // numbers of strings
    private sums = new Map<string, Sums>();

    constructor(data: ProfileData) {
        this.strings = data.strings;
        this.functionOf = data.frames.function;
        this.moduleOf = data.frames.module;
        this.fileOf = data.frames.file;
        this.flags = data.frames.flags;
        this.frame = data.nodes.frame;
        this.line = data.nodes.line;
        this.rowNode = data.rowNode;
        this.rowSite = data.rowSite;
        this.rowOwner = data.rowOwner;
        this.rowLine = data.rowLine;
        this.rowOldest = data.rowOldest;
        this.nodes = this.frame.length;
        [this.parent, this.end] = linksOf(data.nodes.depth);
        this.group = groupsOf(this.functionOf, this.moduleOf);
        const groupNamed = new Map<number, number>();
        this.group.forEach((group, frame) => {
            const name = this.functionOf[frame];
            if ((groupNamed.get(name) ?? group) !== group) this.ambiguous.add(name);
            groupNamed.set(name, group);
        });
        this.images = data.images;
        this.marks = data.marks;
        this.points = data.points;
        this.started_ms = data.started_ms;
        this.first = data.first;
        this.moments = data.moments;
        this.past = data.past;
        this.metrics = data.metrics;
        this.captures = data.captures;
        this.isDiff = data.metrics.some((m) => m.metric.key.endsWith(" before"));
    }

    /** By row: the nearest node at or above the site whose function has a name; the site itself if none has. */
    get rowNamed(): Uint32Array {
        if (!this.named) {
            this.named = Uint32Array.from(this.rowSite);
            this.named.forEach((site, row) => {
                let i = site;
                while (i && this.isNameless(this.frame[i])) i = this.parent[i];
                if (i && !this.isProcess(this.frame[i]) && !this.isMarker(this.frame[i])) this.named![row] = i;
            });
        }
        return this.named;
    }

    /** The profile as it was at a stored moment; processes that ended until `ms` are as they were in the end. */
    at(moment: number, ms: number): Profile {
        const then: any = Object.assign(Object.create(Profile.prototype), this);
        then.metrics = this.past!(moment, ms);
        then.sums = new Map();
        then.rowOldest = null;
        return then;
    }

    metric(m: Metric): MetricData {
        const find = (key: string) => this.metrics.find((d) => d.metric.key === key && d.metric.amount === m.amount);
        // of different runs, all that is after grew
        return find(m.key) ?? find(m.key.replace("grew", "after").replace("shrank", "before")) ?? this.metrics[0];
    }

    total(m: Metric): Interval {
        return this.metric(m).total;
    }

    /** By row. */
    values(m: Metric): Float64Array {
        return this.metric(m).values.value;
    }

    sumsOf(m: Metric): Sums {
        const key = `${m.key} ${m.amount}`;
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

    /** By node: what was requested there, whatever wrappers passed it on. */
    siteSums(m: Metric): Float64Array {
        const sums = new Float64Array(this.nodes);
        const values = this.values(m);
        for (let i = 0; i < values.length; i++) sums[this.rowSite[i]] += values[i];
        return sums;
    }

    /** The first row at this node or behind it. */
    rowFrom(node: number): number {
        let low = 0;
        let high = this.rowNode.length;
        while (low < high) {
            const middle = (low + high) >> 1;
            if (this.rowNode[middle] < node) low = middle + 1;
            else high = middle;
        }
        return low;
    }

    /** The estimate of these rows. */
    estimate(m: Metric, rows: Iterable<number>): Estimate {
        const { values } = this.metric(m);
        const e = values.begin();
        for (const row of rows) values.add(e, row);
        return e;
    }

    /** The rows of these nodes and of all below them. */
    *rowsBelow(nodes: ArrayLike<number>): Generator<number> {
        for (let k = 0; k < nodes.length; k++) {
            const last = this.rowFrom(this.end[nodes[k]]);
            for (let i = this.rowFrom(nodes[k]); i < last; i++) yield i;
        }
    }

    /** The rows of these ranges of nodes; `ofSites`: only those whose site is the first node of the range. */
    *rowsOf(ranges: Iterable<[number, number]>, ofSites = false): Generator<number> {
        for (const [from, to] of ranges) {
            const last = this.rowFrom(to);
            for (let i = this.rowFrom(from); i < last; i++) if (!ofSites || this.rowSite[i] === from) yield i;
        }
    }

    name(frame: number): string {
        return this.strings[this.functionOf[frame]];
    }

    /** The name, with the module where functions of several modules have it. */
    fullName(frame: number): string {
        const name = this.name(frame);
        return this.ambiguous.has(this.functionOf[frame]) ? `${name} [${this.module(frame)}]` : name;
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

    isNameless(frame: number): boolean {
        return (this.flags[frame] & NAMELESS) !== 0;
    }

    /** "fs/pipe.c:12", or the module where the file is not known. */
    place(frame: number, line: number): string {
        const file = this.file(frame);
        if (file) return line ? `${file}:${line}` : file;
        return this.module(frame);
    }

    /** What a frame's colour stands for: its module, or its function if that is not known. "" (grey): a process. */
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
