# SPDX-License-Identifier: BSD-2-Clause
"""What fuzzers of binary traces begin with: small files as perf and trace-cmd write them, and records of kmem events."""
import gzip
import io
import os
import struct
import subprocess
import tarfile
import zlib

RECORDED = os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "unit/recorded/")
EVENTS = ("kmalloc", "kfree", "kmem_cache_alloc", "kmem_cache_free")
MAGIC = b"\x17\x08\x44tracing"
PAGE = 4096


def u16(n):
    return struct.pack("<H", n)


def u32(n):
    return struct.pack("<I", n)


def u64(*numbers):
    return struct.pack("<%dQ" % len(numbers), *numbers)


def recorded(name):
    with open(RECORDED + name + "-6.18.format", "rb") as file:
        return file.read()


def zstd(data):
    return subprocess.run(["zstd", "-qc"], input=data, stdout=subprocess.PIPE, check=True).stdout


def short(text):
    """A format without the words for printing: a corpus of small files is fuzzed faster."""
    return text[:text.find(b"print fmt")]


def parts(layout=None):
    """The parts of the formats: pages, those of ftrace, events, symbols, printk, names of threads."""
    layout = recorded("header_page") if layout is None else layout
    ftrace, events = [short(recorded("kernel_stack"))], [short(recorded(name)) for name in EVENTS] + [b"no name\n"]
    return [
        b"header_page\0" + u64(len(layout)) + layout + b"header_event\0" + u64(4) + b"type",
        u32(len(ftrace)) + b"".join(u64(len(text)) + text for text in ftrace),
        u32(1) + b"kmem\0" + u32(len(events)) + b"".join(u64(len(text)) + text for text in events),
        u32(29) + b"ffffffff81000000 T do_pipe2\n\n",
        u32(3) + b"abc",
        u64(11) + b"1 init\n7 a\n",
    ]


def head(version, big=0, word=8):
    return MAGIC + version + b"\0" + bytes([big, word]) + u32(PAGE)


# ---- perf ----


def record(kind, body, misc=0):
    body += bytes(-len(body) % 8)
    return struct.pack("<IHH", kind, misc, 8 + len(body)) + body


def attr(sample_type, read_format=0, config=1, period=1, bits=1 << 18, kind=2):
    return struct.pack("<IIQQQQQ", kind, 64, config, period, sample_type, read_format, bits) + bytes(16)


def sample(time, raw=b"x" * 40):
    """Of the type IDENTIFIER, IP, TID, TIME, CPU, PERIOD, CALLCHAIN, RAW"""
    chain = u64(3, 2**64 - 128, 0xffffffff81000010, 0xffffffff81000020)
    return record(9, u64(5, 0xffffffff81000000) + u32(7) + u32(8) + u64(time) + u32(1) + u32(0) + u64(1) + chain +
                  u32(len(raw)) + raw)


def full_sample(time):
    """With all that a sample may have up to its raw data."""
    return record(9, u64(5, 1) + u32(7) + u32(8) + u64(time, 2, 5, 6) + u32(1) + u32(0) + u64(1) +
                  u64(2, 11, 12, 1, 2, 3, 4, 5, 6) + u64(0) + u32(4) + b"abcd")


def trailer(time):
    return u32(7) + u32(8) + u64(time) + u32(1) + u32(0) + u64(5)


TYPE = 1 << 16 | 1 | 2 | 4 | 0x80 | 0x100 | 0x20 | 0x400
FULL = TYPE | 8 | 0x10 | 0x40 | 0x200


def build_id(kind, name, misc=1):
    return record(kind, u32(2**32 - 1) + bytes(range(20)) + u32(20) + name, misc)


def perf_records():
    mapping = u32(2**32 - 1) + u32(0) + u64(0xffffffff81000000, 4096, 0xffffffff81000000)
    return b"".join((
        record(1, mapping + b"[kernel.kallsyms]_text\0"),
        build_id(67, b"/boot/vmlinux-6\0", 1 << 15 | 1),
        record(10, mapping + u32(20) + bytes(28) + b"[kernel.kallsyms]_text\0", 1 << 14),
        record(3, u32(7) + u32(8) + b"python3\0" + trailer(3)),
        record(7, u32(9) + u32(7) + u32(9) + u32(8) + u64(4) + trailer(4)), sample(9), sample(12), record(68, b""),
        sample(5), sample(10), record(2, u64(5, 17) + trailer(20)), record(68, b""), record(13, u64(3) + trailer(21)),
        sample(30), record(71, u64(8, 0)) + bytes(8), record(99, b"")
    ))


def about(text):
    data = text + bytes(-len(text) % 64)
    return u32(len(data)) + data


