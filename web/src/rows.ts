// SPDX-License-Identifier: BSD-2-Clause
// The rows of a tool of `allium sys`, or of tags and sites: a table, and if it has stacks, a profile.

import type { Blob, Numbers } from "./blob";
import { cleanName, type Unit } from "./format";
import { Profile, type Amount, type Metric, type MetricData } from "./profile";
import type { Source, SourceTable } from "./source";
import { cellText, type Column } from "./table";
import type { Curves } from "./timeline";
import { addPath, joinLines, newPart } from "./treemap";
import { exactValues } from "./values";

interface TextColumn {
    label: string;
    isName: boolean; // and not a time, an address, "yes" or "no"
    texts: string[];
    of: Numbers; // by row: number of its text + 1; 0: not known
}

interface NumberColumn {
    key: string;
    label: string;
    unit: Unit;
    values: Float64Array; // NaN: not known
}

interface StackColumn {
    module: string; // of frames that name none
    frames: string[]; // lines of stacks
    lines: Numbers; // numbers of frames, of one stack after the other, the innermost frame first
    first: Numbers; // by stack: where it begins; one more: the end
    of: Numbers; // by row: number of its stack + 1; 0: none
}

/** A line of a stack, and the module that it is in if it does not say. */
interface FrameText {
    text: string;
    module: string;
}

class Rows {
    readonly rows: number;
    readonly weight: string; // the key of the column that counts most
    readonly order: ({ text: TextColumn } | { numbers: NumberColumn })[] = [];
    readonly texts: TextColumn[] = [];
    readonly numbers: NumberColumn[] = [];
    readonly stacks: StackColumn[] = []; // those of the kernel before those of programs
    readonly times: Float64Array | null = null; // by row, in ms

    /** What rows are named by: the text that tells most of them apart. */
    private get subject(): TextColumn | undefined {
        return this.names().sort((a, b) => b.texts.length - a.texts.length)[0];
    }

    names(): TextColumn[] {
        return this.texts.filter((c) => c.isName && c.texts.length > 1);
    }

    constructor(blob: Blob) {
        const h = blob.header.table;
        this.rows = h.rows;
        this.weight = h.weight;
        if (h.time_ms) this.times = Float64Array.from(blob.numbers(h.time_ms));
        for (const c of h.columns) {
            if (c.kind === "number") {
                const values = Float64Array.from(blob.numbers(c.values));
                const numbers = { key: c.key, label: c.label, unit: c.unit, values };
                this.numbers.push(numbers);
                this.order.push({ numbers });
            } else if (c.kind === "text") {
                const texts = blob.texts(c.texts).map(cleanName);
                const text = { label: c.label, isName: c.is_name, texts, of: blob.numbers(c.of) };
                this.texts.push(text);
                this.order.push({ text });
            } else {
                this.stacks.push({
                    module: c.key.startsWith("kernel") ? "kernel" : "",
                    frames: blob.texts(c.frames).map(cleanName), lines: blob.numbers(c.lines),
                    first: blob.numbers(c.first), of: blob.numbers(c.of),
                });
            }
        }
        const { subject } = this;
        this.order.sort((a, b) => Number("text" in b && b.text === subject) - Number("text" in a && a.text === subject));
    }

    text(c: TextColumn, row: number): string {
        return c.of[row] ? c.texts[c.of[row] - 1] : "–";
    }

    /** Lines of the row's stacks, from the outermost function of the program to the innermost of the kernel. */
    path(row: number): FrameText[] {
        const lines: FrameText[] = [];
        for (const s of this.stacks) {
            const stack = s.of[row];
            if (!stack) continue;
            for (let i = s.first[stack - 1]; i < s.first[stack]; i++)
                lines.push({ text: s.frames[s.lines[i]], module: s.module });
        }
        return lines.reverse();
    }
}

// ---- stacks as a profile ----

// "? name+0x1f [module] (file.c:12)", each part but the name optional.
const LINE = /^(?:\? )?(.*?)(?:\+0x[0-9a-f]+)?(?: \[([^\]]*)\])?(?: \((.*?)(?::(\d+))?\))?$/;

