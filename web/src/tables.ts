// SPDX-License-Identifier: BSD-2-Clause
// A profile as tables and as parts of a treemap.

import { baseName } from "./format";
import type { Metric, MetricData, Profile } from "./profile";
import type { Source, SourceTable } from "./source";
import type { TableData } from "./table";
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

/** By row: `self`, what it requested, and `total`, what its callees requested, too. A recursive call counts once. */
function sumRows(profile: Profile, rows: Rows, m: Metric): { self: Float64Array; total: Float64Array } {
    const { inclusive } = profile.sumsOf(m);
    const values = profile.values(m);
    const self = new Float64Array(rows.names.length);
    const total = new Float64Array(rows.names.length);
    for (let i = 0; i < values.length; i++) {
        const site = profile.rowSite[i];
        if (site && rows.of[profile.frame[site]] !== LEFT_OUT) self[rows.of[profile.frame[site]]] += values[i];
    }
    const until = new Uint32Array(rows.names.length); // the end of the outermost node of the row that is being walked
    for (let i = 1; i < profile.nodes; i++) {
        const row = rows.of[profile.frame[i]];
        if (row === LEFT_OUT || i < until[row]) continue;
        until[row] = profile.end[i];
        total[row] += inclusive[i];
    }
    return { self, total };
}

/** The metrics that are columns of every table. */
function columnMetrics(profile: Profile): MetricData[] {
    return profile.metrics.filter((m) => m.metric.amount === "bytes" || ["live", "allocated"].includes(m.metric.key));
}

function profileTable(profile: Profile, group: string, m: Metric): SourceTable {
    if (group === "site") return siteTable(profile, m);
    const rows = rowsOf(profile, group);
    const shown = sumRows(profile, rows, m);
    const columns: TableData["columns"] = [
        { label: group[0].toUpperCase() + group.slice(1), unit: "text", texts: (row) => rows.names[row] },
        { label: `${profile.metric(m).label}, self`, unit: m.amount, numbers: shown.self },
        { label: `${profile.metric(m).label}, total`, unit: m.amount, numbers: shown.total },
    ];
    for (const { metric: other, label } of columnMetrics(profile))
        if (other.key !== m.key || other.amount !== m.amount)
            columns.push({ label, unit: other.amount, numbers: sumRows(profile, rows, other).self });
    if (group === "function")
        columns.push(
            { label: "File", unit: "text", texts: (row) => profile.file(rows.frames[row]) },
            { label: "Module", unit: "text", texts: (row) => baseName(profile.module(rows.frames[row])) },
        );
    return { columns, rows: rows.names.length, frames: rows.frames };
}

/** A row for each line that requests memory. */
function siteTable(profile: Profile, shown: Metric): SourceTable {
    const known = new Map<string, number>();
    const names: string[] = [];
    const functions: string[] = [];
    const frames: number[] = [];
    const rowOf = new Uint32Array(profile.rowSite.length);
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
        rowOf[i] = at;
    });
    const columns: TableData["columns"] = [
        { label: "Site", unit: "text", texts: (row) => names[row] },
        { label: "Function", unit: "text", texts: (row) => functions[row] },
    ];
    const others = columnMetrics(profile).filter(({ metric: m }) => m.key !== shown.key || m.amount !== shown.amount);
    for (const { metric: m, label } of [profile.metric(shown), ...others]) {
        const sums = new Float64Array(names.length);
        profile.values(m).forEach((value, i) => (sums[rowOf[i]] += value));
        columns.push({ label, unit: m.amount, numbers: sums });
    }
    return { columns, rows: names.length, frames };
}

function profileParts(profile: Profile, by: string, m: Metric): Part {
    const root = newPart("all");
    const values = profile.values(m);
    const paths = new Map<number, string[]>(); // by frame
    for (let i = 0; i < values.length; i++) {
        if (!(values[i] > 0)) continue;
        const site = profile.rowSite[i];
        const frame = site ? profile.frame[site] : -1;
        let path = paths.get(frame);
        if (!path) paths.set(frame, (path = frame < 0 ? ["[no stack]"] : pathOf(profile, frame, by)));
        addPath(root, path, values[i]);
    }
    return joinLines(root);
}

function pathOf(profile: Profile, frame: number, by: string): string[] {
    const name = profile.name(frame);
    const module = baseName(profile.module(frame));
    if (by === "module") return module ? [module, name] : [name];
    const file = profile.file(frame);
    if (!file) return [`[unknown] ${module}`.trim(), name];
    return [...file.replace(/^\//, "").split("/"), name];
}

export function sourceOfProfile(profile: Profile): Source {
    const curves = curvesOfProfile(profile);
    const live = profile.metrics.find((m) => m.metric.key === "live");
    const peak = profile.metrics.find((m) => m.metric.key === "peak");
    return {
        profile,
        metrics: profile.metrics,
        first: live && live.total.value > 0 ? live.metric : (peak ?? profile.metrics[0]).metric,
        groups: GROUPS,
        table: (group, m) => profileTable(profile, group, m),
        partings: PARTINGS,
        parts: (by, m) => profileParts(profile, by, m),
        curves: () => curves,
    };
}
