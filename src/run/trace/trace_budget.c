/* SPDX-License-Identifier: BSD-2-Clause */
#include "run/trace/trace_budget.h"

#include <errno.h>
#include <sys/statvfs.h>

#define LIMIT_MOST_BYTES (UINT64_C(4) << 30)
#define SPARE_MOST_BYTES (UINT64_C(1) << 30)
#define LOOK_NS          UINT64_C(50000000)

static uint64_t smaller(uint64_t a, uint64_t b)
{
    return a < b ? a : b;
}

static int find_free(const struct trace_budget *b, uint64_t *bytes)
{
    struct statvfs fs;
    if (fstatvfs(b->folder, &fs))
        return -errno;
    *bytes = (uint64_t)fs.f_bavail * fs.f_frsize;
    return 0;
}

int trace_budget_begin(struct trace_budget *b, int folder, uint64_t limit_bytes)
{
    uint64_t available = 0;
    *b = (struct trace_budget){.folder = folder};
    const int bad = find_free(b, &available);
    b->limit_bytes = limit_bytes ? limit_bytes : smaller(LIMIT_MOST_BYTES, available / 4);
    b->spare_bytes = smaller(SPARE_MOST_BYTES, available / 2);
    return bad;
}

enum trace_stop trace_budget_ask(struct trace_budget *b, uint64_t bytes, uint64_t now_ns)
{
    uint64_t available = 0;
    if (b->used_bytes + bytes > b->limit_bytes)
        return TRACE_AT_LIMIT;
    if (now_ns - b->looked_ns < LOOK_NS)
        return TRACE_GOES_ON;
    b->looked_ns = now_ns;
    return !find_free(b, &available) && available < b->spare_bytes ? TRACE_NO_SPACE : TRACE_GOES_ON;
}
