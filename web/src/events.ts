// SPDX-License-Identifier: BSD-2-Clause
// The view of a trace's events: a chart over time, and the events one by one.

import { el } from "./dom";
import { Chart } from "./events_chart";
import { Events } from "./events_data";
import type { EventsView, MakeEvents } from "./events_view";
import { formatCount, formatDuration } from "./format";
import { Table, type Column, type TableData } from "./table";

class EventTable extends Table {
    /** Selects the row, if the search has not left it out. */
    reveal(row: number): void {
        const at = this.order.indexOf(row);
        if (at >= 0) this.select(at);
    }
}

function columnsOf(events: Events): Column[] {
    const at = Uint32Array.from({ length: events.rows }, (_, row) => row);
    const texts = (label: string, width: number, of: (row: number) => string): Column => ({ label, width, unit: "text", texts: of });
    const spans = (label: string, numbers: Float64Array): Column[] => (events.hasNumbers ? [] : [{ label, width: 6, unit: "ns", numbers }]);
    return [
        // the order of the rows is that of the time, and numbers fall
        { ...texts(events.hasNumbers ? "Number" : "Time", 8, (row) => events.time(events.times[row])), order: Float64Array.from(at, (row) => -row) },
        ...spans("Delta", events.deltas),
        { label: "CPU", width: 4, unit: "plain", numbers: Uint32Array.from(at, (row) => events.cpu(row)) },
        texts("Thread", 11, (row) => events.thread(row)),
        texts("Event", 13, (row) => events.name(row)),
        ...spans("Took", events.took),
        texts("Fields", 18, (row) => events.fields(row)),
        texts("Site", 12, (row) => events.site(row)),
    ];
}

/** How many of the events the table has. */
function sentenceOf(events: Events): string {
    const lost = events.lost ? ` ${formatCount(events.lost)} events were lost while the trace was recorded.` : "";
    if (events.rows === events.all) return `All ${events.all} events.${lost}`;
    return `${events.rows} of ${events.all} events are listed: the longest spans, and the last events. ` +
        `All: allium events ${events.folder}.${lost} The bars count all events.`;
}

const make: MakeEvents = (blob, page): EventsView => {
    const events = new Events(blob);
    const data: TableData = { columns: columnsOf(events), rows: events.rows };
    const table = new EventTable({
        select(row) {
            chart.mark(row);
            const took = events.took[row];
            page.say(`${events.time(events.times[row])} ${events.name(row)}`,
                (took >= 0 ? `took ${formatDuration(took)}, ` : "") + events.fields(row), events.site(row));
        },
        open: (row) => chart.zoomTo(row),
        sort: (label) => page.sort(label),
    });
    const chart: Chart = new Chart(events, { select: (row) => table.reveal(row), say: (name, figures) => page.say(name, figures) });
    const note = el("p", { class: "found" }, sentenceOf(events));
    const element = el("div", { class: "events" }, chart.element, note, table.element);
    Object.assign(element.style, { display: "grid", gridTemplateRows: "auto auto minmax(0, 1fr)", height: "100%" });
    Object.assign(note.style, { margin: "0", padding: "0 0.5rem", whiteSpace: "normal" });
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
