// SPDX-License-Identifier: BSD-2-Clause
// The view of a trace's events: a chart over time, and the events one by one.

import { el } from "./dom";
import { BOUND, Chart } from "./events_chart";
import { Events, MARKS } from "./events_data";
import type { EventsView, MakeEvents } from "./events_view";
import { formatCount, formatDuration } from "./format";
import { Table, type Column, type TableData } from "./table";

const MARK = "Mark"; // the column

class EventTable extends Table {
    /** Selects the row, if the search has not left it out. */
    reveal(row: number): void {
        const at = this.order.indexOf(row);
        if (at >= 0) this.select(at);
    }

    /** A mark is explained by the cell's tooltip. */
    protected override line(at: number, columns: Column[]): HTMLElement {
        const e = super.line(at, columns);
        const column = columns.findIndex((c) => c.label === MARK);
        if (column >= 0) e.children[column].setAttribute("title", explained(columns[column].texts!(this.order[at])));
        return e;
    }
}

/** "< lost" in words. */
function explained(marks: string): string {
    return marks && marks.split(" ").map((mark) => `The event ${MARKS[mark]}.`).join(" ");
}

function columnsOf(events: Events, marks: string[]): Column[] {
    const at = Uint32Array.from({ length: events.rows }, (_, row) => row);
    const texts = (label: string, width: number, of: (row: number) => string): Column => ({ label, width, unit: "text", texts: of });
    const spans = (label: string, numbers: Float64Array): Column[] => (events.hasNumbers ? [] : [{ label, width: 6, unit: "ns", numbers }]);
    return [
        // the order of the rows is that of the time, and numbers fall
        { ...texts(events.hasNumbers ? "Number" : "Time", 8, (row) => events.time(events.times[row])), order: Float64Array.from(at, (row) => -row) },
        ...(marks.some(Boolean) ? [texts(MARK, 5, (row) => marks[row])] : []),
        ...spans("Delta", events.deltas),
        { label: "CPU", width: 4, unit: "plain", numbers: Uint32Array.from(at, (row) => events.cpu(row)) },
        texts("Thread", 11, (row) => events.thread(row)),
        texts("Event", 13, (row) => events.name(row)),
        ...spans("Took", events.took),
        texts("Fields", 18, (row) => events.fields(row)),
        texts("Site", 12, (row) => events.site(row)),
    ];
}

/** How many of the events the table has, and what is missing. */
function sentenceOf(events: Events): string {
    const { rows, all, openSpans } = events;
    const match = events.filter ? ` that match (${events.filter}), of ${events.whole}` : "";
    const listed = rows === all ? `All ${all} events${match}.`
        : `${rows} of ${all} events${match} are listed: the longest spans, and the last events. ` +
            `${events.filter ? "The trace has all" : "All"}: allium events ${events.folder}. The bars count all events${events.filter && " that match"}.`;
    const open = openSpans ? ` ${formatCount(openSpans)} ${openSpans > 1 ? "spans have" : "span has"} begun and not ended.` : "";
    const lost = events.lost ? ` ${formatCount(events.lost)} events were lost while the trace was recorded${events.filter && ", whether they match or not"}.` : "";
    return listed + open + lost;
}

const make: MakeEvents = (blob, page): EventsView => {
    const events = new Events(blob);
    const marks = Array.from({ length: events.rows }, (_, row) => events.marks(row).join(" "));
    const data: TableData = { columns: columnsOf(events, marks), rows: events.rows };
    const table = new EventTable({
        select(row) {
            chart.mark(row);
            const took = events.took[row];
            page.say(`${events.time(events.times[row])} ${events.name(row)}`,
                (took >= 0 ? `${events.isOpen(row) ? "open for" : "took"} ${formatDuration(took)}, ` : "") + `${events.fields(row)} ${explained(marks[row])}`,
                events.site(row));
        },
        open: (row) => chart.zoomTo(row),
        sort: (label) => page.sort(label),
    });
    const chart: Chart = new Chart(events, { select: (row) => table.reveal(row), say: (name, figures) => page.say(name, figures) });
    const used = Object.keys(MARKS).filter((mark) => marks.some((of) => of.split(" ").includes(mark)));
    const note = el("div", { class: "found" }, sentenceOf(events),
        events.isBound && events.live && el("div", {}, `${BOUND}.`),
        ...used.map((mark) => el("div", {}, el("b", {}, mark), ` The event ${MARKS[mark]}.`)));
    const element = el("div", { class: "events" }, chart.element, note, table.element);
    Object.assign(element.style, { display: "grid", gridTemplateRows: "auto auto minmax(0, 1fr)", height: "100%" });
    Object.assign(note.style, { padding: "0 0.5rem", whiteSpace: "normal" });
    return {
        element,
        show(matches, sort) {
            chart.draw();
            table.show(data, sort || data.columns[0].label, matches && ((row) => matches(events.text(row))));
            page.say(matches ? `${table.shown} of ${data.rows} events` : `${data.rows} events`, "");
        },
    };
};

globalThis.alliumEvents = make;