interface MadeNode {
    frame: number;
    line: number;
    kids: Map<string, MadeNode>;
    rows: number[];
}

type FrameLists = Record<"function" | "module" | "file" | "flags", number[]>;

/** Frames of lines of stacks, and the strings that they have. */
class Frames {
    readonly strings: string[] = [""];
    readonly lists: FrameLists = { function: [], module: [], file: [], flags: [] };
    private readonly numbers = new Map<string, number>([["", 0]]);
    private readonly known = new Map<string, [number, number]>();

    private string(text: string): number {
        let at = this.numbers.get(text);
        if (at === undefined) this.numbers.set(text, (at = this.strings.push(text) - 1));
        return at;
    }

    /** The number of the line's frame, and the line in the source. */
    of({ text, module: instead }: FrameText): [number, number] {
        const key = `${instead}\n${text}`;
        let found = this.known.get(key);
        if (found) return found;
        const [, name, module, place, line] = LINE.exec(text) ?? [null, text];
        const isFile = line !== undefined || /\.[a-zA-Z]+$/.test(place ?? "");
        this.lists.function.push(this.string(name || text));
        this.lists.module.push(this.string(module ?? (isFile ? instead : (place ?? instead))));
        this.lists.file.push(this.string(isFile ? place! : ""));
        this.lists.flags.push(0);
        this.known.set(key, (found = [this.lists.function.length - 1, Number(line ?? 0)]));
        return found;
    }
}

function profileOfRows(rows: Rows): Profile {
    const frames = new Frames();
    const root: MadeNode = { frame: 0, line: 0, kids: new Map(), rows: [] };
    for (let row = 0; row < rows.rows; row++) {
        let node = root;
        const path = rows.path(row);
        for (const at of path.length ? path : [{ text: "[no stack]", module: "" }]) {
            let kid = node.kids.get(at.text);
            if (!kid) {
                const [frame, line] = frames.of(at);
                node.kids.set(at.text, (kid = { frame, line, kids: new Map(), rows: [] }));
            }
            node = kid;
        }
        node.rows.push(row);
    }
    const numbers = (list: number[]) => Uint32Array.from(list);
    const { lists, strings } = frames;
    return new Profile({
        strings, images: [], marks: [], points: null, started_ms: null, first: null, moments: null, past: null, rowOldest: null,
        captures: null,
        frames: {
            function: numbers(lists.function), module: numbers(lists.module), file: numbers(lists.file),
            flags: numbers(lists.flags),
        },
        ...flatten(root, rows),
    });
}

/** Nodes in the order of a walk from the top, and rows in the order of their nodes. */
function flatten(root: MadeNode, rows: Rows) {
    const depth: number[] = [];
    const frame: number[] = [];
    const line: number[] = [];
    const rowNode: number[] = [];
    const order: number[] = [];
    const open: [MadeNode, number][] = [[root, 0]];
    for (let next = open.pop(); next; next = open.pop()) {
        const [node, level] = next;
        depth.push(level);
        frame.push(node.frame);
        line.push(node.line);
        for (const row of node.rows) {
            rowNode.push(depth.length - 1);
            order.push(row);
        }
        for (const kid of [...node.kids.values()].reverse()) open.push([kid, level + 1]);
    }
    const metrics = metricsOf(rows).map((m): MetricData => {
        const value = Float64Array.from(order, (row) => m.values[row] || 0);
        return { metric: m.metric, label: m.label, total: m.total, values: exactValues(value) };
    });
    const nodes = { depth: Uint32Array.from(depth), frame: Uint32Array.from(frame), line: Uint32Array.from(line) };
    return { nodes, rowNode: Uint32Array.from(rowNode), rowSite: Uint32Array.from(rowNode), rowOwner: Uint32Array.from(rowNode), rowLine: Uint32Array.from(rowNode, (node) => line[node]), metrics };
}

// ---- the table ----

const PATH = /^[\w.@-]*\/[^ ]*$/;

const AMOUNTS: Amount[] = ["bytes", "count", "ns"];

