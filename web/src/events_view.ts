// SPDX-License-Identifier: BSD-2-Clause
// What the page and the view of events (events.ts) know of each other: they are two scripts, as only the page of a trace
// has the second one.

import type { Blob } from "./blob";

export interface EventsView {
    readonly element: HTMLElement;
    /** `matches` null: all events; `sort`: as of Table.show(). */
    show(matches: ((text: string) => boolean) | null, sort: string): void;
}

/** What the view makes the page do. */
export interface EventsPage {
    say(name: string, figures: string, place?: string): void;
    sort(label: string): void;
}

export type MakeEvents = (blob: Blob, page: EventsPage) => EventsView;

declare global {
    var alliumEvents: MakeEvents | undefined;
}
