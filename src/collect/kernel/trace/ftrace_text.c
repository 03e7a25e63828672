/* SPDX-License-Identifier: BSD-2-Clause */
#include "collect/kernel/trace/ftrace_text.h"

#include <stdbool.h>
#include <string.h>

#include "collect/kernel/trace/ftrace_words.h"

#define CPU_MAX    65535u
#define HEAD_BYTES 64 /* in which the CPU begins: a name has 15 characters */

/* ---- the beginning of a line ---- */

/* "1200"; "-------" if it is not known. */
static void read_process(struct ftrace_text_span s, struct ftrace_text_line *out)
{
    uint64_t process;
    out->has_process = true;
    if (read_decimal(s, &process) && process <= INT32_MAX)
        out->process = (int32_t)process;
}

/* "bash-1234", "my prog-1234  (  1200)", "bash  1234", "bash 1200/1234". Names have blanks and dashes, too. */
static bool read_program(struct text t, struct ftrace_text_line *out)
{
    struct ftrace_text_span s = trim(t);
    out->has_process = false;
    out->process = 0;
    if (s.len && s.at[s.len - 1] == ')') { /* the process of the thread */
        const char *close = s.at + s.len - 1;
        while (s.len && s.at[s.len - 1] != '(')
            s.len--;
        read_process(trim((struct text){s.at + s.len, close}), out);
        s = trim((struct text){s.at, s.at + (s.len ? s.len - 1 : 0)});
    }
    size_t digits = 0;
    while (digits < s.len && is_digit(s.at[s.len - 1 - digits]))
        digits++;
    uint64_t pid;
    if (!read_decimal((struct ftrace_text_span){s.at + s.len - digits, digits}, &pid) || pid > INT32_MAX ||
        digits == s.len)
        return false;
    out->pid = (int32_t)pid;
    const char *end = s.at + s.len - digits - 1; /* at the dash, the blank, or the slash before the thread */
    if (*end != '-' && *end != ' ' && *end != '\t' && *end != '/')
        return false;
    if (*end == '/') {
        const char *slash = end;
        while (end > s.at && is_digit(end[-1]))
            end--;
        read_process((struct ftrace_text_span){end, (size_t)(slash - end)}, out);
    }
    out->comm = trim((struct text){s.at, end});
    return true;
}

/* "12.345678:" with any number of decimals. "12345678:" is of a clock that counts ticks or events, and not time. */
static bool read_time(struct ftrace_text_span s, struct ftrace_text_line *out)
{
    uint64_t seconds, rest = 0;
    if (s.len < 2 || s.at[s.len - 1] != ':')
        return false;
    s.len--;
    const char *dot = memchr(s.at, '.', s.len);
    out->is_ticks = !dot;
    if (!dot)
        return read_decimal(s, &out->time_ns);
    struct ftrace_text_span decimals = {dot + 1, (size_t)(s.at + s.len - dot - 1)};
    if (!read_decimal((struct ftrace_text_span){s.at, (size_t)(dot - s.at)}, &seconds) || decimals.len > 9 ||
        !read_decimal(decimals, &rest) || seconds > UINT64_MAX / 1000000001u)
        return false;
    for (size_t i = decimals.len; i < 9; i++)
        rest *= 10;
    out->time_ns = seconds * 1000000000u + rest;
    return true;
}

/* "d.h3.": the third character is about interrupts. Old kernels print four characters, some tools none. */
static bool read_flags_and_time(struct text *t, struct ftrace_text_line *out)
{
    struct ftrace_text_span word = take_word(t);
    if (read_time(word, out))
        return true;
    out->is_interrupt = word.len >= 3 && word.at[2] != '.' && memchr("hHsSzZ", word.at[2], 6) != NULL;
    return word.len <= 8 && read_time(take_word(t), out);
}

/*
 * "bash-1234 [001] d..1. 12.345678:", up to the colon, which `t` is behind then. Names of programs may have brackets,
 * too: those around the CPU's number have a program before them and a time behind.
 */
