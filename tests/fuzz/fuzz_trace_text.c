/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Fuzz target of src/collect/kernel/trace/ftrace_text: whatever a line of a trace says, every text that is found in it
 * lies in it, and an event has what an event must have.
 */
#include "require.h"

#include "collect/kernel/trace/ftrace_text.h"

#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static bool is_in(struct ftrace_text_span s, const char *line, size_t len)
{
    return !s.len || (s.at >= line && s.at + s.len <= line + len);
}

static void read_one(const char *line, size_t len)
{
    struct ftrace_text_line l;
    ftrace_text_read(line, len, &l);
    require(is_in(l.comm, line, len) && is_in(l.call_site, line, len) && is_in(l.cache, line, len) &&
                is_in(l.task_comm, line, len),
            "a text outside the line");
    if (l.kind == FTRACE_TEXT_ALLOC || l.kind == FTRACE_TEXT_FREE) {
        const bool needs_call = l.kind == FTRACE_TEXT_ALLOC || !l.is_percpu;
        require((l.call_site.len || !needs_call) && l.pid >= 0, "an event without a call or a thread");
        require(!l.no_allocated_bytes || l.allocated_bytes == l.requested_bytes,
                "allocated bytes from nowhere");
    }
    if (l.kind == FTRACE_TEXT_TASK)
        require(l.task_comm.len && l.task_pid >= 0, "a thread without name or number");
    if (l.kind == FTRACE_TEXT_PAGES)
        require((l.pages.migrate_type == PAGE_EVENT_NO_TYPE) == (l.pages.kind == PAGE_EVENT_FREE) &&
                    l.pages.order <= UINT8_MAX,
                "pages without type or order");
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    while (size) {
        const uint8_t *newline = memchr(data, '\n', size);
        const size_t len = newline ? (size_t)(newline - data) : size;
        char *line = malloc(len + !len); /* the end is where the sanitizer sees it */
        memcpy(line, data, len);
        read_one(line, len);
        free(line);
        data += len + (newline != NULL);
        size -= len + (newline != NULL);
    }
    return 0;
}
