// SPDX-License-Identifier: BSD-2-Clause
// The events of a trace, as src/view/page/html_events.c writes them.

import type { Blob, Numbers } from "./blob";
import { baseName, cleanName } from "./format";

/** An event as `allium events --json` prints it. */
interface Line {
    since_began_ns: number | null;
    number?: number; // in place of the time, if the trace has no times
    event: string;
    cpu: number;
    process: number;
    thread: number;
    flags: number;
    doubtful: boolean;
    fields: Record<string, string | number | null>;
    function: string | null;
    file: string | null;
    line: number | null;
    depth: number;
    duration_ns: number | null;
    off_cpu_ns: number | null;
}

/** A span that a listed event ends, or one that has not ended. */
export interface Slice {
    row: number; // of the event that ends it, or that begins an open one; -1: that is not listed
    openName: string; // of an open one; "": it has ended
    thread: number;
    from: number;
    to: number;
    depth: number; // spans of the thread that are around it
    isOff: boolean; // the thread does not run
}

/** A stretch of time in which events of a CPU were lost. */
export interface Lost {
    cpu: number;
    from: number;
    to: number;
    events: number;
}

const INTERPOLATED = 4; // of `flags`

/** What the marks of events say, in the order in which they are explained. */
export const MARKS: Record<string, string> = {
    "<": "happened before an event above it, or may have: their times are closer than the clocks are exact, or a block was freed before it was allocated",
    "~": "has a time that was not measured, and lies between those of other events",
    lost: "is from a CPU and a time of which other events were lost",
    open: "begins a span that had not ended when its thread, its program or the trace ended",
};

export class Events {
    readonly folder: string;
    readonly hasNumbers: boolean; // times are numbers of events
    readonly filter: string; // the query that has chosen events, in words
    readonly whole: number; // events of the trace
    readonly all: number; // those that the query leaves, of which `rows` are listed
    readonly openSpans: number;
    readonly lost: number;
    readonly stretches: Lost[]; // where events were lost
    readonly isBound: boolean; // live bytes may be too high or too low
    readonly first: number; // ns since the beginning of the trace, or the number of the first event - 1
    readonly step: number;
    readonly steps: number;
    readonly kinds: { name: string; counts: Numbers; sum: number }[]; // by name, the most frequent first
    readonly live: Numbers | null; // by step: the most live bytes
    readonly mostLive: number = 1; // of all steps
    readonly times: Float64Array; // by row
    readonly deltas: Float64Array; // ns since the event before; NaN: that is not listed
    readonly took: Float64Array; // ns; NaN: the event ends no span
    readonly slices: Slice[] = [];
    private readonly lines: Line[];
    private readonly opens = new Set<number>(); // rows that begin an open span
    private readonly names = new Map<number, string>(); // of threads
    private readonly texts: string[] = [];

    constructor(blob: Blob) {
        const h = blob.header.events;
        this.folder = cleanName(h.folder);
        this.hasNumbers = h.has_numbers;
        this.filter = cleanName(h.filter ?? "");
        this.whole = h.all_events;
        this.all = h.events;
        this.openSpans = h.open_spans;
        this.lost = h.lost_events;
        this.stretches = h.lost.map((l: any) => ({ cpu: l.cpu, from: l.from_ns, to: l.to_ns, events: l.events }));
        this.isBound = h.bounds;
        this.first = h.first_ns;
        this.step = h.step_ns;
        this.steps = h.steps;
        this.kinds = h.kinds.map((k: any) => {
            const counts = blob.numbers(k.counts);
            return { name: shortName(k.name), counts, sum: Array.from(counts).reduce((a, b) => a + b, 0) };
        });
        this.kinds.sort((a, b) => b.sum - a.sum);
        this.live = h.live_most_bytes ? blob.numbers(h.live_most_bytes) : null;
        for (const n of this.live ?? []) this.mostLive = Math.max(this.mostLive, n);
        for (const t of h.tracks) // the name of a thread is worth more than that of its process
            if (t.name === "thread_name" || !this.names.has(t.tid)) this.names.set(t.tid, cleanName(t.args.name));
        this.lines = blob.texts(h.lines).map((line) => JSON.parse(line));
        const numbers = blob.numbers(h.numbers);
        this.times = Float64Array.from(this.lines, (e) => e.since_began_ns ?? e.number! - 1);
        this.deltas = this.times.map((time, row) => (row && numbers[row] === numbers[row - 1] + 1 ? time - this.times[row - 1] : NaN));
        this.took = Float64Array.from(this.lines, (e) => e.duration_ns ?? e.off_cpu_ns ?? NaN);
        const rowOf = new Map(Array.from(numbers, (n, row) => [n, row]));
        h.open.forEach((s: any, at: number) => this.addOpen(s, rowOf.get(h.open_rows[at]) ?? -1));
        if (!this.hasNumbers) this.lines.forEach((e, row) => this.addSlices(e, row));
    }

