/* SPDX-License-Identifier: BSD-2-Clause */
#include "tag/tags_met.h"

#include <sys/mman.h>

#include "base/sigsafe/syscall.h"
#include "target/vm_reserve.h"

#define BYTES (TAGS_MET_MOST * sizeof(struct tag_met))

struct tag_met *tags_met;
static struct vm_array extent = {.record_bytes = sizeof(struct tag_met), .most = TAGS_MET_MOST};

/* If vm_reserve() refuses, for example because address space is limited, maps the array, a few MiB, as writable. */
void tags_met_begin(void)
{
    tags_met = vm_reserve(BYTES, false);
    if (tags_met)
        return;
    long p = sys_call(SYS_mmap, 0, BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    tags_met = sys_failed(p) ? NULL : (struct tag_met *)p;
    extent.writable = TAGS_MET_MOST;
}

bool tags_met_reach(uint32_t account)
{
    return vm_array_reach(&extent, tags_met, account);
}
