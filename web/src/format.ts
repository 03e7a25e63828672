// SPDX-License-Identifier: BSD-2-Clause
// Figures and names as the command shows them.

import type { Interval } from "./estimate";

export type Unit = "bytes" | "count" | "ns" | "plain";

function three(value: number): string {
    return value >= 99.95 ? value.toFixed(0) : value >= 9.995 ? value.toFixed(1) : value.toFixed(2);
}

function scaled(value: number, base: number, limit: number, names: string[], gap: string): string {
    const sign = value < 0 ? "−" : "";
    let v = Math.abs(value);
    let i = 0;
    while (v >= limit && i + 1 < names.length) {
        v /= base;
        i++;
    }
    const digits = i ? three(v) : v.toFixed(0);
    return sign + digits + (names[i] ? gap + names[i] : "");
}

export function formatBytes(value: number): string {
    return scaled(value, 1024, 1023.5, ["B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB"], " ");
}

export function formatCount(value: number): string {
    return scaled(value, 1000, 999.5, ["", "k", "M", "G", "T", "P"], "");
}

export function formatDuration(ns: number): string {
    if (ns >= 60e9) return ns >= 3600e9 ? `${three(ns / 3600e9)} h` : `${three(ns / 60e9)} min`;
    return scaled(ns, 1000, 999.5, ["ns", "µs", "ms", "s"], " ");
}

/** "1.235s", as FILE@TIME takes it: not before the time. */
export function formatSeconds(seconds: number): string {
    return `${(Math.ceil(seconds * 1000 - 1e-6) / 1000).toFixed(3).replace(/\.?0+$/, "")}s`;
}

export function format(value: number, unit: Unit): string {
    if (Number.isNaN(value)) return "–";
    if (unit === "bytes") return formatBytes(value);
    if (unit === "ns") return formatDuration(value);
    return unit === "count" ? formatCount(value) : String(value);
}

/** "3.20 MiB", with " (2.91 MiB – 3.55 MiB)" where it is an estimate. */
export function formatInterval(i: Interval, unit: Unit): string {
    const value = format(i.value, unit);
    if (i.low === i.high) return value;
    return `${value} (${format(i.low, unit)} – ${format(i.high, unit)})`;
}

/** "2.91 MiB – 3.55 MiB"; "" where nothing is estimated. */
export function formatRange(i: Interval, unit: Unit): string {
    return i.low === i.high ? "" : `${format(i.low, unit)} – ${format(i.high, unit)}`;
}

/** "+3.2 MiB", "−1.1 MiB", "0 B". */
export function formatSigned(value: number, unit: Unit): string {
    return value > 0 ? `+${format(value, unit)}` : format(value, unit);
}

export function formatShare(part: number, whole: number): string {
    if (!(whole > 0)) return "–";
    const percent = (100 * part) / whole;
    return percent >= 9.95 ? `${percent.toFixed(0)} %` : percent >= 0.05 ? `${percent.toFixed(1)} %` : "< 0.1 %";
}

const HIDDEN = /[\u0000-\u001f\u007f-\u009f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ufeff]/g;

/** A name from a profile. Invisible characters, and those that turn the direction of text, become their codes. */
export function cleanName(name: string): string {
    return name.replace(HIDDEN, (c) => "\\u" + c.charCodeAt(0).toString(16).padStart(4, "0"));
}

export function baseName(path: string): string {
    return path.slice(path.lastIndexOf("/") + 1);
}
