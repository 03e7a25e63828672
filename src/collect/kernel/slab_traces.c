/* SPDX-License-Identifier: BSD-2-Clause */
#include "collect/kernel/slab_traces.h"

#include <ctype.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/hash_map.h"

/* "kernfs_new_node+0x1f/0x60 [module] age=12 ..." up to the first word with "="; without sizes, what is behind "/" is
 * left out. */
static void add_code(struct buf *b, const char *at, size_t len, bool sizes)
{
    const char *end = at + len, *word = at;
    while (word < end) {
        const char *next = word + strcspn(word, " \n");
        const char *slash = sizes ? NULL : memchr(word, '/', (size_t)(next - word));
        if (memchr(word, '=', (size_t)(next - word)))
            break;
        if (!sizes && !strncmp(word, "0x", 2)) /* an address is no name */
            buf_printf(b, "%s[unknown]", word > at ? " " : "");
        else if (next > word)
            buf_printf(b, "%s%.*s", word > at ? " " : "", (int)((slash ? slash : next) - word), word);
        word = next + 1;
    }
}

static char *code_of(const char *at, size_t len, bool sizes)
{
    struct buf b = BUF_INIT;
    add_code(&b, at, len, sizes);
    char *code = mem_strdup(buf_str(&b));
    buf_release(&b);
    return code;
}

/* Returns the word behind " age=" and its length, or NULL. */
static const char *word_of(const char *line, size_t len, const char *key, size_t *n)
{
    const char *at = memmem(line, len, key, strlen(key));
    if (!at)
        return NULL;
    at += strlen(key);
    *n = strcspn(at, " \n");
    return at;
}

static char *text_of(const char *line, size_t len, const char *key)
{
    size_t n = 0;
    const char *at = word_of(line, len, key, &n);
    return at ? mem_strndup(at, n) : mem_strdup("");
}

/* " age=12/20/31 pid=0-1 cpus=0 nodes=0", where equal numbers are one. */
static void take_rest(struct slab_trace *trace, const char *line, size_t len)
{
    size_t ignored;
    const char *age = word_of(line, len, " age=", &ignored), *pid = word_of(line, len, " pid=", &ignored),
               *waste = word_of(line, len, " waste=", &ignored);
    if (age && sscanf(age, "%" SCNu64 "/%" SCNu64 "/%" SCNu64, &trace->age_min, &trace->age_mean,
                      &trace->age_max) == 1)
        trace->age_mean = trace->age_max = trace->age_min;
    if (pid && sscanf(pid, "%" SCNu64 "-%" SCNu64, &trace->pid_min, &trace->pid_max) == 1)
        trace->pid_max = trace->pid_min;
    if (waste)
        trace->waste_bytes = strtoull(waste, NULL, 10);
    trace->cpus = text_of(line, len, " cpus=");
    trace->nodes = text_of(line, len, " nodes=");
}

/* "   338 kernfs_new_node+0x1f/0x60 age=12/20/31 pid=0-1 cpus=0" */
static bool take_head(struct slab_traces *t, const char *cache, bool is_freed, const char *line, size_t len)
{
    char *rest;
    const uint64_t objects = strtoull(line, &rest, 10);
    if (rest == line || *rest != ' ' || !objects)
        return false;
    struct slab_trace *trace = vec_push(&t->all);
    *trace = (struct slab_trace){.cache = mem_strdup(cache),
                                 .site = code_of(rest + 1, len - (size_t)(rest + 1 - line), t->code_sizes),
                                 .stack = mem_strdup(""),
                                 .objects = objects,
                                 .is_freed = is_freed};
    take_rest(trace, line, len);
    return true;
}

/* A line of the stack has no number before it. */
static void take_caller(struct slab_trace *trace, const char *line, size_t len, bool sizes)
{
    struct buf b = BUF_INIT;
    buf_printf(&b, "%s%s", trace->stack, *trace->stack ? "\n" : "");
    add_code(&b, line, len, sizes);
    free(trace->stack);
    trace->stack = buf_detach(&b);
}