def perf_pipe(middle, kind=attr(TYPE)):
    formats = head(b"0.6") + b"".join(parts())
    formats += bytes(-len(formats) % 8)
    features = ((3, about(b"host\0")), (4, about(b"6.18.0\0")), (6, about(os.uname().machine.encode() + b"\0")),
                (29, u64(1 << 32, 10**18, 10**9)))
    return b"PERFILE2" + u64(16) + record(64, kind + u64(5, 6)) + b"".join(
        record(80, u64(number) + data) for number, data in features) + record(
            66, u32(len(formats)) + u32(0)) + formats + middle


def perf_file(middle, formats=None, numbers=(1, 3), kind=attr(TYPE)):
    formats = head(b"0.5") + b"".join(parts()[:5]) if formats is None else formats
    ids = build_id(0, b"[ext4]\0") + build_id(0, b"[kernel.kallsyms]\0")
    texts = {1: formats, 2: ids, 3: about(b"host\0"), 6: about(b"s390x\0"), 24: b"", 29: u64(1, 2)}
    attrs, ids = 104, 104 + len(kind) + 16
    data = ids + 8
    tables = data + len(middle)
    at, table, bodies = tables + 16 * len(numbers), b"", b""
    bits = [0] * 4
    for number in numbers:
        bits[number // 64] |= 1 << number % 64
        table += u64(at + len(bodies), len(texts[number]))
        bodies += texts[number]
    return b"PERFILE2" + u64(104, len(kind) + 16, attrs, len(kind) + 16, data, len(middle), 0, 0, *bits) + kind + u64(
        ids, 8) + u64(5) + middle + table + bodies


def perf_files():
    events = perf_records()
    small = zstd(events)
    full = b"".join(map(full_sample, (7, 3)))
    unnamed = attr(TYPE & ~(1 << 16) & ~4, bits=1 << 10)
    return [
        perf_pipe(events), perf_pipe(record(81, small[:-len(small) % 8 or None])), perf_pipe(events[:100] + b"\0" * 9),
        perf_pipe(record(83, u64(len(small)) + small) + record(68, b"")), perf_pipe(record(83, u64(999)) + events),
        perf_pipe(record(81, b"no zstd.")), perf_pipe(full, attr(FULL, 0x1f)), perf_pipe(full, attr(FULL, 0x07)),
        perf_pipe(events, unnamed), perf_pipe(events, b"short"), perf_file(events), perf_file(b""),
        perf_file(events, head(b"0.6", 1)), perf_file(events, head(b"0.6", 0, 4)),
        perf_file(events, b"\x17\x08\x44trac"), perf_file(events, numbers=(1, 2)), perf_file(events, numbers=(1, 6)),
        perf_file(events, numbers=(1, 24)), perf_file(events, numbers=(1, 29)),
        b"2ELIFREP" + perf_file(events)[8:], b"PERFILE2" + u64(17), b"PERFILE1" + u64(16)
    ]


# ---- trace-cmd ----


def pages(times=(1000, 2000)):
    def header(kind, time=0):
        return u32(kind | time << 5)
    body = header(10, 3) + u16(1) + bytes(38) + header(2, 1) + bytes(8)
    return b"".join((u64(time, len(body) | (3 << 30 if n else 0)) + body + u64(77)).ljust(PAGE, b"\0")
                    for n, time in enumerate(times))


def option(number, data):
    return u16(number) + u32(len(data)) + data


def version6(data, extra=b"", word=b"flyrecord\0", instance=False, clock=b"[local]"):
    start = head(b"6") + b"".join(parts())
    place = len(start) + len(extra) + 300
    table = word + u64(place, len(data)) + u64(len(clock)) + clock
    if instance:
        extra += option(3, u64(place + len(data)) + b"mine\0")
        here = b"flyrecord\0" + u64(place, 0)
    else:
        here, table = table, b""
    options = b"options  \0" + extra + u16(0) if extra else b""
    return (start + u32(1) + options + here).ljust(place, b"\0") + data + table


def version7(data, name=b"none", pack=None, many=1):
    start = head(b"7") + name + b"\0001\0"
    out, options = bytearray(start + bytes(8)), b""

    def section(number, body, packed=pack):
        at = len(out)
        if packed:
            small = packed(body)
            body = u32(len(small)) + u32(len(body)) + small
        out.extend(u16(number) + u16(packed is not None) + u32(0) + u64(len(body)) + body)
        return at

    for number, part in zip((16, 17, 18, 19, 20, 21), parts()):
        options += option(number, u64(section(number, part)))
    for _ in range(many):
        buffer = section(3, b"", None)
        out[buffer + 2] = pack is not None
        at, body = len(out), data
        if pack:
            small = pack(data)
            body = u32(1) + u32(len(small)) + u32(len(data)) + small
        out.extend(body)
        cpu = u32(0) + u64(at, len(body) - (4 if pack else 0))
        options += option(3, u64(buffer) + b"\0mono\0" + u32(PAGE) + u32(1) + cpu)
    last = section(0, options + option(0, u64(0)), None)
    out[len(start):len(start) + 8] = u64(section(0, option(8, u32(1)) + option(0, u64(last)), None))
    return bytes(out)


def dat_files():
    machine = os.uname().machine.encode()
    stats, clock = option(2, b"CPU: 0\noverrun: 3\n"), option(4, b"local [mono]\0")
    return [
        version6(pages()), version6(pages((2000, 1000)), stats + clock + option(5, b"Linux a 6 " + machine)),
        version6(pages(), stats, instance=True), version6(pages(), option(5, b"Linux a 6 vax")),
        version6(pages(), word=b"latency  \0"), version6(pages(), word=b"something\0"), version6(pages())[:-100],
        version6(b""), version7(pages()), version7(pages(), b"zlib", zlib.compress), version7(pages(), b"zstd", zstd),
        version7(pages(), b"zstd", zlib.compress), version7(pages(), b"lzma"), version7(pages(), many=2),
        head(b"5"), head(b"6", 1), head(b"6", 0, 4), head(b"9"), version6(pages())[:900]
    ]


# ---- records of kmem events ----


# ---- packed by the script ----


def packs():
    """Small archives, as tar writes them."""
    def archive(*members):
        data = io.BytesIO()
        with tarfile.open(fileobj=data, mode="w", format=tarfile.USTAR_FORMAT, bufsize=512) as file:
            for name, text in members:
                member = tarfile.TarInfo(name)
                member.size = len(text)
                file.addfile(member, io.BytesIO(text))
        return data.getvalue().rstrip(b"\0") + bytes(1024)

    trace = b"a-1 [000] .... 1.5: kfree: call_site=f ptr=(nil)\n"
    return [
        archive(("p/trace", trace), ("p/kallsyms", b"ffffffff81000000 T a\n")),
        archive(("p", b""), ("./p/trace", gzip.compress(trace)),
                ("p/state/proc/slabinfo", b"slabinfo - version: 2.1\n")),
        archive(("p/state/proc/vmallocinfo", b"0xffffc90000000000-0xffffc90000005000   20480 a+0x1/0x2 pages=4\n"),
                ("p/state/proc/modules", b"ext4 1003520 2 - Live 0xffffffffc0000000\n"), ("p/trace", trace)),
        archive(("p/state/sys/kernel/notes", b"\4\0\0\0\4\0\0\0\3\0\0\0GNU\0abcd"), ("p/trace", trace),
                ("p/state/proc/config.gz", gzip.compress(b"CONFIG_A=y\n"))),
        archive(("p/state/dev/kmsg", b"6,0,12,-;Memory: 1K\n"), ("p/state/boot/config-6", b"CONFIG_A=y\n"),
                ("p/other", b"x"), ("p/trace", trace)),
    ]


def numbers_of(text):
    return int(text[text.index(b"\nID: ") + 5:].split(b"\n")[0])


def kmem_records():
    """Each input: records, each behind its length in a byte."""
    out = []
    for name in EVENTS:
        text = short(recorded(name))
        body = bytearray(120)
        body[:8] = u16(numbers_of(text)) + b"\x10\0" + u32(7)
        for line in text.split(b"\n"):
            if b"__data_loc" in line:
                at = int(line[line.index(b"offset:") + 7:].split(b";")[0])
                body[at:at + 4] = u16(100) + u16(5)
                body[100:105] = b"filp\0"
        out.append(bytes([len(body)]) + bytes(body))
    stack = u16(numbers_of(recorded("kernel_stack"))) + b"\0\0" + u32(7) + u32(3) + u32(0) + u64(1, 2, 3)
    renamed = u16(300) + bytes(6) + u32(7) + b"bash".ljust(16, b"\0")
    moved = u16(301) + bytes(6) + u32(4) + u32(7) + u16(20) + u16(6) + b"/a/b\0\0"
    pages = u16(302) + bytes(2) + u32(7) + u64(0x1f000) + u32(2) + bytes(4) + u64(0xcc0) + u32(1)
    short_ones = renamed[:9], moved[:10], moved[:20], pages[:35]
    out += [bytes([len(one)]) + one for one in (renamed, moved, pages, *short_ones)]
    return out + [bytes([len(stack)]) + stack + b"".join(out)[:200], b"".join(out), b"\1a\0\5abcde"]
