// SPDX-License-Identifier: BSD-2-Clause
// A profile as tables and as parts of a treemap.

import { changeOfRows, sideOf, verdictOf, type Change } from "./change";
import { intervalOf } from "./estimate";
import { baseName, formatRange, formatSigned } from "./format";
import type { Metric, MetricData, Profile } from "./profile";
import type { Source, SourceTable } from "./source";
import type { Column } from "./table";
import { curvesOfProfile } from "./timeline";
import { addPath, joinLines, newPart, type Part } from "./treemap";

const GROUPS = ["function", "file", "directory", "module", "site"];
const PARTINGS = ["directory", "module"];

function directoryOf(path: string): string {
    const slash = path.lastIndexOf("/");
    return slash > 0 ? path.slice(0, slash) : slash === 0 ? "/" : ".";
}

/** By frame: the name of its row. */
function keysOf(profile: Profile, group: string): string[] {
    const unknown = (frame: number) => baseName(profile.module(frame)) || profile.name(frame);
    return Array.from(profile.functionOf, (_, frame) => {
        const file = profile.file(frame);
        if (group === "module") return profile.module(frame) || profile.name(frame);
        if (group === "file") return file || `${unknown(frame)} (source unknown)`;
        if (group === "directory") return file ? directoryOf(file) : `${unknown(frame)} (source unknown)`;
        return profile.name(frame);
    });
}

const LEFT_OUT = 0xffffffff;

interface Rows {
    names: string[];
    frames: number[]; // one of each row
    of: Uint32Array; // by frame
}

function rowsOf(profile: Profile, group: string): Rows {
    const keys = keysOf(profile, group);
    const known = new Map<string, number>();
    const rows: Rows = { names: [], frames: [], of: new Uint32Array(keys.length) };
    keys.forEach((key, frame) => {
        if (isLeftOut(profile, frame) || (group !== "function" && profile.isMarker(frame))) {
            rows.of[frame] = LEFT_OUT;
            return;
        }
        const full = group === "function" ? `${key}\n${profile.module(frame)}` : key;
        let at = known.get(full);
        if (at === undefined) {
            known.set(full, (at = rows.names.length));
            rows.names.push(key);
            rows.frames.push(frame);
        }
        rows.of[frame] = at;
    });
    return rows;
}

/** Processes are no functions, and wrappers pass on what others request, as in `allium report`. */
function isLeftOut(profile: Profile, frame: number): boolean {
    return profile.isProcess(frame) || profile.isWrapper(frame);
}

/** Rows of a table, and the rows of the profile that belong to each: what it requested itself. */
interface Grouped {
    n: number;
    of: Uint32Array; // by row of the profile; LEFT_OUT: none
    members: Members;
}

/** Lists of numbers: those of list k are at first[k] up to first[k + 1]. */
interface Members {
    first: Uint32Array;
    all: Uint32Array;
}

function membersOf(of: Uint32Array, n: number): Members {
    const first = new Uint32Array(n + 2);
    for (const k of of) if (k !== LEFT_OUT) first[k + 2]++;
    for (let k = 2; k < n + 2; k++) first[k] += first[k - 1];
    const all = new Uint32Array(first[n + 1]);
    of.forEach((k, i) => {
        if (k !== LEFT_OUT) all[first[k + 1]++] = i;
    });
    return { first, all };
}

function listOf(m: Members, k: number): number[] {
    return Array.from(m.all.subarray(m.first[k], m.first[k + 1]));
}

function groupRows(profile: Profile, rows: Rows, site: ArrayLike<number>): Grouped {
    const of = new Uint32Array(profile.rowNode.length);
    for (let i = 0; i < of.length; i++) of[i] = site[i] ? rows.of[profile.frame[site[i]]] : LEFT_OUT;
    return { n: rows.names.length, of, members: membersOf(of, rows.names.length) };
}

function sumSelf(values: ArrayLike<number>, g: Grouped): Float64Array {
    const sums = new Float64Array(g.n);
    for (let i = 0; i < g.of.length; i++) if (g.of[i] !== LEFT_OUT) sums[g.of[i]] += values[i];
    return sums;
}

