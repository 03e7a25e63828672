/* SPDX-License-Identifier: BSD-2-Clause */
#include "collect/kernel/trace/ftrace_text.h"

#include <stdbool.h>
#include <string.h>

#define CPU_MAX 65535u

/* What is left of a line. */
struct text {
    const char *at, *end;
};

static bool is_digit(char c)
{
    return c >= '0' && c <= '9';
}

static void skip_blanks(struct text *t)
{
    while (t->at < t->end && (*t->at == ' ' || *t->at == '\t'))
        t->at++;
}

/* Takes the characters up to the next blank. */
static struct ftrace_text_span take_word(struct text *t)
{
    skip_blanks(t);
    const char *begin = t->at;
    while (t->at < t->end && *t->at != ' ' && *t->at != '\t')
        t->at++;
    return (struct ftrace_text_span){begin, (size_t)(t->at - begin)};
}

static bool is_word(struct ftrace_text_span s, const char *word)
{
    return s.len == strlen(word) && !memcmp(s.at, word, s.len);
}

/* Reads a decimal number that is the whole of the span. */
static bool read_decimal(struct ftrace_text_span s, uint64_t *out)
{
    uint64_t value = 0;
    for (size_t i = 0; i < s.len; i++) {
        if (!is_digit(s.at[i]) || value > (UINT64_MAX - 9) / 10)
            return false;
        value = 10 * value + (uint64_t)(s.at[i] - '0');
    }
    *out = value;
    return s.len != 0;
}

/* Reads a number of 16 digits at most, with "0x" or without. */
static bool read_hex(struct ftrace_text_span s, uint64_t *out)
{
    uint64_t value = 0;
    if (s.len > 2 && s.at[0] == '0' && (s.at[1] == 'x' || s.at[1] == 'X')) {
        s.at += 2;
        s.len -= 2;
    }
    for (size_t i = 0; i < s.len; i++) {
        const char c = s.at[i];
        const int digit = is_digit(c)            ? c - '0'
                          : c >= 'a' && c <= 'f' ? c - 'a' + 10
                          : c >= 'A' && c <= 'F' ? c - 'A' + 10
                                                 : -1;
        if (digit < 0)
            return false;
        value = value << 4 | (unsigned)digit;
    }
    *out = value;
    return s.len && s.len <= 16;
}

/* ---- the beginning of a line ---- */

static struct ftrace_text_span trim(struct text t)
{
    skip_blanks(&t);
    while (t.end > t.at && (t.end[-1] == ' ' || t.end[-1] == '\t'))
        t.end--;
    return (struct ftrace_text_span){t.at, (size_t)(t.end - t.at)};
}