static bool read_head(struct text *t, struct ftrace_text_line *out)
{
    const char *last = t->end - t->at > HEAD_BYTES ? t->at + HEAD_BYTES : t->end;
    for (const char *at = t->at; at < last; at++) {
        uint64_t cpu;
        const char *close = *at == '[' ? memchr(at, ']', (size_t)(t->end - at)) : NULL;
        if (!close)
            continue;
        struct text after = {close + 1, t->end};
        if (read_decimal((struct ftrace_text_span){at + 1, (size_t)(close - at - 1)}, &cpu) &&
            cpu <= CPU_MAX && read_program((struct text){t->at, at}, out) &&
            read_flags_and_time(&after, out)) {
            out->cpu = (uint32_t)cpu;
            *t = after;
            return true;
        }
    }
    return false;
}

/* ---- events ---- */

static bool has(struct text t, const char *words)
{
    return memmem(t.at, (size_t)(t.end - t.at), words, strlen(words)) != NULL;
}

enum event_class { OBJECTS, PERCPU, PAGES, TASKS };

static const struct event {
    const char *name;
    enum event_class class;
    int kind; /* enum ftrace_text_kind of an object, enum page_event_kind of pages */
    bool is_kmalloc;
} events[] = {
    {"kmalloc", OBJECTS, FTRACE_TEXT_ALLOC, true},
    {"kfree", OBJECTS, FTRACE_TEXT_FREE, true},
    {"kmem_cache_alloc", OBJECTS, FTRACE_TEXT_ALLOC, false},
    {"kmem_cache_free", OBJECTS, FTRACE_TEXT_FREE, false},
    {"kmalloc_node", OBJECTS, FTRACE_TEXT_ALLOC, true},
    {"kmem_cache_alloc_node", OBJECTS, FTRACE_TEXT_ALLOC, false},
    {"percpu_alloc_percpu", PERCPU, FTRACE_TEXT_ALLOC, false},
    {"percpu_free_percpu", PERCPU, FTRACE_TEXT_FREE, false},
    {"mm_page_alloc", PAGES, PAGE_EVENT_ALLOC, false},
    {"mm_page_free", PAGES, PAGE_EVENT_FREE, false},
    {"mm_page_alloc_extfrag", PAGES, PAGE_EVENT_FALLBACK, false},
    {"task_newtask", TASKS, 0, false},
    {"task_rename", TASKS, 0, false},
};

/* "kmem:" and the like are what perf prints before the name. */
static const struct event *find_event(struct ftrace_text_span word)
{
    if (word.len < 2 || word.at[word.len - 1] != ':')
        return NULL;
    word.len--;
    const char *colon = memchr(word.at, ':', word.len);
    if (colon) {
        word.len -= (size_t)(colon + 1 - word.at);
        word.at = colon + 1;
    }
    for (size_t i = 0; i < sizeof(events) / sizeof(*events); i++)
        if (is_word(word, events[i].name))
            return &events[i];
    return NULL;
}

/* What an object's address may look like. */
static bool read_address(struct ftrace_text_span s, struct ftrace_text_line *out)
{
    out->address = 0;
    if (is_word(s, "(____ptrval____)")) {
        out->address_unknown = true;
        return true;
    }
    return is_word(s, "(nil)") || is_word(s, "(null)") || read_hex(s, &out->address);
}

enum { HAS_SITE = 1, HAS_ADDRESS = 2, HAS_REQUESTED = 4, HAS_ALLOCATED = 8 };

/* Nothing of interest can follow. */
static bool is_complete(unsigned has, const struct ftrace_text_line *l)
{
    const bool allocates = l->kind == FTRACE_TEXT_ALLOC;
    const unsigned all = (allocates || !l->is_percpu ? HAS_SITE : 0) | HAS_ADDRESS |
                         (allocates ? HAS_REQUESTED | HAS_ALLOCATED : 0);
    return (has & all) == all && (!allocates || l->gfp.len) &&
           (l->is_percpu || (allocates && l->is_kmalloc) || l->cache.len != 0);
}