/* Not "0xffffffffc02150c2", a caller in code of a module that is gone. */
static bool has_number(const char *text)
{
    const size_t digits = strspn(text, "0123456789");
    return digits && text[digits] != 'x';
}

#define NOTHING "No data"

void slab_traces_parse(struct slab_traces *t, const char *cache, bool is_freed, const char *text)
{
    bool begun = false;
    for (const char *line = text; *line; line += *line == '\n') {
        const size_t len = strcspn(line, "\n"), blanks = strspn(line, " ");
        if (has_number(line + blanks)) {
            begun = take_head(t, cache, is_freed, line + blanks, len - blanks);
            t->broken += !begun;
        } else if (blanks < len && begun) {
            take_caller(&t->all.at[t->all.len - 1], line + blanks, len - blanks, t->code_sizes);
        } else {
            t->broken += blanks < len && strncmp(line, NOTHING, strlen(NOTHING)) != 0;
        }
        line += len;
    }
}

bool slab_traces_is_text(const char *text, size_t len)
{
    const char *end = memchr(text, '\n', len);
    const size_t n = end ? (size_t)(end - text) : len;
    size_t at = 0;
    while (at < n && text[at] == ' ')
        at++;
    const size_t digits = at;
    while (at < n && isdigit((unsigned char)text[at]))
        at++;
    return at > digits && at < n && text[at] == ' ' && memmem(text + at, n - at, " age=", 5);
}

bool slab_traces_name(const char *path, char *cache, size_t room)
{
    const char *name = strrchr(path, '/'), *before = name;
    while (before && before > path && before[-1] != '/')
        before--;
    const bool is_file = name && (!strncmp(name + 1, "alloc_", 6) || !strncmp(name + 1, "free_", 5));
    snprintf(cache, room, "%.*s", is_file ? (int)(name - before) : 0, is_file ? before : "");
    return !strncmp(name ? name + 1 : path, "free_", 5);
}

/* ---- sizes ---- */

/* "kmalloc-1k", "kmalloc-cg-96", "dma-kmalloc-2M": what an object may hold is in the name. */
static uint64_t kmalloc_bytes(const char *cache)
{
    char *end;
    const char *number = strrchr(cache, '-');
    if (!strstr(cache, "kmalloc-") || !number || !isdigit((unsigned char)number[1]))
        return 0;
    const uint64_t n = strtoull(number + 1, &end, 10), unit = *end == 'k'   ? 1u << 10
                                                              : *end == 'M' ? 1u << 20
                                                                            : 1;
    return end[unit > 1] || n > UINT32_MAX ? 0 : n * unit;
}

static void find_named(struct map *sizes, const char *slab)
{
    static const char key[] = "\tobject_size\t";
    for (const char *line = slab; *line; line += *line == '\n') {
        const size_t len = strcspn(line, "\n");
        const char *at = memmem(line, len, key, sizeof(key) - 1);
        if (at)
            map_put(sizes, line, (size_t)(at - line), (size_t)strtoull(at + sizeof(key) - 1, NULL, 10), NULL);
        line += len;
    }
}

void slab_traces_find_sizes(struct slab_traces *t, const char *slab)
{
    struct map sizes = {0};
    find_named(&sizes, slab ? slab : "");
    vec_each (struct slab_trace, trace, &t->all) {
        const size_t found = map_get(&sizes, trace->cache, strlen(trace->cache));
        if (!trace->object_bytes && found != MAP_NONE)
            trace->object_bytes = found <= UINT32_MAX ? found : 0;
        if (!trace->object_bytes)
            trace->object_bytes = kmalloc_bytes(trace->cache);
    }
    map_release(&sizes);
}

void slab_traces_release(struct slab_traces *t)
{
    vec_each (struct slab_trace, trace, &t->all) {
        free(trace->cache);
        free(trace->site);
        free(trace->stack);
        free(trace->cpus);
        free(trace->nodes);
    }
    vec_release(&t->all);
}
