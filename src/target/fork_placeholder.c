/* SPDX-License-Identifier: BSD-2-Clause */
#include "target/fork_placeholder.h"

#include <stddef.h>
#include <sys/mman.h>

#include "base/sigsafe/syscall.h"
#include "target/process_image.h"
#include "wire/headroom.h"

struct part {
    const char *at;
    uint64_t bytes; /* 0: no such part */
};

static struct part noted[FORK_PLACEHOLDER_PARTS];
static struct part put[FORK_PLACEHOLDER_FORKS][FORK_PLACEHOLDER_PARTS]; /* mapped by the last forks */
static unsigned turn;

void fork_placeholder_note(unsigned part, const void *at, uint64_t bytes)
{
    noted[part] = (struct part){at, (bytes + LEDGER_PAGE_BYTES - 1) & -(uint64_t)LEDGER_PAGE_BYTES};
}

static bool any_noted(void)
{
    for (unsigned i = 0; i < FORK_PLACEHOLDER_PARTS; i++)
        if (noted[i].bytes)
            return true;
    return false;
}

static bool map_at(const struct part *p)
{
    return p->bytes &&
           !sys_failed(sys_call(SYS_mmap, p->at, p->bytes, PROT_READ | PROT_WRITE,
                                MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED_NOREPLACE, -1, 0));
}

unsigned fork_placeholder_put(void)
{
    unsigned mapped = 0;
    if (!any_noted() || !headroom_may_call(&process.ledger.sealed))
        return 0;
    turn = (turn + 1) % FORK_PLACEHOLDER_FORKS;
    for (unsigned i = 0; i < FORK_PLACEHOLDER_PARTS; i++) {
        struct part *p = &put[turn][i];
        if (p->bytes)
            sys_call(SYS_munmap, p->at, p->bytes);
        bool is = map_at(&noted[i]);
        *p = is ? noted[i] : (struct part){NULL, 0};
        mapped |= (unsigned)is << i;
    }
    return mapped;
}
