/* SPDX-License-Identifier: BSD-2-Clause */
#include "agent/sites/sites_unload.h"

#include <stdint.h>

#include "agent/hooks/cold.h"
#include "agent/hooks/resolve.h"
#include "agent/process.h"
#include "agent/sites/sites.h"
#include "agent/tracer/tracer.h"
#include "agent/tracer/tracer_life.h"
#include "agent/tracer/tracer_sum.h"
#include "base/sigsafe/atomic.h"
#include "base/sigsafe/str.h"

static int (*next_dlclose)(void *);
/* number of dlclose() calls in progress: a site that a destructor of the library uses must not become hot */
static uint32_t under_way;

void sites_find_next(void)
{
    next_dlclose = (int (*)(void *))resolve_next("dlclose", NULL);
}

/* libc unloads its modules for character sets (gconv) without the exported dlclose(), so the agent does not notice. */
bool sites_unload_is_noticed(const struct unwind_module *m)
{
    return m->permanent || (next_dlclose && !load_acquire(&under_way) && !text_find(m->name, "/gconv/"));
}

EXPORT int dlclose(void *handle)
{
    if (unlikely(!next_dlclose))
        boot_agent();
    __atomic_fetch_add(&under_way, 1, __ATOMIC_SEQ_CST);
    sites_forget_unloadable();
    tracer_sum_forget_unloadable();
    int result = next_dlclose(handle);
    tracer_forget_sites();
    tracer_life_modules_unloaded();
    __atomic_fetch_sub(&under_way, 1, __ATOMIC_SEQ_CST);
    return result;
}