static unsigned read_field(struct ftrace_text_span key, struct ftrace_text_span value,
                           struct ftrace_text_line *out)
{
    if (is_word(key, "call_site")) {
        if (!value.len)
            return 0; /* what stood before remains */
        out->call_site = value;
        return HAS_SITE;
    }
    if (is_word(key, "ptr"))
        return read_address(value, out) ? HAS_ADDRESS : 0;
    if (is_word(key, out->is_percpu ? "size" : "bytes_req"))
        return read_decimal(value, &out->requested_bytes) ? HAS_REQUESTED : 0;
    if (is_word(key, "bytes_alloc"))
        return read_decimal(value, &out->allocated_bytes) ? HAS_ALLOCATED : 0;
    if (is_word(key, "name"))
        out->cache = value;
    else if (is_word(key, "gfp_flags"))
        out->gfp = value;
    return 0;
}

/*
 * "call_site=... ptr=... ", each a word, but for the module behind a call's name: "ext4_alloc+0x1/0x2 [ext4]". Old
 * kernels print blanks before "(null)". trace-cmd prints "(alloc_pipe_info+0x4a)" before the fields.
 */
static void read_fields(struct text *t, struct ftrace_text_line *out)
{
    unsigned has = 0;
    while (!is_complete(has, out)) {
        const struct ftrace_text_span word = take_word(t);
        if (!word.len)
            break;
        const char *equal = memchr(word.at, '=', word.len);
        const bool is_behind_call =
            out->call_site.len && out->call_site.at + out->call_site.len + 1 == word.at;
        if (!equal && word.at[0] == '[' && is_behind_call) {
            const char *close =
                memchr(word.at, ']', (size_t)(t->end - word.at)); /* "[ext4 1f2e3d]" has a build id */
            out->call_site.len += 1 + (close ? (size_t)(close + 1 - word.at) : word.len);
        } else if (!equal && word.len > 2 && word.at[0] == '(' && word.at[word.len - 1] == ')' && !has) {
            out->name = (struct ftrace_text_span){word.at + 1, word.len - 2};
        }
        if (!equal)
            continue;
        const struct ftrace_text_span key = {word.at, (size_t)(equal - word.at)};
        struct ftrace_text_span value = {equal + 1, (size_t)(word.at + word.len - equal - 1)};
        if (!value.len && is_word(key, "ptr"))
            value = take_word(t);
        has |= read_field(key, value, out);
    }
    const bool allocates = out->kind == FTRACE_TEXT_ALLOC;
    const unsigned needed = (allocates || !out->is_percpu ? HAS_SITE : 0) | HAS_ADDRESS |
                            (allocates ? HAS_REQUESTED | (out->is_percpu ? HAS_ALLOCATED : 0) : 0);
    if ((has & needed) != needed)
        out->kind = FTRACE_TEXT_BROKEN;
    out->no_allocated_bytes = out->kind == FTRACE_TEXT_ALLOC && allocates && !(has & HAS_ALLOCATED);
    if (out->no_allocated_bytes)
        out->allocated_bytes = out->requested_bytes;
}

/* "0x1f2e3", and of old kernels "127715". */
static bool read_frame(struct ftrace_text_span s, uint64_t *out)
{
    return s.len > 2 && s.at[1] == 'x' ? read_hex(s, out) : read_decimal(s, out);
}

static bool read_small(struct ftrace_text_span s, uint32_t *out)
{
    uint64_t value;
    if (!read_decimal(s, &value) || value > UINT8_MAX)
        return false;
    *out = (uint32_t)value;
    return true;
}

enum { HAS_FRAME = 1, HAS_ORDER = 2, HAS_TYPE = 4, HAS_NO_PAGE = 8 };

static unsigned read_page_field(struct ftrace_text_span key, struct ftrace_text_span value,
                                struct page_event *out)
{
    const bool fallback = out->kind == PAGE_EVENT_FALLBACK;
    struct ftrace_text_line page;
    if (is_word(key, "pfn"))
        return read_frame(value, &out->frame) ? HAS_FRAME : 0;
    if (is_word(key, fallback ? "alloc_order" : "order"))
        return read_small(value, &out->order) ? HAS_ORDER : 0;
    if (out->kind != PAGE_EVENT_FREE && is_word(key, fallback ? "alloc_migratetype" : "migratetype"))
        return read_small(value, &out->migrate_type) ? HAS_TYPE : 0;
    page.address_unknown = false;
    return is_word(key, "page") && read_address(value, &page) && !page.address && !page.address_unknown
               ? HAS_NO_PAGE
               : 0;
}

