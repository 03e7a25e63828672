// SPDX-License-Identifier: BSD-2-Clause
// What a page shows, whether it is a profile or a table.

import type { Interval } from "./estimate";
import type { Moments } from "./moments";
import type { Metric, Profile } from "./profile";
import type { TableData } from "./table";
import type { Curves } from "./timeline";
import type { Part } from "./treemap";

export interface SourceTable extends TableData {
    frames: number[]; // by row: the frame of the profile that it stands for; -1: none
    // The rows of the profile that a row has itself, and with what it calls; null: the table is of no profile.
    self: ((row: number) => number[]) | null;
    total: ((row: number) => Iterable<number>) | null;
}

export interface Source {
    profile: Profile | null; // null: there are no stacks, and no flame graph
    metrics: { metric: Metric; label: string; total: Interval }[];
    first: Metric; // what is shown first
    groups: string[]; // by what the rows of tables can be grouped
    table(group: string, m: Metric): SourceTable;
    partings: string[]; // by what a treemap can be divided; none: there is no treemap
    parts(by: string, m: Metric): Part;
    curves(m: Metric): Curves | null;
    moments: Moments | null; // null: there is only the end
    at(moment: number, ms: number): Source; // processes that ended until `ms` are as they were in the end
}
