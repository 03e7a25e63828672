// SPDX-License-Identifier: BSD-2-Clause
// The stored moments of a recording: the sums of all cells as they were at one of them.

import type { Blob, Numbers } from "./blob";
import { SUMS, columnsOf, type Cells, type SumColumns } from "./values";

/** A process, as far as moments need it: after `taken_ms` it is as it was then. */
interface Ending {
    taken_ms: number;
}

export class Moments {
    readonly times: Record<"time_ms" | "live_bytes" | "live_bytes_low" | "live_bytes_high", Numbers>;
    private readonly time: Numbers;
    private readonly cell: Numbers;
    private readonly allocated: SumColumns;
    private readonly freed: SumColumns;

    constructor(blob: Blob, of: any, private readonly cells: Cells, private readonly images: Ending[]) {
        this.times = columnsOf(blob, of.times);
        this.time = blob.numbers(of.changes.time);
        this.cell = blob.numbers(of.changes.cell);
        this.allocated = columnsOf(blob, of.changes.allocated);
        this.freed = columnsOf(blob, of.changes.freed);
    }

    get n(): number {
        return this.times.time_ms.length;
    }

    /** By cell, as `report FILE@TIME` has them: of processes that had ended until `ms`, their last sums. */
    at(moment: number, ms: number): { allocated: SumColumns; freed: SumColumns } {
        const { cells, images } = this;
        const n = cells.row.length;
        const make = () => Object.fromEntries(SUMS.map((key) => [key, new Float64Array(n)])) as Record<keyof SumColumns, Float64Array>;
        const [allocated, freed] = [make(), make()];
        for (let i = 0; i < this.time.length && this.time[i] <= moment; i++)
            for (const key of SUMS) {
                allocated[key][this.cell[i]] = this.allocated[key][i];
                freed[key][this.cell[i]] = this.freed[key][i];
            }
        for (let i = 0; i < n; i++)
            if (images[cells.image ? cells.image[i] : 0].taken_ms <= ms)
                for (const key of SUMS) {
                    allocated[key][i] = cells.kinds.allocated[key][i];
                    freed[key][i] = cells.kinds.freed[key][i];
                }
        return { allocated, freed };
    }
}
