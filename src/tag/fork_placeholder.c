/* SPDX-License-Identifier: BSD-2-Clause */
#include "tag/fork_placeholder.h"

#include <pthread.h>
#include <sys/mman.h>
#include <sys/prctl.h>

#include "base/sigsafe/syscall.h"
#include "tag/tag_ledger.h"
#include "target/object_map.h"

/* What is written to while an event is booked: the header, records of tags, and counts. */
#define PARTS 3

struct part {
    const char *at;
    uint64_t bytes; /* 0: there is none */
};

static struct part parents[PARTS], put[PARTS];

static void note(struct part *p, const void *at, uint64_t bytes)
{
    *p = (struct part){at, (bytes + LEDGER_PAGE_BYTES - 1) & -(uint64_t)LEDGER_PAGE_BYTES};
}

static void before_fork(void)
{
    const struct ledger_header *h = tag_ledger.header;
    __builtin_memset(parents, 0, sizeof(parents));
    if (!tag_ledger_is_ours())
        return;
    note(&parents[0], h, LEDGER_HEADER_BYTES);
    note(&parents[1], tag_ledger.regions[LEDGER_TAGS], h->regions[LEDGER_TAGS].ready_bytes);
    note(&parents[2], tag_ledger.regions[LEDGER_ACCOUNTS], h->regions[LEDGER_ACCOUNTS].ready_bytes);
}

/* The words of the thread that forked are its parent's, also once another one has begun the child's books. */
static void leave_words(void)
{
    if (!tag_ledger_is_ours())
        allium_thread.objects = object_map_none;
}

static void in_child(void)
{
    leave_words();
    if (sys_call(SYS_prctl, PR_GET_SECCOMP, 0, 0, 0, 0))
        return;
    for (int i = 0; i < PARTS; i++) {
        if (put[i].bytes)
            sys_call(SYS_munmap, put[i].at, put[i].bytes);
        bool is =
            parents[i].bytes &&
            !sys_failed(sys_call(SYS_mmap, parents[i].at, parents[i].bytes, PROT_READ | PROT_WRITE,
                                 MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED_NOREPLACE, -1, 0));
        put[i] = is ? parents[i] : (struct part){0};
    }
}

void fork_placeholder_begin(void)
{
    pthread_atfork(before_fork, NULL, in_child);
}
