/* SPDX-License-Identifier: BSD-2-Clause */
#include "collect/kernel/state/memory_parse.h"

static const char *text_of_state(void *arg, const char *path)
{
    return kernel_state_text(arg, path);
}

void memory_parse_state(struct memory_state *s, const struct kernel_state *texts, uint64_t page_bytes)
{
    memory_parse(s, text_of_state, (void *)(uintptr_t)texts, page_bytes);
}
