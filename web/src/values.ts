// SPDX-License-Identifier: BSD-2-Clause
// The values of the rows of a profile, from which everything that is shown is summed: of cells, as profile_estimate()
// makes them, or of estimates that come with the page.

import type { Blob, ColumnRef, Numbers } from "./blob";
import {
    addCellBytes, addCellCount, cellValue, emptyEstimate, mergeRow, PARTS, type Estimate, type Part, type Sums,
} from "./estimate";

/** Estimates by row: each row's value, and what it adds to the estimate of a sum of rows. */
export interface Values {
    readonly value: Float64Array;
    /** What every sum begins with: what may have been allocated unseen. */
    begin(): Estimate;
    add(e: Estimate, row: number): void;
}

export type SumColumns = Record<keyof Sums, Numbers>;
export const SUMS = ["samples", "seen", "bytes", "count"] as const;

export function columnsOf<K extends string>(blob: Blob, of: Record<string, ColumnRef>): Record<K, Numbers> {
    return Object.fromEntries(Object.entries(of).map(([key, c]) => [key, blob.numbers(c)])) as Record<K, Numbers>;
}

/** Cells in the order of their rows. */
export interface Cells {
    row: Numbers;
    period: Numbers;
    image: Numbers | null; // null: the first one has all
    kinds: Record<"allocated" | "freed" | "peak" | "temporary", SumColumns>;
    firstOf: Uint32Array; // by row; one more: the end
}

export function cellsOf(blob: Blob, of: any, rows: number): Cells {
    const row = blob.numbers(of.row);
    const firstOf = new Uint32Array(rows + 1);
    for (let i = 0; i < row.length; i++) firstOf[row[i] + 1]++;
    for (let i = 0; i < rows; i++) firstOf[i + 1] += firstOf[i];
    const kind = (key: string) => columnsOf<keyof Sums>(blob, of[key]);
    return {
        row, firstOf, period: blob.numbers(of.period_bytes), image: of.image ? blob.numbers(of.image) : null,
        kinds: { allocated: kind("allocated"), freed: kind("freed"), peak: kind("peak"), temporary: kind("temporary") },
    };
}

/** Rows that have estimates of their own. */
export interface Own {
    row: Numbers; // ascending
    columns: Record<Part, Numbers>;
}

/** Reads the sums of a cell into `to`. */
export type ReadCell = (to: Sums, cell: number) => void;

export function readSums(c: SumColumns): ReadCell {
    return (to, i) => {
        to.samples = c.samples[i];
        to.seen = c.seen[i];
        to.bytes = c.bytes[i];
        to.count = c.count[i];
    };
}

/** allocated - freed: a free under way may be in one sum and not in the other. */
export function readLive(a: SumColumns, f: SumColumns): ReadCell {
    return (to, i) => {
        to.samples = Math.max(a.samples[i] - f.samples[i], 0);
        to.seen = Math.max(a.seen[i] - f.seen[i], 0);
        to.bytes = Math.max(a.bytes[i] - f.bytes[i], 0);
        to.count = Math.max(a.count[i] - f.count[i], 0);
    };
}

/** Of the kernel `seen` is what was requested: that, or what was allocated beyond it. */
export function readRequested(c: SumColumns, slack: boolean): ReadCell {
    return (to, i) => {
        to.samples = c.samples[i];
        to.count = c.count[i];
        to.seen = to.bytes = slack ? c.bytes[i] - c.seen[i] : c.seen[i];
    };
}

export class CellValues implements Values {
    readonly value: Float64Array;
    private readonly sums: Sums = { samples: 0, seen: 0, bytes: 0, count: 0 };
    private readonly ownAt = new Map<number, number>();

    constructor(
        private readonly cells: Cells,
        private readonly read: ReadCell,
        private readonly isCount: boolean,
        private readonly nothing: Partial<Estimate>,
        private readonly own: Own,
    ) {
        const { sums } = this;
        this.value = new Float64Array(cells.firstOf.length - 1);
        for (let i = 0; i < cells.row.length; i++) {
            read(sums, i);
            this.value[cells.row[i]] += cellValue(sums, cells.period[i], isCount);
        }
        for (let i = 0; i < own.row.length; i++) {
            this.ownAt.set(own.row[i], i);
            this.value[own.row[i]] += own.columns.value[i];
        }
    }

    begin(): Estimate {
        return { ...emptyEstimate(), ...this.nothing };
    }

    add(e: Estimate, row: number): void {
        const { cells, sums } = this;
        for (let i = cells.firstOf[row]; i < cells.firstOf[row + 1]; i++) {
            this.read(sums, i);
            if (this.isCount) addCellCount(e, sums, cells.period[i]);
            else addCellBytes(e, sums, cells.period[i]);
        }
        const own = this.ownAt.size ? this.ownAt.get(row) : undefined;
        if (own !== undefined) mergeRow(e, this.own.columns, own);
    }
}

/** Every row has an estimate of its own. */
export class OwnValues implements Values {
    readonly value: Float64Array;

    constructor(private readonly columns: Record<Part, Numbers>) {
        this.value = Float64Array.from(columns.value);
    }

    begin(): Estimate {
        return emptyEstimate();
    }

    add(e: Estimate, row: number): void {
        mergeRow(e, this.columns, row);
    }
}

/** Exact values. */
export function exactValues(value: Float64Array): Values {
    const zero = new Uint32Array(value.length);
    const columns = Object.fromEntries(PARTS.map((key) => [key, zero])) as unknown as Record<Part, Numbers>;
    return new OwnValues({ ...columns, value, seen: value });
}