    get rows(): number {
        return this.lines.length;
    }

    get end(): number {
        return this.first + this.step * this.steps;
    }

    private addOpen(s: any, row: number): void {
        if (row >= 0) {
            this.opens.add(row);
            this.took[row] = s.duration_ns ?? NaN;
        }
        if (this.hasNumbers) return;
        const from = s.since_began_ns;
        const isOff = s.name === "off CPU";
        this.slices.push({ row, openName: cleanName(s.name), thread: s.thread, from, to: from + s.duration_ns, depth: isOff ? 0 : s.depth, isOff });
    }

    private addSlices(e: Line, row: number): void {
        const to = this.times[row];
        const add = (ns: number | null, thread: number, isOff: boolean) =>
            ns !== null && this.slices.push({ row, openName: "", thread, from: to - ns, to, depth: isOff ? 0 : e.depth, isOff });
        add(e.duration_ns, e.thread, false);
        add(e.off_cpu_ns, Number(e.fields.next_tid), true);
    }

    isOpen(row: number): boolean {
        return this.opens.has(row);
    }

    /** Keys of MARKS. */
    marks(row: number): string[] {
        const e = this.lines[row];
        const time = this.times[row];
        const has: Record<string, boolean> = {
            "~": (e.flags & INTERPOLATED) !== 0,
            "<": e.doubtful && !(e.flags & INTERPOLATED),
            lost: this.stretches.some((l) => l.cpu === e.cpu && l.from <= time && time <= l.to),
            open: this.opens.has(row),
        };
        return Object.keys(MARKS).filter((mark) => has[mark]);
    }

    cpu(row: number): number {
        return this.lines[row].cpu;
    }

    /** "0.000123456": seconds since the beginning of the trace; or the number of the event. */
    time(ns: number): string {
        return this.hasNumbers ? String(ns + 1) : (ns / 1e9).toFixed(9);
    }

    threadName(thread: number): string {
        const name = this.names.get(thread);
        return name ? `${name} (${thread})` : String(thread);
    }

    thread(row: number): string {
        return this.threadName(this.lines[row].thread);
    }

    name(row: number): string {
        return shortName(this.lines[row].event);
    }

    /** Of the span that the event ends: "malloc", "page fault". */
    spanName(s: Slice): string {
        if (s.openName) return s.openName;
        return s.isOff ? "off CPU" : this.name(s.row).replace(/^(kernel|function):|_end$/g, "").replace("page_fault", "page fault");
    }

    fields(row: number): string {
        const e = this.lines[row];
        const shown = Object.entries(e.fields).filter(([key]) => key !== "site" || !e.function); // the place says it better
        return cleanName(shown.map(([key, value]) => `${key}=${value}`).join(" "));
    }

    site(row: number): string {
        const e = this.lines[row];
        const line = e.line ? `:${e.line}` : "";
        return cleanName((e.function ?? "") + (e.file ? ` ${baseName(e.file)}${line}` : ""));
    }

    /** What a search looks at. */
    text(row: number): string {
        return (this.texts[row] ??= [this.name(row), this.thread(row), this.fields(row), this.site(row), ...this.marks(row)].join(" "));
    }
}

function shortName(name: string): string {
    return cleanName(name.replace(/^allium:/, ""));
}
