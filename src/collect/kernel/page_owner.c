/* SPDX-License-Identifier: BSD-2-Clause */
#include "collect/kernel/page_owner.h"

#include <ctype.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"

/* What is left of a line, whose text ends with a NUL. */
static bool take(const char **at, const char *word)
{
    const size_t len = strlen(word);
    if (strncmp(*at, word, len) != 0)
        return false;
    *at += len;
    return true;
}

static bool take_number(const char **at, int base, uint64_t *out)
{
    char *end;
    errno = 0;
    *out = strtoull(*at, &end, base);
    if (!isxdigit((unsigned char)**at) || end == *at || errno)
        return false;
    *at = end;
    return true;
}

static void take_word(const char **at, char *to, size_t room)
{
    const size_t len = strcspn(*at, " "), n = len < room ? len : room - 1;
    memcpy(to, *at, n);
    to[n] = '\0';
    *at += len;
}

static const char *last_of(const char *text, const char *word)
{
    const char *last = NULL;
    for (const char *at = strstr(text, word); at; at = strstr(at + 1, word))
        last = at;
    return last;
}

/* " (comm), ts 1 ns": a program may have any name, so the last such end counts. */
static bool take_comm(const char **at, char *to, size_t room)
{
    const char *end = last_of(*at, "), ts ");
    const size_t all = end ? (size_t)(end - *at) : strlen(*at), len = end || !all ? all : all - 1;
    const size_t n = len < room ? len : room - 1;
    if (!end && (*at)[len] != ')')
        return false;
    memcpy(to, *at, n);
    to[n] = '\0';
    *at += len + 1;
    return true;
}

/* "0, mask 0xcc0(GFP_KERNEL), pid 1, tgid 1 (init), ts 12 ns, free_ts 0 ns", of which later kernels have more. */
static bool take_head(struct page_owner_block *b, const char *at)
{
    uint64_t order;
    if (!take_number(&at, 10, &order) || order > 64 || !take(&at, ", mask 0x") ||
        !take_number(&at, 16, &b->gfp))
        return false;
    b->order = (uint32_t)order;
    if (take(&at, "(")) {
        const size_t len = strcspn(at, ")");
        buf_add(&b->gfp_names, at, len);
        at += len + (at[len] == ')');
    }
    if (take(&at, ", pid ") && !take_number(&at, 10, &b->pid))
        return false;
    if (take(&at, ", tgid ") && !take_number(&at, 10, &b->tgid))
        return false;
    if (take(&at, " (") && !take_comm(&at, b->comm, sizeof(b->comm)))
        return false;
    if (take(&at, ", ts ") && (!take_number(&at, 10, &b->time_ns) || !take(&at, " ns")))
        return false;
    if (take(&at, ", free_ts ") && (!take_number(&at, 10, &b->freed_ns) || !take(&at, " ns")))
        return false;
    return !*at;
}

/* "(locked|slab|zone=1)": one of the flags. */
static bool has_flag(const char *flags, const char *word)
{
    const size_t len = strlen(word);
    for (const char *at = strstr(flags, word); at; at = strstr(at + 1, word))
        if (at > flags && strchr("(|", at[-1]) && strchr("|)", at[len]))
            return true;
    return false;
}

/* "0x1c8 type Unmovable Block 0 type Movable Flags 0x200(slab|node=0)"; before Linux 5.13 the number is decimal. */
static bool take_place(struct page_owner_block *b, const char *at)
{
    uint64_t ignored;
    if (!take_number(&at, 0, &ignored) || !take(&at, " type "))
        return false;
    take_word(&at, b->type, sizeof(b->type));
    if (!take(&at, " Block ") || !take_number(&at, 10, &ignored) || !take(&at, " type "))
        return false;
    take_word(&at, b->block_type, sizeof(b->block_type));
    b->is_slab |= has_flag(at, "slab");
    return true;
}

static void begin(struct page_owner *p, const char *at)
{
    struct page_owner_block *b = &p->block;
    struct buf names = b->gfp_names, stack = b->stack;
    p->broken += p->begun; /* without an empty line behind it */
    buf_reset(&names);
    buf_reset(&stack);
    *b = (struct page_owner_block){.times = p->times ? p->times : 1,
                                   .pid = PAGE_OWNER_UNKNOWN,
                                   .tgid = PAGE_OWNER_UNKNOWN,
                                   .time_ns = PAGE_OWNER_UNKNOWN,
                                   .freed_ns = PAGE_OWNER_UNKNOWN,
                                   .gfp_names = names,
                                   .stack = stack};
    p->times = 0;
    p->begun = take_head(b, at);
    p->placed = false;
    p->broken += !p->begun;
}

/* "12 times, 24 pages, allocated by slab:" */
static bool take_times(struct page_owner *p, const char *at)
{
    uint64_t times, pages;
    if (!isdigit((unsigned char)*at) || !take_number(&at, 10, &times) || !take(&at, " times, ") ||
        !take_number(&at, 10, &pages) || !take(&at, " pages"))
        return false;
    p->times = times;
    return true;
}

/* " f+0x1/0x2", or " 0xffffffffc02150c2" if the code is gone. */
static bool is_caller(const char *line)
{
    return *line == ' ' && line[strspn(line, " ")];
}

static bool end_block(struct page_owner *p)
{
    const bool whole = p->begun && p->placed;
    p->broken += p->begun && !p->placed;
    p->begun = false;
    return whole;
}

/* Lines of the block that are not its first one and not empty. */
static void take_more(struct page_owner *p, const char *line)
{
    const char *at = line;
    if (take(&at, "PFN ")) {
        p->placed = take_place(&p->block, at);
        p->broken += !p->placed;
        p->begun = p->placed;
    } else if (is_caller(line)) {
        buf_printf(&p->block.stack, "%s%s", p->block.stack.len ? "\n" : "", line + strspn(line, " "));
    } else if (take(&at, "Slab cache page")) {
        p->block.is_slab = true;
    } else {
        p->broken +=
            !take(&at, "Page has been migrated") && !take(&at, "Charged ") && !take(&at, "Migrated ");
    }
}

bool page_owner_line(struct page_owner *p, const char *line, size_t len)
{
    bool whole = false;
    char *text = mem_strndup(line, len);
    const char *at = text;
    if (!*text)
        whole = end_block(p);
    else if (take(&at, PAGE_OWNER_MAGIC))
        begin(p, at);
    else if (p->begun)
        take_more(p, text);
    else
        p->broken += !take_times(p, text) && !is_caller(text);
    free(text);
    return whole;
}

bool page_owner_end(struct page_owner *p)
{
    return end_block(p);
}

bool page_owner_is_text(const char *text, size_t len)
{
    bool is = false;
    struct page_owner p = {.times = 0};
    const char *end = memchr(text, '\n', len);
    char *line = mem_strndup(text, end ? (size_t)(end - text) : len);
    const char *at = line;
    is = take(&at, PAGE_OWNER_MAGIC) || take_times(&p, line);
    free(line);
    return is;
}

void page_owner_release(struct page_owner *p)
{
    buf_release(&p->block.gfp_names);
    buf_release(&p->block.stack);
}