/* "page=00000000a1b2c3d4 pfn=0x1f2e3 order=0 migratetype=1 gfp_flags=...". Of a failed allocation there is no page. */
static void read_pages(struct text *t, enum page_event_kind kind, struct ftrace_text_line *out)
{
    const unsigned all = HAS_FRAME | HAS_ORDER | (kind == PAGE_EVENT_FREE ? 0 : HAS_TYPE);
    unsigned has = 0;
    out->pages = (struct page_event){.kind = kind, .migrate_type = PAGE_EVENT_NO_TYPE};
    while ((has & all) != all || (kind == PAGE_EVENT_ALLOC && !out->gfp.len)) {
        const struct ftrace_text_span word = take_word(t);
        if (!word.len)
            break;
        const char *equal = memchr(word.at, '=', word.len);
        if (!equal)
            continue;
        struct ftrace_text_span value = {equal + 1, (size_t)(word.at + word.len - equal - 1)};
        if (!value.len) /* old kernels print blanks before "(null)" */
            value = take_word(t);
        const struct ftrace_text_span key = {word.at, (size_t)(equal - word.at)};
        has |= read_page_field(key, value, &out->pages);
        if (is_word(key, "gfp_flags"))
            out->gfp = value;
    }
    if (has & HAS_NO_PAGE && kind == PAGE_EVENT_ALLOC)
        out->pages.frame = PAGE_EVENT_NO_FRAME;
    out->pages.pid = out->pid;
    out->pages.context = out->is_interrupt;
    out->kind = (has & all) == all ? FTRACE_TEXT_PAGES : FTRACE_TEXT_BROKEN;
}

/* What is between two words; empty: they are not there. */
static struct ftrace_text_span between(struct text t, const char *first, const char *second)
{
    struct ftrace_text_span found = {t.at, 0};
    const char *at = memmem(t.at, (size_t)(t.end - t.at), first, strlen(first));
    const char *begin = at ? at + strlen(first) : NULL;
    const char *end = at ? memmem(begin, (size_t)(t.end - begin), second, strlen(second)) : NULL;
    return end ? (struct ftrace_text_span){begin, (size_t)(end - begin)} : found;
}

/*
 * "pid=12 comm=a b clone_flags=1200000 oom_score_adj=0" and "pid=12 oldcomm=a newcomm=b oom_score_adj=0"; from 6.14 to
 * 6.19 the latter has no pid: a thread renames itself.
 */
static void read_task(struct text t, struct ftrace_text_line *out)
{
    uint64_t pid = (uint64_t)out->pid;
    const bool renamed = has(t, " newcomm=") || has(t, "oldcomm=");
    const struct ftrace_text_span number = between(t, "pid=", " ");
    out->task_comm =
        renamed ? between(t, " newcomm=", " oom_score_adj=") : between(t, " comm=", " clone_flags=");
    if (number.len && !read_decimal(number, &pid))
        pid = UINT64_MAX;
    out->task_pid = (int32_t)pid;
    out->kind = out->task_comm.len && pid <= INT32_MAX ? FTRACE_TEXT_TASK : FTRACE_TEXT_EVENT;
}

/* ---- other lines ---- */

/* The first number behind these words. False: they are not there. */
static bool number_behind(struct text t, const char *words, uint64_t *out)
{
    const char *at = memmem(t.at, (size_t)(t.end - t.at), words, strlen(words));
    *out = 0;
    if (!at)
        return false;
    for (at += strlen(words); at < t.end && !is_digit(*at); at++)
        ;
    for (; at < t.end && is_digit(*at) && *out < UINT64_MAX / 10 - 1; at++)
        *out = 10 * *out + (uint64_t)(*at - '0');
    return true;
}