/** By row of the table: the nodes of its outermost calls. A recursive call counts once. */
function outermost(profile: Profile, rows: Rows): Members {
    const until = new Uint32Array(rows.names.length); // the end of the outermost node of the row that is being walked
    const of = new Uint32Array(profile.nodes).fill(LEFT_OUT);
    for (let i = 1; i < profile.nodes; i++) {
        const row = rows.of[profile.frame[i]];
        if (row === LEFT_OUT || i < until[row]) continue;
        until[row] = profile.end[i];
        of[i] = row;
    }
    return membersOf(of, rows.names.length);
}

function sumTotal(inclusive: Float64Array, m: Members): Float64Array {
    const sums = new Float64Array(m.first.length - 2);
    for (let k = 0; k < sums.length; k++) for (let i = m.first[k]; i < m.first[k + 1]; i++) sums[k] += inclusive[m.all[i]];
    return sums;
}

/** The metrics that are columns of every table. */
function columnMetrics(profile: Profile): MetricData[] {
    return profile.metrics.filter((m) => m.metric.amount === "bytes" || ["live", "allocated"].includes(m.metric.key));
}

function cached<T>(make: (row: number) => T): (row: number) => T {
    const known = new Map<number, T>();
    return (row) => {
        let found = known.get(row);
        if (found === undefined) known.set(row, (found = make(row)));
        return found;
    };
}

/** Columns of what each row requested itself: the chosen metric with its intervals, and the others. */
function selfColumns(profile: Profile, m: Metric, g: Grouped, words: string, between: Column[]): Column[] {
    const interval = cached((row: number) => intervalOf(profile.estimate(m, listOf(g.members, row))));
    const columns: Column[] = [
        { label: profile.metric(m).label + words, unit: m.amount, numbers: sumSelf(profile.values(m), g) },
        { label: "95 % interval", unit: "text", isFigure: true, texts: (row) => formatRange(interval(row), m.amount) },
        ...between,
    ];
    for (const { metric: other, label } of columnMetrics(profile))
        if (other.key !== m.key || other.amount !== m.amount)
            columns.push({ label, unit: other.amount, numbers: sumSelf(profile.values(other), g) });
    return columns;
}

/** Of a diff: what changed in what each row requested itself. */
function changeColumns(profile: Profile, m: Metric, g: Grouped): Column[] {
    const change = cached((row: number): Change => changeOfRows(profile, m, listOf(g.members, row)));
    const sums = (side: "before" | "after" | "grew" | "shrank") => sumSelf(profile.values(sideOf(m, side)), g);
    const [before, after, grew, shrank] = [sums("before"), sums("after"), sums("grew"), sums("shrank")];
    const changes = grew.map((v, row) => v - shrank[row]);
    return [
        { label: "Change", unit: m.amount, numbers: changes, order: changes.map(Math.abs), isSigned: true },
        {
            label: "95 % interval", unit: "text", isFigure: true,
            texts: (row) => (change(row).low === change(row).high ? ""
                : `${formatSigned(change(row).low, m.amount)} – ${formatSigned(change(row).high, m.amount)}`),
        },
        { label: "Verdict", unit: "text", isFigure: true, texts: (row) => verdictOf(change(row)) },
        { label: "Before", unit: m.amount, numbers: before },
        { label: "After", unit: m.amount, numbers: after },
    ];
}

function capital(word: string): string {
    return word[0].toUpperCase() + word.slice(1);
}

function profileTable(profile: Profile, group: string, m: Metric): SourceTable {
    if (group === "site") return siteTable(profile, m);
    const rows = rowsOf(profile, group);
    const isFunction = group === "function";
    const g = groupRows(profile, rows, isFunction ? profile.rowNamed : profile.rowSite);
    const outer = outermost(profile, rows);
    const total: Column[] = profile.isDiff ? [] : [{
        label: `${profile.metric(m).label}, total`, unit: m.amount, numbers: sumTotal(profile.sumsOf(m).inclusive, outer),
    }];
    const columns: Column[] = [
        { label: capital(group), unit: "text", texts: (row) => rows.names[row] },
        ...(profile.isDiff ? changeColumns(profile, m, g) : selfColumns(profile, m, g, ", self", total)),
    ];
    if (isFunction) {
        const unnamed = unnamedSelf(profile, m, g);
        if (unnamed) columns.push({ label: "Of it without a name", unit: m.amount, numbers: unnamed });
        columns.push(
            { label: "File", unit: "text", texts: (row) => profile.file(rows.frames[row]) },
            { label: "Module", unit: "text", texts: (row) => baseName(profile.module(rows.frames[row])) },
        );
    }
    return {
        columns, rows: rows.names.length, frames: rows.frames,
        self: (row) => listOf(g.members, row),
        total: (row) => profile.rowsBelow(outer.all.subarray(outer.first[row], outer.first[row + 1])),
    };
}