/* "bash-1234", "my prog-1234  (  1200)", "bash  1234", "bash 1200/1234". Names have blanks and dashes, too. */
static bool read_program(struct text t, struct ftrace_text_line *out)
{
    struct ftrace_text_span s = trim(t);
    if (s.len && s.at[s.len - 1] == ')') { /* the process of the thread */
        while (s.len && s.at[s.len - 1] != '(')
            s.len--;
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
    if (*end == '/')
        while (end > s.at && is_digit(end[-1]))
            end--;
    out->comm = trim((struct text){s.at, end});
    return true;
}

/* "12.345678:" with any number of decimals; "12345678:" of a clock that counts nanoseconds. */
static bool read_time(struct ftrace_text_span s, uint64_t *out)
{
    uint64_t seconds, rest = 0;
    if (s.len < 2 || s.at[s.len - 1] != ':')
        return false;
    s.len--;
    const char *dot = memchr(s.at, '.', s.len);
    if (!dot)
        return read_decimal(s, out);
    struct ftrace_text_span decimals = {dot + 1, (size_t)(s.at + s.len - dot - 1)};
    if (!read_decimal((struct ftrace_text_span){s.at, (size_t)(dot - s.at)}, &seconds) || decimals.len > 9 ||
        !read_decimal(decimals, &rest) || seconds > UINT64_MAX / 1000000001u)
        return false;
    for (size_t i = decimals.len; i < 9; i++)
        rest *= 10;
    *out = seconds * 1000000000u + rest;
    return true;
}

/* "d.h3.": the third character is about interrupts. Old kernels print four characters, some tools none. */
static bool read_flags_and_time(struct text *t, struct ftrace_text_line *out)
{
    struct ftrace_text_span word = take_word(t);
    if (read_time(word, &out->time_ns))
        return true;
    out->is_interrupt = word.len >= 3 && word.at[2] != '.' && memchr("hHsSzZ", word.at[2], 6) != NULL;
    return word.len <= 8 && read_time(take_word(t), &out->time_ns);
}

/*
 * "bash-1234 [001] d..1. 12.345678:", up to the colon, which `t` is behind then. Names of programs may have brackets,
 * too: those around the CPU's number have a program before them and a time behind.
 */
static bool read_head(struct text *t, struct ftrace_text_line *out)
{
    for (const char *at = t->at; at < t->end; at++) {
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

static const struct {
    const char *name;
    bool allocates, is_kmalloc;
} events[] = {
    {"kmalloc", true, true},           {"kfree", false, true},       {"kmem_cache_alloc", true, false},
    {"kmem_cache_free", false, false}, {"kmalloc_node", true, true}, {"kmem_cache_alloc_node", true, false},
};

static bool read_event(struct ftrace_text_span word, struct ftrace_text_line *out)
{
    static const char group[] = "kmem:";
    if (word.len < 2 || word.at[word.len - 1] != ':')
        return false;
    word.len--;
    if (word.len > strlen(group) && !memcmp(word.at, group, strlen(group))) {
        word.at += strlen(group);
        word.len -= strlen(group);
    }
    for (size_t i = 0; i < sizeof(events) / sizeof(*events); i++)
        if (is_word(word, events[i].name)) {
            out->kind = events[i].allocates ? FTRACE_TEXT_ALLOC : FTRACE_TEXT_FREE;
            out->is_kmalloc = events[i].is_kmalloc;
            return true;
        }
    return false;
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

static unsigned read_field(struct ftrace_text_span key, struct ftrace_text_span value,
                           struct ftrace_text_line *out)
{
    if (is_word(key, "call_site")) {
        out->call_site = value;
        return value.len ? HAS_SITE : 0;
    }
    if (is_word(key, "ptr"))
        return read_address(value, out) ? HAS_ADDRESS : 0;
    if (is_word(key, "bytes_req"))
        return read_decimal(value, &out->requested_bytes) ? HAS_REQUESTED : 0;
    if (is_word(key, "bytes_alloc"))
        return read_decimal(value, &out->allocated_bytes) ? HAS_ALLOCATED : 0;
    if (is_word(key, "name"))
        out->cache = value;
    return 0;
}

/* "call_site=... ptr=... ", each a word, but for the module behind a call's name: "ext4_alloc+0x1/0x2 [ext4]". */
static void read_fields(struct text *t, struct ftrace_text_line *out)
{
    unsigned has = 0;
    for (;;) {
        struct ftrace_text_span word = take_word(t);
        if (!word.len)
            break;
        const char *equal = memchr(word.at, '=', word.len);
        if (!equal) {
            if (word.at[0] == '[' && out->call_site.len &&
                out->call_site.at + out->call_site.len + 1 == word.at)
                out->call_site.len += 1 + word.len;
            continue;
        }
        const struct ftrace_text_span key = {word.at, (size_t)(equal - word.at)},
                                      value = {equal + 1, (size_t)(word.at + word.len - equal - 1)};
        has |= read_field(key, value, out);
    }
    const unsigned needed = HAS_SITE | HAS_ADDRESS | (out->kind == FTRACE_TEXT_ALLOC ? HAS_REQUESTED : 0);
    if ((has & needed) != needed)
        out->kind = FTRACE_TEXT_BROKEN;
    out->no_allocated_bytes = out->kind == FTRACE_TEXT_ALLOC && !(has & HAS_ALLOCATED);
    if (out->no_allocated_bytes)
        out->allocated_bytes = out->requested_bytes;
}

/* ---- other lines ---- */

static bool has(struct text t, const char *words)
{
    return memmem(t.at, (size_t)(t.end - t.at), words, strlen(words)) != NULL;
}

/* "CPU:2 [LOST 1234 EVENTS]", "CPU 2: 1234 EVENTS DROPPED": the last number that is not the CPU's. */
static bool read_lost(struct text t, struct ftrace_text_line *out)
{
    if (!(has(t, "[LOST ") && has(t, " EVENTS]")) && !has(t, " EVENTS DROPPED"))
        return false;
    for (;;) {
        struct ftrace_text_span word = take_word(&t);
        uint64_t n;
        if (!word.len)
            return out->kind == FTRACE_TEXT_LOST;
        if (read_decimal(word, &n)) {
            out->kind = FTRACE_TEXT_LOST;
            out->lost = n;
        }
    }
}

/* " => alloc_pipe_info+0x4a/0x1c0" */
static bool read_caller(struct text t, struct ftrace_text_line *out)
{
    skip_blanks(&t);
    if (t.end - t.at < 3 || t.at[0] != '=' || t.at[1] != '>')
        return false;
    t.at += 2;
    out->kind = FTRACE_TEXT_CALLER;
    out->call_site = trim(t);
    return true;
}

void ftrace_text_read(const char *line, size_t len, struct ftrace_text_line *out)
{
    struct text rest = {line, line + len};
    *out = (struct ftrace_text_line){.kind = FTRACE_TEXT_OTHER};
    if (len && line[len - 1] == '\r')
        rest.end--;
    if (!len || line[0] == '#' || read_caller(rest, out))
        return;
    struct ftrace_text_line found = *out;
    struct text event = rest;
    if (!read_head(&event, &found)) {
        read_lost(rest, out);
        return;
    }
    skip_blanks(&event);
    if (event.at < event.end && *event.at == '<' && has(event, "<stack trace>")) {
        found.kind = FTRACE_TEXT_STACK;
        *out = found;
    } else if (read_event(take_word(&event), &found)) {
        read_fields(&event, &found);
        *out = found;
    }
}
