// SPDX-License-Identifier: BSD-2-Clause
// A table of any number of rows: only those that can be seen are elements.

import { el, keepFocus, onResize } from "./dom";
import { format, formatSigned, type Unit } from "./format";
import { sortByNumber, sortByText } from "./sort";

export interface Column {
    label: string;
    unit: Unit | "text";
    numbers?: ArrayLike<number>; // NaN: not known
    order?: ArrayLike<number>; // numbers to sort by in place of `numbers` or `texts`, which are shown
    texts?: (row: number) => string;
    isSigned?: boolean; // a change
    width?: number; // in rem
    isFigure?: boolean; // the texts are figures that are made when they are shown: nothing to sort by or to search in
}

export interface TableData {
    columns: Column[];
    rows: number;
}

export interface TableEvents {
    select(row: number): void;
    open(row: number): void; // Enter, or a double click
    sort(label: string): void;
}

/** What a cell of the table shows. */
export function cellText(c: Column, row: number): string {
    if (c.texts) return c.texts(row);
    return c.isSigned ? formatSigned(c.numbers![row], c.unit as Unit) : format(c.numbers![row], c.unit as Unit);
}

const LONGEST = 48; // characters

/** Of a long path its end, which tells more than its beginning. */
function shortened(text: string): string {
    const isPath = text.length > LONGEST && text.startsWith("/");
    return isPath ? `…${text.slice(1 - LONGEST)}` : text;
}

const ROW = 22; // pixels
const SPARE = 10; // rows made above and below what is seen

export class Table {
    readonly element: HTMLElement;
    private readonly head = el("div", { class: "tr th", role: "row" });
    private readonly body = el("div", { class: "tbody", role: "rowgroup" });
    private readonly scroll: HTMLElement;
    private data: TableData = { columns: [], rows: 0 };
    protected order: Uint32Array = new Uint32Array(0);
    private sortBy = 0;
    private reverse = false;
    private selected = 0; // in `order`
    private hidden = new Set<string>();
    private filter: ((row: number) => boolean) | null = null;

    constructor(private readonly events: TableEvents) {
        this.scroll = el("div", { class: "tscroll", tabindex: "0", role: "table", "aria-label": "Rows" }, this.head,
            this.body);
        this.element = el("div", { class: "table" }, this.scroll);
        this.scroll.addEventListener("scroll", () => this.fill());
        this.scroll.addEventListener("keydown", (e) => this.key(e));
        onResize(this.scroll, () => this.fill());
    }

    /** `sort`: the label of a column, "-" before it turns the order; without such a column, the first with numbers. */
    show(data: TableData, sort: string, filter: ((row: number) => boolean) | null): void {
        const same = data === this.data;
        this.data = data;
        this.filter = filter;
        this.reverse = sort.startsWith("-");
        const label = this.reverse ? sort.slice(1) : sort;
        const asked = data.columns.findIndex((c) => c.label === label && !c.isFigure);
        this.sortBy = asked >= 0 ? asked : Math.max(0, data.columns.findIndex((c) => c.numbers));
        if (!same) this.scroll.scrollTop = 0;
        this.selected = 0;
        this.arrange();
        this.fill();
    }

    /** How many rows the filter leaves. */
    get shown(): number {
        return this.order.length;
    }

    get shownRows(): Uint32Array {
        return this.order;
    }

    get visibleColumns(): Column[] {
        return this.data.columns.filter((c) => !this.hidden.has(c.label));
    }

    toggle(label: string): void {
        if (!this.hidden.delete(label)) this.hidden.add(label);
        this.fill();
    }

    isHidden(label: string): boolean {
        return this.hidden.has(label);
    }

    /** What is shown, as lines of columns separated by tabs. */
    copyText(): string {
        const columns = this.visibleColumns;
        const lines = [columns.map((c) => c.label).join("\t")];
        for (const row of this.order)
            lines.push(columns.map((c) => (c.numbers ? String(c.numbers[row]) : c.texts!(row))).join("\t"));
        return lines.join("\n") + "\n";
    }

