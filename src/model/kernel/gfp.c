/* SPDX-License-Identifier: BSD-2-Clause */
#include "model/kernel/gfp.h"

#include <errno.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "model/kernel/cexpr.h"

#define BIT_HEAD "___GFP_"
#define BIT_TAIL "_BIT"

void gfp_release(struct gfp_names *g)
{
    vec_release(&g->all);
}

static void add(struct gfp_names *g, const char *name, uint64_t mask)
{
    struct gfp_name *n = vec_push(&g->all);
    n->mask = mask;
    snprintf(n->name, sizeof(n->name), "%s", name);
}

/* ---- from the kernel's enum ---- */

void gfp_bits_add(struct gfp_bits *bits, const char *name, uint64_t number)
{
    size_t len = strlen(name), head = strlen(BIT_HEAD), tail = strlen(BIT_TAIL);
    if (len <= head + tail || len >= GFP_NAME_BYTES || number > 63 || strncmp(name, BIT_HEAD, head) != 0 ||
        strcmp(name + len - tail, BIT_TAIL) != 0 ||
        strspn(name, "ABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_") != len)
        return;
    struct gfp_name *b = vec_push(bits);
    b->mask = 1ull << number;
    memcpy(b->name, name, len + 1);
}

/* Returns the mask of the bits with these names. Each word is the part of a name between ___GFP_ and _BIT; words that
 * this kernel does not have are ignored. */
static uint64_t mask_of(const struct gfp_bits *bits, const char *words)
{
    uint64_t mask = 0;
    vec_each (const struct gfp_name, b, bits) {
        const char *word = b->name + strlen(BIT_HEAD);
        size_t len = strlen(word) - strlen(BIT_TAIL);
        for (const char *at = words; *at; at += strcspn(at, " "), at += *at == ' ')
            if (strcspn(at, " ") == len && !strncmp(at, word, len))
                mask |= b->mask;
    }
    return mask;
}

#define RECLAIM "DIRECT_RECLAIM KSWAPD_RECLAIM "
#define USER    "IO FS HARDWALL "
#define MOVABLE USER "HIGHMEM MOVABLE SKIP_KASAN "
#define HUGE    MOVABLE "COMP NOMEMALLOC NOWARN "

/* Source: include/linux/gfp_types.h and, for the order, include/trace/events/mmflags.h of Linux 6.10 and later. */
static const struct {
    const char *name, *words;
} composed[] = {
    {"GFP_TRANSHUGE", HUGE "DIRECT_RECLAIM"},
    {"GFP_TRANSHUGE_LIGHT", HUGE},
    {"GFP_HIGHUSER_MOVABLE", RECLAIM MOVABLE},
    {"GFP_HIGHUSER", RECLAIM USER "HIGHMEM"},
    {"GFP_USER", RECLAIM USER},
    {"GFP_KERNEL_ACCOUNT", RECLAIM "IO FS ACCOUNT"},
    {"GFP_KERNEL", RECLAIM "IO FS"},
    {"GFP_NOFS", RECLAIM "IO"},
    {"GFP_ATOMIC", "HIGH KSWAPD_RECLAIM"},
    {"GFP_NOIO", RECLAIM},
    {"GFP_NOWAIT", "KSWAPD_RECLAIM NOWARN"},
    {"GFP_DMA", "DMA"},
    {"GFP_DMA32", "DMA32"},
    {"__GFP_RECLAIM", RECLAIM},
};

int gfp_from_bits(struct gfp_names *g, const struct gfp_bits *bits)
{
    if (!bits->len)
        return -ENOENT;
    for (size_t i = 0; i < sizeof(composed) / sizeof(*composed); i++)
        if (mask_of(bits, composed[i].words))
            add(g, composed[i].name, mask_of(bits, composed[i].words));
    vec_each (const struct gfp_name, b, bits) {
        char name[GFP_NAME_BYTES]; /* "__GFP_ZERO" */
        if (!strcmp(b->name, BIT_HEAD "UNUSED" BIT_TAIL) || !strcmp(b->name, BIT_HEAD "LAST" BIT_TAIL))
            continue;
        snprintf(name, sizeof(name), "%.*s", (int)(strlen(b->name) - strlen(BIT_TAIL) - 1), b->name + 1);
        add(g, name, b->mask);
    }
    return 0;
}

/* ---- from the format of an event ---- */

static bool bit_number(const void *bits, const char *name, size_t len, uint64_t *value)
{
    vec_each (const struct gfp_name, b, (const struct gfp_bits *)bits)
        if (strlen(b->name) == len && !memcmp(b->name, name, len)) {
            *value = (unsigned)__builtin_ctzll(b->mask);
            return true;
        }
    return false;
}

static const char *skip(const char *at, char c)
{
    at += strspn(at, " \t");
    return *at == c ? at + 1 + strspn(at + 1, " \t") : NULL;
}

/* Adds the entry {MASK, "NAME"} that begins at `at`. Returns the text behind it, or NULL if no entry begins there. */
static const char *take_entry(struct gfp_names *g, const char *at, const struct gfp_bits *bits)
{
    uint64_t mask;
    char name[GFP_NAME_BYTES];
    const struct cexpr_names names = {bit_number, bits};
    if (!(at = skip(at, '{')) || !(at = cexpr_parse(at, &names, &mask)) || !(at = skip(at, ',')))
        return NULL;
    size_t len =
        *at == '"' ? strspn(at + 1, "ABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_abcdefghijklmnopqrstuvwxyz") : 0;
    if (!len || len >= sizeof(name) || at[1 + len] != '"')
        return NULL;
    memcpy(name, at + 1, len);
    name[len] = '\0';
    if (mask) /* 0: the kernel does not have the bit, and every value would contain it */
        add(g, name, mask);
    return skip(at + 2 + len, '}');
}

/* Returns whether the table ends here: with "{ -1, NULL }" or "{ 0, ((void *)0) }". */
static bool is_end(const char *at)
{
    size_t entry = strcspn(at, "}");
    return at[entry] && !memchr(at, '"', entry);
}

int gfp_from_format(struct gfp_names *g, const char *format, const struct gfp_bits *bits)
{
    static const char head[] = "__print_flags(REC->gfp_flags, \"|\"";
    const char *at = strstr(format, head);
    size_t before = g->all.len;
    if (!at)
        return -ENOENT;
    at += strlen(head);
    while (at && (at = skip(at, ',')) && !is_end(at))
        if ((at = take_entry(g, at, bits)) && *at == ')')
            return g->all.len > before ? 0 : -ENOENT;
    if (at && g->all.len > before)
        return 0;
    g->all.len = before;
    return at ? -ENOENT : -EPROTO;
}

/* ---- the names of a value ---- */

void gfp_format(const struct gfp_names *g, uint64_t flags, struct buf *out)
{
    const char *between = "";
    if (!flags)
        buf_addstr(out, "none");
    for (size_t i = 0; i < g->all.len && flags; i++) {
        const struct gfp_name *n = &g->all.at[i];
        if ((flags & n->mask) != n->mask)
            continue;
        buf_printf(out, "%s%s", between, n->name);
        flags &= ~n->mask;
        between = "|";
    }
    if (flags)
        buf_printf(out, "%s0x%" PRIx64, between, flags);
}