/** By row: what functions without a name requested, which their nearest caller with a name has. null: nothing. */
function unnamedSelf(profile: Profile, m: Metric, g: Grouped): Float64Array | null {
    const values = profile.values(m);
    const sums = new Float64Array(g.n);
    let any = false;
    for (let i = 0; i < g.of.length; i++)
        if (g.of[i] !== LEFT_OUT && profile.rowNamed[i] !== profile.rowSite[i]) {
            sums[g.of[i]] += values[i];
            any = true;
        }
    return any ? sums : null;
}

/** A row for each line that requests memory. */
function siteTable(profile: Profile, shown: Metric): SourceTable {
    const known = new Map<string, number>();
    const names: string[] = [];
    const functions: string[] = [];
    const frames: number[] = [];
    const of = new Uint32Array(profile.rowSite.length);
    profile.rowSite.forEach((site, i) => {
        const frame = site ? profile.frame[site] : -1;
        const place = site ? profile.place(frame, profile.rowLine[i]) : "[no stack]";
        const name = site ? profile.name(frame) : "";
        const key = `${place}\n${name}`;
        let at = known.get(key);
        if (at === undefined) {
            known.set(key, (at = names.length));
            names.push(place);
            functions.push(name);
            frames.push(frame);
        }
        of[i] = at;
    });
    const g = { n: names.length, of, members: membersOf(of, names.length) };
    const columns: Column[] = [
        { label: "Site", unit: "text", texts: (row) => names[row] },
        { label: "Function", unit: "text", texts: (row) => functions[row] },
        ...(profile.isDiff ? changeColumns(profile, shown, g) : selfColumns(profile, shown, g, "", [])),
    ];
    const self = (row: number) => listOf(g.members, row);
    return { columns, rows: names.length, frames, self, total: self };
}

function profileParts(profile: Profile, by: string, m: Metric): Part {
    const root = newPart("all");
    const values = profile.values(m);
    const paths = new Map<number, string[]>(); // by frame
    for (let i = 0; i < values.length; i++) {
        if (!(values[i] > 0) && !profile.isDiff) continue; // of a diff: it may have been there before
        const site = profile.rowNamed[i];
        const frame = site ? profile.frame[site] : -1;
        const isUnnamed = site !== profile.rowSite[i];
        const key = isUnnamed ? -2 - frame : frame;
        let path = paths.get(key);
        if (!path) paths.set(key, (path = frame < 0 ? ["[no stack]"] : pathOf(profile, frame, by, isUnnamed)));
        addPath(root, path, values[i], i);
    }
    return joinLines(root);
}

/** `isUnnamed`: it is what a function without a name requested that this one called. */
function pathOf(profile: Profile, frame: number, by: string, isUnnamed: boolean): string[] {
    const name = profile.name(frame) + (isUnnamed ? " [unnamed]" : "");
    const module = baseName(profile.module(frame));
    if (by === "module") return module ? [module, name] : [name];
    const file = profile.file(frame);
    if (!file) return [`[unknown] ${module}`.trim(), name];
    return [...file.replace(/^\//, "").split("/"), name];
}

export function sourceOfProfile(profile: Profile): Source {
    const curves = curvesOfProfile(profile);
    const of = (key: string) => profile.metrics.find((m) => m.metric.key === key);
    const live = of("live");
    const peak = of("peak");
    return {
        profile,
        metrics: profile.metrics,
        first: profile.first ?? (live && live.total.value > 0 ? live : (peak ?? live ?? profile.metrics[0])).metric,
        groups: GROUPS,
        table: (group, m) => profileTable(profile, group, m),
        partings: PARTINGS,
        parts: (by, m) => profileParts(profile, by, m),
        curves: () => curves,
        moments: profile.moments,
        at: (moment, ms) => sourceOfProfile(profile.at(moment, ms)),
    };
}