/** Columns that can be added up; of a table without one, the number of rows. */
function metricsOf(rows: Rows) {
    const found = rows.numbers
        .filter((c) => AMOUNTS.includes(c.unit as Amount))
        .map((c) => ({ metric: { key: c.key, amount: c.unit as Amount }, label: c.label, values: c.values }));
    if (!found.length)
        found.push({
            metric: { key: "rows", amount: "count" }, label: "Rows", values: new Float64Array(rows.rows).fill(1),
        });
    return found.map((m) => {
        let sum = 0;
        for (const v of m.values) if (v > 0) sum += v;
        return { ...m, total: { value: sum, low: sum, high: sum } };
    });
}

function stackText(rows: Rows, row: number): string {
    return rows.path(row).map((at) => at.text).reverse().join(" ← ");
}

function tableOf(rows: Rows): SourceTable {
    const columns: Column[] = rows.order.map((c) =>
        "text" in c
            ? { label: c.text.label, unit: "text", texts: (row) => rows.text(c.text, row) }
            : { label: c.numbers.label, unit: c.numbers.unit, numbers: c.numbers.values });
    const { times } = rows;
    if (times) {
        const texts = (row: number) => new Date(times[row]).toISOString().slice(11, 23);
        columns.unshift({ label: "Time (UTC)", unit: "text", texts });
    }
    if (rows.stacks.length)
        columns.push({ label: "Stack", unit: "text", texts: (row) => stackText(rows, row) });
    return { columns, rows: rows.rows, frames: new Array(rows.rows).fill(-1), self: null, total: null };
}

/** Columns of paths come first: their directories are boxes around them. */
function partingsOf(rows: Rows): string[] {
    const isPath = (c: TextColumn) => c.texts.some((text) => PATH.test(text));
    const names = rows.names();
    return [...names.filter(isPath), ...names.filter((c) => !isPath(c))].map((c) => c.label);
}

function partsOf(rows: Rows, by: string, values: ArrayLike<number>) {
    const root = newPart("all");
    const first = rows.texts.find((c) => c.label === by)!;
    const rest = rows.names().filter((c) => c !== first).sort((a, b) => b.texts.length - a.texts.length).slice(0, 1);
    for (let row = 0; row < rows.rows; row++) {
        if (!(values[row] > 0)) continue;
        const name = rows.text(first, row);
        const path = PATH.test(name) ? name.split("/").filter(Boolean) : [name];
        addPath(root, [...path, ...rest.map((c) => rows.text(c, row))], values[row], row);
    }
    return joinLines(root);
}

function curvesOf(rows: Rows, values: ArrayLike<number>, label: string, unit: Unit): Curves | null {
    if (!rows.times) return null;
    const sums = new Map<number, number>();
    for (let row = 0; row < rows.rows; row++)
        sums.set(rows.times[row], (sums.get(rows.times[row]) ?? 0) + (values[row] || 0));
    const times = [...sums.keys()].sort((a, b) => a - b);
    if (times.length < 2) return null;
    const seconds = times.map((t) => (t - times[0]) / 1000);
    return { seconds, unit, lines: [{ label, values: times.map((t) => sums.get(t)!) }], band: null, marks: [] };
}

export function sourceOfRows(blob: Blob): Source {
    const rows = new Rows(blob);
    const metrics = metricsOf(rows);
    const of = (m: Metric) => metrics.find((d) => d.metric.key === m.key && d.metric.amount === m.amount) ?? metrics[0];
    const table = tableOf(rows);
    return {
        profile: rows.stacks.length ? profileOfRows(rows) : null,
        metrics,
        first: (metrics.find((m) => m.metric.key === rows.weight) ?? metrics[0]).metric,
        groups: ["row"],
        table: () => table,
        partings: partingsOf(rows),
        parts: (by, m) => partsOf(rows, by, of(m).values),
        curves: (m) => curvesOf(rows, of(m).values, of(m).label, m.amount),
        moments: null,
        at: () => sourceOfRows(blob),
    };
}

/** "allocated: 3.2 MiB, cache: dentry": a row in a line. */
export function describeColumns(columns: Column[], row: number): string {
    return columns.slice(1).map((c) => `${c.label}: ${cellText(c, row)}`).join(", ");
}