/*
 * "CPU:2 [LOST 1234 EVENTS]" and "CPU:2 [LOST EVENTS]" of the kernel, "CPU:2 [1234 EVENTS DROPPED]" and
 * "CPU:2 [EVENTS DROPPED]" of trace-cmd, "PERF_RECORD_LOST lost 1234" of perf; and in the header of `trace`, what was
 * overwritten: "# entries-in-buffer/entries-written: 100/300   #P:2". trace-cmd begins with "cpus=2".
 */
static bool read_lost(struct text t, struct ftrace_text_line *out)
{
    uint64_t kept, written, cpus = 0;
    if (number_behind(t, "#P:", &cpus) || (t.end - t.at < 16 && number_behind(t, "cpus=", &cpus)))
        out->cpus = cpus <= CPU_MAX ? (uint32_t)cpus : 0;
    if (number_behind(t, "entries-in-buffer/entries-written:", &kept)) {
        if (!number_behind(t, "/entries-written:", &written) || !number_behind(t, "/", &written))
            return false;
        const char *slash = memrchr(t.at, '/', (size_t)(t.end - t.at));
        number_behind((struct text){slash, t.end}, "/", &written);
        out->lost = written > kept ? written - kept : 0;
        out->kind = out->lost ? FTRACE_TEXT_LOST : FTRACE_TEXT_OTHER;
        return true;
    }
    if (!(has(t, "[LOST ") && number_behind(t, "[LOST ", &out->lost)) &&
        !(has(t, "EVENTS DROPPED]") && number_behind(t, "[", &out->lost)) &&
        !number_behind(t, "PERF_RECORD_LOST lost ", &out->lost))
        return false;
    out->kind = FTRACE_TEXT_LOST;
    return true;
}

/* " => alloc_pipe_info+0x4a/0x1c0"; trace-cmd: "=> alloc_pipe_info (ffffffff81234567)". */
static bool read_caller(struct text t, struct ftrace_text_line *out)
{
    skip_blanks(&t);
    if (t.end - t.at < 3 || t.at[0] != '=' || t.at[1] != '>')
        return false;
    t.at += 2;
    const char *address = memmem(t.at, (size_t)(t.end - t.at), " (", 2);
    if (address)
        t.end = address;
    out->kind = FTRACE_TEXT_CALLER;
    out->call_site = trim(t);
    return true;
}

/* Words of a kmem event in a line that has another form. */
static bool looks_like_one(struct text t)
{
    return has(t, "call_site=") && has(t, "ptr=");
}

static void read_known(struct text *t, const struct event *e, struct ftrace_text_line *out)
{
    switch (e->class) {
    case PAGES:
        read_pages(t, (enum page_event_kind)e->kind, out);
        break;
    case TASKS:
        read_task(*t, out);
        break;
    default:
        out->kind = (enum ftrace_text_kind)e->kind;
        out->is_kmalloc = e->is_kmalloc;
        out->is_percpu = e->class == PERCPU;
        read_fields(t, out);
    }
}

void ftrace_text_read(const char *line, size_t len, struct ftrace_text_line *out)
{
    struct text rest = {line, line + len};
    *out = (struct ftrace_text_line){.kind = FTRACE_TEXT_OTHER};
    if (len && line[len - 1] == '\r')
        rest.end--;
    if (!len || read_caller(rest, out) || (line[0] == '#' && !has(rest, "entries-written:")))
        return;
    struct ftrace_text_line found = *out;
    struct text event = rest;
    if (!read_head(&event, &found)) {
        if (!read_lost(rest, out) && looks_like_one(rest))
            out->kind = FTRACE_TEXT_BROKEN;
        return;
    }
    *out = found;
    out->kind = FTRACE_TEXT_EVENT;
    skip_blanks(&event);
    struct text words = event;
    const struct ftrace_text_span word = take_word(&event);
    const struct event *known = find_event(word);
    if (is_word(word, "<stack") || is_word(word, "kernel_stack:"))
        out->kind = FTRACE_TEXT_STACK;
    else if (known)
        read_known(&event, known, out);
    else if (!read_lost(words, out) && looks_like_one(words))
        out->kind = FTRACE_TEXT_BROKEN;
}
