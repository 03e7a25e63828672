/* SPDX-License-Identifier: BSD-2-Clause */
#include "machine/names.h"

#include <inttypes.h>

#include "base/buf.h"
#include "machine/session.h"

struct names {
    int unused;
};

struct names *names_new(void)
{
    return mem_alloc(sizeof(struct names));
}

void names_free(struct names *n)
{
    free(n);
}

void names_kernel(struct sys_session *s, struct table *t, uint32_t column, uint64_t address)
{
    struct buf b = BUF_INIT;
    (void)s;
    buf_printf(&b, "0x%" PRIx64, address);
    table_text(t, column, buf_str(&b));
    buf_release(&b);
}

static void stack(struct sys_session *s, struct table *t, uint32_t column, int id)
{
    uint64_t frames[SYS_STACK_DEPTH];
    unsigned n = sys_stack_frames(s, id, frames);
    struct buf b = BUF_INIT;
    for (unsigned i = 0; i < n; i++)
        buf_printf(&b, "0x%" PRIx64 "\n", frames[i]);
    if (n)
        table_text(t, column, buf_str(&b));
    buf_release(&b);
}

void names_kernel_stack(struct sys_session *s, struct table *t, uint32_t column, int id)
{
    stack(s, t, column, id);
}

void names_user_stack(struct sys_session *s, struct table *t, uint32_t column, int id, uint32_t pid)
{
    (void)pid;
    stack(s, t, column, id);
}

void names_gfp(struct sys_session *s, struct table *t, uint32_t column, uint64_t flags)
{
    struct buf b = BUF_INIT;
    (void)s;
    buf_printf(&b, "0x%" PRIx64, flags);
    table_text(t, column, buf_str(&b));
    buf_release(&b);
}

void names_cgroup(struct sys_session *s, struct table *t, uint32_t column, uint32_t container, uint64_t id,
                  uint32_t pid)
{
    (void)s, (void)container, (void)id, (void)pid, (void)column, (void)t;
}
