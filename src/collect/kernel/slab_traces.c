/* SPDX-License-Identifier: BSD-2-Clause */
#include "collect/kernel/slab_traces.h"

#include <ctype.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"

/* "kernfs_new_node+0x1f/0x60 [module] age=12 ..." up to the first word with "=", and without the size behind "/". */
static void add_code(struct buf *b, const char *at, size_t len)
{
    const char *end = at + len, *word = at;
    while (word < end) {
        const char *next = word + strcspn(word, " \n");
        const char *slash = memchr(word, '/', (size_t)(next - word));
        if (memchr(word, '=', (size_t)(next - word)))
            break;
        if (next > word)
            buf_printf(b, "%s%.*s", word > at ? " " : "", (int)((slash ? slash : next) - word), word);
        word = next + 1;
    }
}

static char *code_of(const char *at, size_t len)
{
    struct buf b = BUF_INIT;
    add_code(&b, at, len);
    char *code = mem_strdup(buf_str(&b));
    buf_release(&b);
    return code;
}

/* "   338 kernfs_new_node+0x1f/0x60 age=12/20/31 pid=0-1 cpus=0" */
static bool take_head(struct slab_traces *t, const char *cache, const char *line, size_t len)
{
    char *rest;
    const uint64_t objects = strtoull(line, &rest, 10);
    if (rest == line || *rest != ' ' || !objects)
        return false;
    struct slab_trace *trace = vec_push(&t->all);
    *trace = (struct slab_trace){.cache = mem_strdup(cache),
                                 .site = code_of(rest + 1, len - (size_t)(rest + 1 - line)),
                                 .stack = mem_strdup(""),
                                 .objects = objects};
    const char *age = memmem(line, len, " age=", 5);
    uint64_t mean;
    const int n =
        age ? sscanf(age, " age=%" SCNu64 "/%" SCNu64 "/%" SCNu64, &trace->age_min, &mean, &trace->age_max)
            : 0;
    if (n == 1)
        trace->age_max = trace->age_min;
    return true;
}

/* A line of the stack is indented by more than numbers are, and has no number. */
static void take_caller(struct slab_trace *trace, const char *line, size_t len)
{
    struct buf b = BUF_INIT;
    buf_printf(&b, "%s%s", trace->stack, *trace->stack ? "\n" : "");
    add_code(&b, line, len);
    free(trace->stack);
    trace->stack = buf_detach(&b);
}

void slab_traces_parse(struct slab_traces *t, const char *cache, const char *text)
{
    bool begun = false;
    for (const char *line = text; *line; line += *line == '\n') {
        const size_t len = strcspn(line, "\n"), blanks = strspn(line, " ");
        if (blanks < len && isdigit((unsigned char)line[blanks]))
            begun = take_head(t, cache, line + blanks, len - blanks);
        else if (blanks < len && begun)
            take_caller(&t->all.at[t->all.len - 1], line + blanks, len - blanks);
        line += len;
    }
}

void slab_traces_release(struct slab_traces *t)
{
    vec_each (struct slab_trace, trace, &t->all) {
        free(trace->cache);
        free(trace->site);
        free(trace->stack);
    }
    vec_release(&t->all);
}
