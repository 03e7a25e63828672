// SPDX-License-Identifier: BSD-2-Clause
// Sorting of a million rows: by the bits of numbers, 16 at a time, and of texts by their first letters.

const DIGITS = 1 << 16;

/** The rows in the ascending order of `keys` (by row; no NaN); rows with equal keys keep their order. */
export function sortByNumber(rows: Uint32Array, keys: Float64Array): Uint32Array {
    const halves = new Uint32Array(keys.length * 2);
    const bits = new Uint32Array(keys.buffer, keys.byteOffset, keys.length * 2);
    for (let i = 0; i < keys.length; i++) { // so that the order of the bits is that of the numbers
        const [low, high] = [bits[2 * i], bits[2 * i + 1]];
        const negative = high >>> 31;
        halves[2 * i] = negative ? ~low : low;
        halves[2 * i + 1] = negative ? ~high : high ^ 0x80000000;
    }
    let from = rows.slice();
    let to = new Uint32Array(rows.length);
    const count = new Uint32Array(DIGITS + 1);
    for (let digit = 0; digit < 4; digit++) {
        const at = digit >> 1;
        const shift = (digit & 1) * 16;
        count.fill(0);
        for (let i = 0; i < from.length; i++) count[((halves[2 * from[i] + at] >>> shift) & 0xffff) + 1]++;
        if (count.includes(from.length)) continue; // all the same
        for (let i = 0; i < DIGITS; i++) count[i + 1] += count[i];
        for (let i = 0; i < from.length; i++) {
            const row = from[i];
            to[count[(halves[2 * row + at] >>> shift) & 0xffff]++] = row;
        }
        [from, to] = [to, from];
    }
    return from;
}

/** How many letters all of these texts begin with. */
function commonLetters(texts: string[], rows: Uint32Array): number {
    const first = texts[rows[0]] ?? "";
    let n = first.length;
    for (const row of rows) {
        const text = texts[row];
        let i = 0;
        while (i < n && text.charCodeAt(i) === first.charCodeAt(i)) i++;
        n = i;
    }
    return n;
}

/** The next letters as a number of 48 bits: three, or six if all texts have codes below 256. */
function keysOf(texts: string[], rows: Uint32Array, from: number): Float64Array {
    const keys = new Float64Array(texts.length);
    for (const wide of [false, true]) {
        const [letters, codes] = wide ? [3, 1 << 16] : [6, 1 << 8];
        let most = 0;
        for (const row of rows) {
            const text = texts[row];
            let key = 0;
            for (let i = from; i < from + letters; i++) {
                const code = i < text.length ? text.charCodeAt(i) : 0;
                if (code > most) most = code;
                key = key * codes + code;
            }
            keys[row] = key;
        }
        if (most < codes) break;
    }
    return keys;
}

/** The rows in the ascending order of their texts, by the codes of their letters. */
export function sortByText(rows: Uint32Array, textOf: (row: number) => string): Uint32Array {
    let size = 0;
    for (const row of rows) if (row >= size) size = row + 1;
    const texts: string[] = new Array(size);
    for (const row of rows) texts[row] = textOf(row);
    const keys = keysOf(texts, rows, commonLetters(texts, rows));
    const sorted = sortByNumber(rows, keys);
    for (let from = 0; from < sorted.length; ) {
        let to = from + 1;
        while (to < sorted.length && keys[sorted[to]] === keys[sorted[from]]) to++;
        if (to - from > FEW) sortEqual(sorted.subarray(from, to), texts);
        else insert(sorted, from, to, texts);
        from = to;
    }
    return sorted;
}

const FEW = 16;

function insert(rows: Uint32Array, from: number, to: number, texts: string[]): void {
    for (let i = from + 1; i < to; i++) {
        const row = rows[i];
        let k = i;
        for (; k > from && texts[rows[k - 1]] > texts[row]; k--) rows[k] = rows[k - 1];
        rows[k] = row;
    }
}

/** Many rows whose texts begin alike. Equal texts are compared once. */
function sortEqual(rows: Uint32Array, texts: string[]): void {
    const groups = new Map<string, number[]>();
    for (const row of rows) {
        const group = groups.get(texts[row]);
        if (group) group.push(row);
        else groups.set(texts[row], [row]);
    }
    let at = 0;
    for (const text of [...groups.keys()].sort()) for (const row of groups.get(text)!) rows[at++] = row;
}
