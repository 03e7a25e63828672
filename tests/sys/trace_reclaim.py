# SPDX-License-Identifier: BSD-2-Clause
"""`allium trace --kernel reclaim`: direct reclaim in a call of the allocator, which a memory cgroup with a limit makes,
beside the kernel's own tracepoints of the same run.
"""
import json
import os
import re
import sys

sys.dont_write_bytecode = True
import lib
import reclaim
import tap
from tap import built, check, equal, private_dir, succeed

ALLIUM = built("ALLIUM")
LIMIT_MIB, FILE_MIB, BLOCK_MIB = 64, 80, 16
# It enters the cgroup, fills it with pages of the file, and then calloc() clears memory whose pages the kernel took.
PROGRAM = r"""
#define _GNU_SOURCE
#include <fcntl.h>
#include <malloc.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>
#define SIZE ((size_t)%d << 20)
static char page[1 << 20];
static void put(const char *path)
{
    int fd = open(path, O_WRONLY);
    if (fd < 0 || write(fd, "0", 1) != 1)
        _exit(3);
    close(fd);
}
static void fill(const char *path)
{
    int fd = open(path, O_RDONLY);
    while (read(fd, page, sizeof(page)) > 0)
        ;
    close(fd);
}
int main(int argc, char **argv)
{
    (void)argc;
    mallopt(M_MMAP_THRESHOLD, 1 << 30);
    mallopt(M_TRIM_THRESHOLD, 1 << 30);
    char *all = malloc(SIZE);
    memset(all, 1, SIZE);
    char *begin = (char *)(((uintptr_t)all + 4095) & -4096);
    free(all);
    madvise(begin, SIZE - 8192, MADV_NOHUGEPAGE);
    madvise(begin, SIZE - 8192, MADV_DONTNEED);
    put(argv[1]);
    fill(argv[2]);
    char *volatile cleared = calloc(1, SIZE);
    free(cleared);
    printf("%%d\n", (int)getpid());
    return 0;
}
""" % BLOCK_MIB
# The kernel's own trace of the program.
BESIDE = '''
cd %s/instances && mkdir allium-test-$$ && cd allium-test-$$ || exit 99
trap 'echo 0 > tracing_on; cat trace > "$OUT"; cd ..; rmdir allium-test-$$' EXIT
echo mono > trace_clock; echo 8192 > buffer_size_kb
echo 1 > options/event-fork; echo $$ > set_event_pid
for edge in begin end; do echo 1 > events/vmscan/mm_vmscan_memcg_reclaim_$edge/enable; done
cd "$HERE"; "$@"; code=$?; cd - >/dev/null; exit $code
''' % lib.TRACEFS
RECORD = re.compile(r"^\s*.{1,16}-(\d+)\s+\[\d+\] \S+\s+(\d+)\.(\d{6}): mm_vmscan_memcg_reclaim_(begin|end): (.*)$",
                    re.M)


def kernels_own(text, pid):
    """-> [(ns, ns, pages)] of each reclaim of the process"""
    begun, found = None, []
    for thread, s, us, edge, rest in RECORD.findall(text):
        ns = int(s) * 10**9 + int(us) * 1000
        if int(thread) != pid:
            continue
        if edge == "begin":
            begun = ns
        elif begun:
            found.append((begun, ns, int(re.search(r"nr_reclaimed=(\d+)", rest).group(1))))
    return found


def traced(folder, group, file):
    with open(folder + "/cleared.c", "w") as source:
        source.write(PROGRAM)
    succeed(["cc", "-O1", "-fno-builtin", folder + "/cleared.c", "-o", folder + "/cleared"])
    done = tap.run(lib.with_tracefs(["sh", "-c", BESIDE, "sh", ALLIUM, "trace", "--events", "alloc,begin", "--kernel",
                                     "faults,reclaim", "--period", "1T", "-o", folder + "/t", "--", folder + "/cleared",
                                     group.folder + "/cgroup.procs", file]),
                   env=dict(os.environ, OUT=folder + "/trace", HERE=folder))
    lib.excuse(done.returncode == 137)
    equal(done.returncode, 0, done.stderr)
    said = done.stderr.decode()
    missed = re.search(r"; up to (\d+) more may", said)
    lib.excuse(int(missed.group(1)) if missed else 0)
    equal(re.findall(r"(\d+) lost", said), ["0", "0"], said)
    with open(folder + "/trace") as text:
        return kernels_own(text.read(), int(done.stdout)), said


def listed(folder, *words):
    done = succeed([ALLIUM, "events", folder + "/t", "--json", *words])
    return [json.loads(line) for line in done.stdout.splitlines()[1:-1]]


def within():
    """As many as the kernel's own tracepoints say, of as many pages, at their times; those in calloc() lie in page faults
    there; and their time is what `events --by call` and the summary have of reclaim.
    """
    with private_dir() as folder, reclaim.group(LIMIT_MIB) as group, reclaim.file_on_disk(FILE_MIB) as file:
        group.does_not_swap()
        want, said = traced(folder, group, file)
        rows, calls = listed(folder), listed(folder, "--by", "call")
        begun = [e for e in rows if e["event"] == "kernel:reclaim_begin"]
        ended = [e for e in rows if e["event"] == "kernel:reclaim_end"]
        check(len(want) >= 8, "the kernel has reclaimed", len(want))
        equal({e["fields"]["kind"] for e in begun + ended}, {"cgroup"}, "kind")
        equal([e["fields"]["pages"] for e in ended], [pages for _, _, pages in want], "pages")
        equal(len(begun), len(ended), "beginnings")
        # Both probes are called one after the other; other programs, and interrupts, may run in between.
        off = sorted(abs(e["duration_ns"] - (end - begin)) for e, (begin, end, _) in zip(ended, want))
        print("# %d reclaims; durations differ by %d ns in the median, at most %d ns" % (
            len(off), off[len(off) // 2], off[-1]))
        check(off[len(off) // 2] < 50000, "durations", off)
        inside = [e for e in ended if e["within"] == "calloc"]
        check(4 <= len(inside) < len(ended), "in calloc()", len(inside), "of", len(ended))
        # calloc, page fault, reclaim; those while the file is read are in no call
        equal({e["depth"] for e in inside}, {2}, "depth in calloc()")
        equal({e["within"] for e in ended}, {"calloc", None}, "calls")
        row, = [row for row in calls if row["call"] == "calloc"]
        time, whole = sum(e["duration_ns"] for e in inside), sum(row["time_ns"] for row in calls)
        equal(row["reclaim_ns"], time, "reclaim in calloc()")
        check(0 < time <= row["faults_ns"] <= row["time_ns"], row)
        share = float(re.search(r"calls of the allocator took .*, reclaim [^(]*\((\S+) %\)", said).group(1))
        check(abs(share - 100 * time / whole) <= 0.051, share, time, whole)


lib.main([("direct reclaim in a call of the allocator", within)])
