// SPDX-License-Identifier: BSD-2-Clause
// What a search finds.

import type { Profile } from "./profile";

/** A test of texts; null: nothing is searched for. A text that is no regular expression is searched for as it is. */
export function matcherOf(search: string): ((text: string) => boolean) | null {
    if (!search) return null;
    let pattern: RegExp;
    try {
        pattern = new RegExp(search, "i");
    } catch {
        pattern = new RegExp(search.replace(/[.*+?^${}()|[\]\\]/g, "\\$&"), "i");
    }
    return (text) => pattern.test(text);
}

/** By frame: 1, if its name, file or module matches. */
export function matchingFrames(profile: Profile, matches: (text: string) => boolean): Uint8Array {
    return Uint8Array.from(profile.functionOf, (_, frame) =>
        Number(matches(profile.name(frame)) || matches(profile.file(frame)) || matches(profile.module(frame))));
}

/** The nodes of these frames that are below no other one of them. */
export function outermostMatches(profile: Profile, matches: Uint8Array): Uint32Array {
    const { frame, end, nodes } = profile;
    const found = new Uint32Array(nodes);
    let n = 0;
    for (let i = 1; i < nodes; )
        if (matches[frame[i]]) {
            found[n++] = i;
            i = end[i];
        } else i++;
    return found.subarray(0, n);
}