    private arrange(): void {
        const { rows } = this.data;
        const kept = new Uint32Array(rows);
        let n = 0;
        for (let i = 0; i < rows; i++) if (!this.filter || this.filter(i)) kept[n++] = i;
        this.order = kept.subarray(0, n);
        const column = this.data.columns[this.sortBy];
        if (!column) return;
        if (column.texts && !column.order) {
            this.order = sortByText(this.order, column.texts);
        } else {
            const numbers = column.order ?? column.numbers!;
            const keys = new Float64Array(numbers.length);
            for (let i = 0; i < keys.length; i++) keys[i] = Number.isNaN(numbers[i]) ? Infinity : -numbers[i] || 0;
            this.order = sortByNumber(this.order, keys);
        }
        if (this.reverse) this.order.reverse();
    }

    /** Widths in rem; the head and all rows have the same, as each of them is a grid of its own. */
    private setWidths(columns: Column[]): void {
        const widths = columns.map((c, i) => c.width ?? (c.isFigure ? 14 : c.numbers ? Math.max(7, 0.62 * c.label.length + 2) : i ? 16 : 24));
        const sum = widths.reduce((a, b) => a + b, 0);
        this.scroll.style.setProperty("--columns", widths.map((w, i) => (i + 1 < widths.length ? `${w}rem` : `minmax(${w}rem, 1fr)`)).join(" "));
        this.scroll.style.setProperty("--width", `max(100%, ${sum}rem)`);
    }

    private fill(): void {
        const columns = this.visibleColumns;
        this.setWidths(columns);
        this.scroll.setAttribute("aria-rowcount", String(this.order.length + 1));
        keepFocus(this.head, () => this.head.replaceChildren(...columns.map((c) => {
            const sorted = c === this.data.columns[this.sortBy];
            const falls = !!c.numbers !== this.reverse;
            const order = sorted ? (falls ? "descending" : "ascending") : "none";
            const kind = c.numbers || c.isFigure ? "number" : "";
            if (c.isFigure) return el("span", { class: kind, role: "columnheader" }, c.label);
            const turned = sorted && !this.reverse ? `-${c.label}` : c.label;
            const sort = el("button", { onclick: () => this.events.sort(turned) }, c.label + (sorted ? (falls ? " ▾" : " ▴") : ""));
            return el("span", { class: kind, role: "columnheader", "aria-sort": order }, sort);
        })));
        this.body.style.height = `${this.order.length * ROW}px`;
        const first = Math.max(0, Math.floor(this.scroll.scrollTop / ROW) - SPARE);
        const last = Math.min(this.order.length, first + Math.ceil(this.scroll.clientHeight / ROW) + 2 * SPARE);
        const made: HTMLElement[] = [];
        for (let at = first; at < last; at++) made.push(this.line(at, columns));
        this.body.replaceChildren(...made);
    }

    protected line(at: number, columns: Column[]): HTMLElement {
        const row = this.order[at];
        const e = el("div", { class: at === this.selected ? "tr selected" : "tr", role: "row", "aria-rowindex": at + 2,
            onclick: () => this.select(at), ondblclick: () => this.events.open(row) },
            ...columns.map((c) => {
                const text = cellText(c, row);
                return el("span", { class: c.numbers || c.isFigure ? "number" : "", role: "cell", title: text },
                    shortened(text));
            }));
        e.style.top = `${at * ROW}px`;
        return e;
    }

    protected select(at: number): void {
        this.selected = Math.max(0, Math.min(this.order.length - 1, at));
        const y = this.selected * ROW;
        const height = this.scroll.clientHeight - ROW - 4; // below the head
        if (y < this.scroll.scrollTop) this.scroll.scrollTop = y;
        else if (y + ROW > this.scroll.scrollTop + height) this.scroll.scrollTop = y + ROW - height;
        this.fill();
        if (this.order.length) this.events.select(this.order[this.selected]);
    }

    private key(e: KeyboardEvent): void {
        if (e.target !== this.scroll || e.ctrlKey || e.altKey || e.metaKey) return;
        const page = Math.max(1, Math.floor(this.scroll.clientHeight / ROW) - 2);
        const to =
            e.key === "ArrowDown" ? this.selected + 1
            : e.key === "ArrowUp" ? this.selected - 1
            : e.key === "PageDown" ? this.selected + page
            : e.key === "PageUp" ? this.selected - page
            : e.key === "Home" ? 0
            : e.key === "End" ? this.order.length - 1
            : null;
        if (to !== null) this.select(to);
        else if (e.key === "Enter" && this.order.length) this.events.open(this.order[this.selected]);
        else return;
        e.preventDefault();
        e.stopPropagation();
    }
}
