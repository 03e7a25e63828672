/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Fuzz target of src/model/gfp and cexpr: whatever a format says, either a table of masks and names comes out or
 * nothing, and what is shown of flags has all of their bits. The text is a format and, behind the first NUL, names of
 * bits.
 */
#include "require.h"

#include "model/kernel/gfp.h"

#include <errno.h>
#include <stdint.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void add_bits(struct gfp_bits *bits, const uint8_t *at, size_t size)
{
    for (unsigned number = 0; size; number++) {
        char *name = mem_strndup((const char *)at, size);
        size_t len = strlen(name);
        gfp_bits_add(bits, name, number % 70);
        free(name);
        at += len < size ? len + 1 : len;
        size -= len < size ? len + 1 : len;
    }
    vec_each (const struct gfp_name, b, bits)
        require(b->mask && !(b->mask & (b->mask - 1)), "not one bit");
}

/* The bits of the words in the text, added up once more. */
static uint64_t bits_of(const struct gfp_names *g, const char *text)
{
    uint64_t sum = 0;
    for (const char *at = text; *at; at += strcspn(at, "|"), at += *at == '|') {
        size_t len = strcspn(at, "|");
        uint64_t mask = 0;
        for (size_t i = 0; i < g->all.len; i++)
            if (!mask && strlen(g->all.at[i].name) == len && !strncmp(g->all.at[i].name, at, len))
                mask = g->all.at[i].mask;
        sum |= mask ? mask : strtoull(at, NULL, 16);
    }
    return sum;
}

static bool has_twins(const struct gfp_names *g)
{
    for (size_t i = 0; i < g->all.len; i++)
        for (size_t k = 0; k < i; k++)
            if (!strcmp(g->all.at[i].name, g->all.at[k].name))
                return true;
    return false;
}

static void check_table(const struct gfp_names *g)
{
    bool twins = has_twins(g);
    vec_each (const struct gfp_name, n, &g->all) {
        require(n->mask && n->name[0] && !strpbrk(n->name, "| \"\n\033"), "a name that is none: %s", n->name);
        uint64_t flags[] = {n->mask, ~n->mask, n->mask | 1ull << 62};
        for (int i = 0; i < 3; i++) {
            struct buf b = BUF_INIT;
            gfp_format(g, flags[i], &b);
            require(twins || !flags[i] || bits_of(g, buf_str(&b)) == flags[i], "not these flags: %s",
                    buf_str(&b));
            buf_release(&b);
        }
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct gfp_bits bits = {0};
    struct gfp_names g = {0}, alone = {0};
    char *format = mem_strndup((const char *)data, size);
    size_t len = strlen(format);
    if (len < size)
        add_bits(&bits, data + len + 1, size - len - 1);
    int bad = gfp_from_format(&g, format, &bits);
    require(bad ? (bad == -ENOENT || bad == -EPROTO) && !g.all.len : g.all.len, "neither a table nor none");
    check_table(&g);
    bad = gfp_from_bits(&alone, &bits);
    require(bad ? bad == -ENOENT && !bits.len : bits.len, "a table of no bits");
    check_table(&alone);
    gfp_release(&g);
    gfp_release(&alone);
    vec_release(&bits);
    free(format);
    return 0;
}
