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
    fields: Record<string, string | number | null>;
    function: string | null;
    file: string | null;
    line: number | null;
    depth: number;
    duration_ns: number | null;
    off_cpu_ns: number | null;
}

/** A span that a listed event ends. */
export interface Slice {
    row: number;
    thread: number;
    from: number;
    to: number;
    depth: number; // spans of the thread that are around it
    isOff: boolean; // the thread does not run
}

export class Events {
    readonly folder: string;
    readonly hasNumbers: boolean; // times are numbers of events
    readonly all: number; // events of the trace, of which `rows` are listed
    readonly lost: number;
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
    private readonly names = new Map<number, string>(); // of threads
    private readonly texts: string[] = [];

    constructor(blob: Blob) {
        const h = blob.header.events;
        this.folder = cleanName(h.folder);
        this.hasNumbers = h.has_numbers;
        this.all = h.events;
        this.lost = h.lost_events;
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
        if (!this.hasNumbers) this.lines.forEach((e, row) => this.addSlices(e, row));
    }

    get rows(): number {
        return this.lines.length;
    }

    get end(): number {
        return this.first + this.step * this.steps;
    }

    private addSlices(e: Line, row: number): void {
        const to = this.times[row];
        const add = (ns: number | null, thread: number, isOff: boolean) =>
            ns !== null && this.slices.push({ row, thread, from: to - ns, to, depth: isOff ? 0 : e.depth, isOff });
        add(e.duration_ns, e.thread, false);
        add(e.off_cpu_ns, Number(e.fields.next_tid), true);
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
        return (this.texts[row] ??= [this.name(row), this.thread(row), this.fields(row), this.site(row)].join(" "));
    }
}

function shortName(name: string): string {
    return cleanName(name.replace(/^allium:/, ""));
}
