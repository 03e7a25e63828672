// SPDX-License-Identifier: BSD-2-Clause
// The data of the page, as src/view/page/page_blob.h writes them.

export interface ColumnRef {
    kind: "u32" | "f64" | "text" | "zero" | "same";
    at: number; // offset in bytes behind the header
    n: number;
    bytes: number; // of texts: their length in all
}

export type Numbers = Uint32Array | Float64Array;

export class Blob {
    private known = new Map<number, Numbers>(); // by offset: "same" refers to one of them
    private zeros = new Uint32Array(0); // one for all columns of zeros

    private constructor(
        readonly header: any,
        private bytes: Uint8Array,
        private columns: number, // where the columns begin
    ) {}

    static async unpack(text: string): Promise<Blob> {
        const packed = fromBase64(text.trim());
        const stream = new Response(packed).body!.pipeThrough(new DecompressionStream("deflate"));
        const bytes = new Uint8Array(await new Response(stream).arrayBuffer());
        const length = new DataView(bytes.buffer).getUint32(0, true);
        const header = JSON.parse(new TextDecoder().decode(bytes.subarray(4, 4 + length)));
        return new Blob(header, bytes, Math.ceil((4 + length) / 8) * 8);
    }

    numbers(c: ColumnRef): Numbers {
        if (c.kind === "zero") {
            if (this.zeros.length < c.n) this.zeros = new Uint32Array(c.n);
            return this.zeros.subarray(0, c.n);
        }
        if (!c.n) return new Uint32Array(0); // it takes no room: another column begins where it does
        const known = this.known.get(c.at);
        if (known) return known;
        const Kind = c.kind === "u32" ? Uint32Array : Float64Array;
        const found = new Kind(this.bytes.buffer as ArrayBuffer, this.columns + c.at, c.n);
        this.known.set(c.at, found);
        return found;
    }

    texts(c: ColumnRef): string[] {
        const from = this.columns + c.at;
        const all = new TextDecoder().decode(this.bytes.subarray(from, from + c.bytes));
        return all.split("\n").slice(0, c.n);
    }
}

function fromBase64(text: string): Uint8Array<ArrayBuffer> {
    const from = (Uint8Array as any).fromBase64;
    if (from) return from(text);
    const binary = atob(text);
    const bytes = new Uint8Array(binary.length);
    for (let i = 0; i < binary.length; i++) bytes[i] = binary.charCodeAt(i);
    return bytes;
}
