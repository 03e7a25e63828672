// SPDX-License-Identifier: BSD-2-Clause
// Elements. Texts become text nodes: nothing that comes from a profile is ever parsed as markup.

type Child = Node | string | null | undefined | false;

export function el<K extends keyof HTMLElementTagNameMap>(
    tag: K,
    attributes: Record<string, string | number | boolean | ((e: any) => void)> = {},
    ...children: Child[]
): HTMLElementTagNameMap[K] {
    const e = document.createElement(tag);
    for (const [key, value] of Object.entries(attributes)) {
        if (typeof value === "function") e.addEventListener(key.slice(2), value);
        else if (value === true) e.setAttribute(key, "");
        else if (value !== false) e.setAttribute(key, String(value));
    }
    for (const child of children) if (child) e.append(child);
    return e;
}

/** Makes the controls in an element anew. If the nth one had the focus, the new nth one gets it. */
export function keepFocus(parent: HTMLElement, make: () => void): void {
    const which = "button, select, input, summary";
    const at = [...parent.querySelectorAll<HTMLElement>(which)].indexOf(document.activeElement as HTMLElement);
    make();
    if (at >= 0) parent.querySelectorAll<HTMLElement>(which)[at]?.focus({ preventScroll: true });
}

/** Calls `f` before the next picture once an element's size has changed; not at once, as it may change sizes itself. */
export function onResize(element: Element, f: () => void): void {
    new ResizeObserver(() => requestAnimationFrame(f)).observe(element);
}

/** A canvas that fills its place at the screen's resolution. Returns its size in CSS pixels. */
export function fitCanvas(canvas: HTMLCanvasElement, width: number, height: number): CanvasRenderingContext2D {
    const ratio = window.devicePixelRatio || 1;
    canvas.width = Math.round(width * ratio);
    canvas.height = Math.round(height * ratio);
    canvas.style.width = `${width}px`;
    canvas.style.height = `${height}px`;
    const context = canvas.getContext("2d")!;
    context.setTransform(ratio, 0, 0, ratio, 0, 0);
    return context;
}

export const FONT = "12px ui-monospace, 'DejaVu Sans Mono', monospace";

let widthOfChar = 0;

/** As much of a text as fits, with dots for the rest. "": nothing does. */
export function clipText(context: CanvasRenderingContext2D, text: string, width: number): string {
    context.font = FONT;
    widthOfChar ||= context.measureText("0000000000").width / 10;
    const room = Math.floor(width / widthOfChar);
    if (text.length <= room) return text;
    return room < 3 ? "" : text.slice(0, room - 1) + "…";
}

export interface Colours {
    background: string;
    text: string;
    faint: string;
    line: string;
    mark: string;
    focus: string;
    dark: boolean;
}

export function colours(): Colours {
    const style = getComputedStyle(document.documentElement);
    const of = (name: string) => style.getPropertyValue(name).trim();
    return {
        background: of("--background"),
        text: of("--text"),
        faint: of("--faint"),
        line: of("--line"),
        mark: of("--mark"),
        focus: of("--focus"),
        dark: of("--dark") === "1",
    };
}

/** `name` chooses the hue ("": grey), `shade` one of five shades of it; always the same for the same words. */
export function colourOf(name: string, shade: string, dark: boolean): string {
    if (!name) return dark ? "hsl(220 6% 34%)" : "hsl(220 10% 86%)";
    const light = (dark ? 27 : 76) + (hashOf(shade) % 5) * 2.5;
    return `hsl(${hashOf(name) % 360} ${dark ? 38 : 58}% ${light}%)`;
}

function hashOf(text: string): number {
    let hash = 2166136261; // FNV-1a
    for (let i = 0; i < text.length; i++) hash = Math.imul(hash ^ text.charCodeAt(i), 16777619);
    return Math.imul(hash ^ (hash >>> 15), 0x2c1b3c6d) >>> 8;
}
