/* SPDX-License-Identifier: BSD-2-Clause */
#include "collect/accounts/object_lookup.h"

#include <errno.h>
#include <fcntl.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/uio.h>
#include <unistd.h>

#include "base/mem.h"
#include "wire/ledger.h"
#include "wire/object_map_layout.h"

#define PAGE          4096ull
#define UNIT          (1ull << OBJECTS_UNIT_SHIFT)
#define PAGE_GRANULES 256u         /* entries of a page, for multiples of 16 or for odd multiples of 8 */
#define PRESENT       (3ull << 62) /* bits of pagemap: the page is in memory, or in swap */
#define WORDS         (PAGE / 8)   /* words (one for each page) in a page of the map */
#define WORD_PAGES    (OBJECTS_PAGES / WORDS)
#define REACH         (OBJECT_LOOKUP_REACH_BYTES >> OBJECTS_UNIT_SHIFT)
#define STALE_MOST    32u  /* words without an object before the search is given up: the map is not trusted */
#define STEPS_MOST    128u /* steps down the tree of mappings, which may change meanwhile */
#define KEPT          64u  /* cached large objects, the latest ones */

struct large {
    uint64_t start, end;
    uint32_t account;
};

struct objects {
    pid_t pid;
    int pagemap;
    struct object_lookup_where where;
    struct large kept[KEPT];
    unsigned next; /* the one to be replaced next */
};

/* An object that begins in a page or in the page before it. */
struct begun {
    uint64_t start, bytes;
    uint32_t account;
};

struct window {
    uint64_t begin;                     /* address of its first entry */
    struct begun at[4 * PAGE_GRANULES]; /* sorted by start */
    size_t len;
};

/* ---- the process's memory ---- */

/* Reads memory of the process; if not all of it can be read, `out` is zeros. Returns 0, -ESRCH or -EPERM. */
static int peek(const struct objects *o, uint64_t address, void *out, size_t bytes)
{
    struct iovec to = {out, bytes}, from = {(void *)(uintptr_t)address, bytes};
    ssize_t got = process_vm_readv(o->pid, &to, 1, &from, 1, 0);
    if (got == (ssize_t)bytes)
        return 0;
    memset(out, 0, bytes);
    return got < 0 && errno != EFAULT ? -errno : 0;
}

/* Returns whether the process has touched the page; true also if this is not known. Other pages are not read: reading
 * them would allocate page tables. */
static bool was_touched(const struct objects *o, uint64_t address)
{
    uint64_t word;
    return pread(o->pagemap, &word, sizeof(word), (off_t)(address / PAGE * sizeof(word))) != sizeof(word) ||
           word & PRESENT;
}

static int peek_touched(const struct objects *o, uint64_t address, void *out, size_t bytes)
{
    memset(out, 0, bytes);
    return was_touched(o, address) ? peek(o, address, out, bytes) : 0;
}

/* Sets *table to the address of the table for `address`, or to 0 if there is none. Returns 0 or -errno. */
static int table_of(const struct objects *o, uint64_t address, uint64_t *table)
{
    int bad = peek_touched(o, o->where.tables + (address >> OBJECTS_UNIT_SHIFT) * sizeof(*table), table,
                           sizeof(*table));
    *table += *table ? OBJECTS_BIAS(address) : 0;
    return bad;
}

static uint64_t word_address(uint64_t table, uint64_t address)
{
    return table + OBJECTS_ENTRIES * sizeof(uint32_t) + (address >> 12 & (OBJECTS_PAGES - 1)) * 8;
}

static uint64_t entry_address(uint64_t table, uint64_t address)
{
    return table + (OBJECTS_IS_ODD(address) ? OBJECTS_ODD_BYTES : 0) + OBJECTS_ENTRY_AT(address) * 4ull;
}

/* ---- small objects, and where large ones begin ---- */

static void add_begun(struct window *w, uint64_t start, uint32_t entry, const uint64_t *words)
{
    uint64_t bytes = entry & OBJECTS_BYTES_INLINE, word = words[start >= (w->begin & ~(PAGE - 1)) + PAGE];
    if (!(entry >> OBJECTS_BYTES_BITS))
        return;
    if (!bytes && object_page_word_is_of(word, start))
        bytes = word >> OBJECTS_GRANULES;
    w->at[w->len++] = (struct begun){start, bytes, entry >> OBJECTS_BYTES_BITS};
}

/* Adds the objects that begin in two neighbouring pages, which may lie in two units. */
static int look_at_pages(const struct objects *o, uint64_t begin, struct window *w)
{
    uint32_t entries[2][2 * PAGE_GRANULES] = {{0}};
    uint64_t words[2] = {0};
    int bad = 0;
    w->begin = begin;
    w->len = 0;
    for (unsigned page = 0; !bad && page < 2; page++) {
        uint64_t table, at = begin + page * PAGE;
        bad = table_of(o, at, &table);
        for (unsigned odd = 0; !bad && table && odd < 2; odd++)
            bad = peek_touched(o, entry_address(table, at | odd * 8), &entries[odd][page * PAGE_GRANULES],
                               PAGE_GRANULES * 4);
        if (!bad && table)
            bad = peek_touched(o, word_address(table, at), &words[page], sizeof(*words));
    }
    for (unsigned i = 0; !bad && i < 4 * PAGE_GRANULES; i++)
        add_begun(w, begin + i * 8ull, entries[i & 1][i / 2], words);
    return bad;
}

/* ---- large objects that begin before ---- */

/* The state of a search backwards. */
struct large_search {
    unsigned stale;
    struct large found;
};

/* Finds the large object that the word of a page describes. Returns false if it is not there any more, or cannot be
 * read. */
static bool is_large(const struct objects *o, uint64_t table, uint64_t page, uint64_t word, struct large *out)
{
    for (unsigned odd = 0; odd < 2; odd++) {
        uint64_t start = page + (word & ((1u << OBJECTS_GRANULES) - 1)) * 16 + odd * 8;
        uint32_t entry;
        if (peek_touched(o, entry_address(table, start), &entry, sizeof(entry)) ||
            entry & OBJECTS_BYTES_INLINE || !(entry >> OBJECTS_BYTES_BITS))
            continue;
        *out = (struct large){start, start + (word >> OBJECTS_GRANULES), entry >> OBJECTS_BYTES_BITS};
        return true;
    }
    return false;
}

/* Finds the last large object that begins in one of the first `most` pages of these words. Returns 1: found; 0: none;
 * -EFAULT: too many words without an object; or another -errno. */
static int search_words(const struct objects *o, uint64_t table, uint64_t page, unsigned most,
                        struct large_search *l)
{
    uint64_t words[WORDS];
    int bad = peek(o, word_address(table, page), words, sizeof(words));
    for (unsigned i = most; !bad && i-- > 0;)
        if (words[i] && is_large(o, table, page + i * PAGE, words[i], &l->found))
            return 1;
        else if (words[i] && ++l->stale > STALE_MOST)
            return -EFAULT;
    return bad;
}

/* Finds the last large object in one unit that begins before the page `until`. Returns as search_words() does. */
static int search_unit(const struct objects *o, uint64_t table, uint64_t until, struct large_search *l)
{
    uint64_t touched[WORD_PAGES], unit = (until - PAGE) & ~(UNIT - 1),
                                  first = word_address(table, unit) / PAGE * sizeof(*touched);
    unsigned pages = (unsigned)((until - unit) / PAGE);
    memset(touched, 0xff, sizeof(touched));
    if (pread(o->pagemap, touched, sizeof(touched), (off_t)first) != sizeof(touched))
        return 0;
    for (unsigned i = (pages + WORDS - 1) / WORDS; i-- > 0;) {
        unsigned most = pages - i * WORDS < WORDS ? pages - i * WORDS : WORDS;
        int found = touched[i] & PRESENT ? search_words(o, table, unit + i * WORDS * PAGE, most, l) : 0;
        if (found)
            return found;
    }
    return 0;
}

/* Finds the last large object that begins before the page; it may also end before it. Returns 1: found; 0: none; or
 * -errno. */
static int find_before(const struct objects *o, uint64_t page, struct large *out)
{
    struct large_search s = {.stale = 0};
    uint64_t tables[WORDS], last = (page - PAGE) >> OBJECTS_UNIT_SHIFT,
                            first = last > REACH ? last - REACH : 0;
    int found = page < PAGE ? -EFAULT : 0;
    for (uint64_t unit = last + 1; !found && unit-- > first;) {
        uint64_t until = unit == last ? page : (unit + 1) << OBJECTS_UNIT_SHIFT, word = unit % WORDS;
        uint64_t at = o->where.tables + (unit - word) * sizeof(*tables);
        if ((unit == last || word == WORDS - 1) && !was_touched(o, at)) {
            unit -= word; /* a page of the directory without any table */
            continue;
        }
        if (unit == last || word == WORDS - 1)
            found = peek(o, at, tables, sizeof(tables));
        if (!found && tables[word])
            found = search_unit(o, tables[word] + OBJECTS_BIAS(unit << OBJECTS_UNIT_SHIFT), until, &s);
    }
    *out = s.found;
    return found == -EFAULT ? 0 : found;
}

/* Finds a cached object that contains the start of the page, if it still exists. Its entry and word were read before,
 * so they can be read without was_touched(). */
static bool find_cached(struct objects *o, uint64_t page, struct large *out)
{
    for (unsigned i = 0; i < KEPT; i++) {
        struct large *l = &o->kept[i];
        uint64_t table, word;
        uint32_t entry;
        if (page < l->start || page >= l->end)
            continue;
        if (!table_of(o, l->start, &table) && table &&
            !peek(o, entry_address(table, l->start), &entry, sizeof(entry)) &&
            !peek(o, word_address(table, l->start), &word, sizeof(word)) &&
            entry == l->account << OBJECTS_BYTES_BITS && word >> OBJECTS_GRANULES == l->end - l->start) {
            *out = *l;
            return true;
        }
        *l = (struct large){0};
    }
    return false;
}

/* Finds the large object that begins before the page and contains its start. Returns 1: found; 0: none; or -errno. */
static int find_covering(struct objects *o, uint64_t page, struct large *out)
{
    if (find_cached(o, page, out))
        return 1;
    int found = find_before(o, page, out);
    if (found <= 0 || out->end <= page)
        return found < 0 ? found : 0;
    o->kept[o->next++ % KEPT] = *out;
    return 1;
}

/* ---- mappings ---- */

/* Finds the mapping that contains the address. Returns 1: found; 0: none; or -errno. */
static int find_range(const struct objects *o, uint64_t address, struct large *out)
{
    struct ranges_node node, best = {0};
    struct ranges_mapping mapping;
    uint64_t tree = 0;
    uint32_t at = 0;
    int bad = o->where.ranges ? peek(o, o->where.ranges, &tree, sizeof(tree)) : 0;
    if (!bad && tree)
        bad = peek(o, tree + offsetof(struct ranges, root), &at, sizeof(at));
    for (unsigned steps = 0; !bad && at && at < RANGES_NODES && steps < STEPS_MOST; steps++) {
        bad = peek(o, tree + offsetof(struct ranges, node) + at * sizeof(node), &node, sizeof(node));
        if (node.end > address)
            best = node;
        at = node.end > address ? node.left : node.right;
    }
    if (bad || !best.end || best.start > address || best.mapping >= RANGES_NODES)
        return bad;
    bad = peek(o, tree + offsetof(struct ranges, mapping) + best.mapping * sizeof(mapping), &mapping,
               sizeof(mapping));
    *out = (struct large){best.start, best.end, mapping.account};
    return bad ? bad : mapping.parts && mapping.account;
}

/* ---- what lies under a page ---- */

static void choose(const struct window *w, uint64_t address, const struct begun *covering,
                   struct object_lookup_found *found)
{
    const struct begun *best = covering, *of_page = covering;
    uint64_t page = address & ~(PAGE - 1);
    for (size_t i = 0; i < w->len; i++) {
        const struct begun *b = &w->at[i];
        if (b->start < page)
            continue;
        found->shared = found->shared || (of_page && of_page->account != b->account);
        of_page = b;
        if (!best || best->start + best->bytes <= address)
            best = b; /* the last one before the address, or the first one behind it */
        else if (b->start <= address)
            best = b;
    }
    if (!best)
        return;
    found->account = best->account;
    found->start = best->start;
    found->bytes = best->bytes;
}

int object_lookup_at(struct objects *o, uint64_t address, struct object_lookup_found *found)
{
    uint64_t page = address & ~(PAGE - 1), table = 0;
    struct window w = {.len = 0};
    struct begun covering = {0};
    struct large large;
    *found = (struct object_lookup_found){0};
    if (address >> OBJECTS_UNIT_SHIFT >= OBJECTS_TABLES || page < PAGE)
        return 0;
    if (find_cached(o, page, &large) && large.end - page >= PAGE) { /* nothing else lies in the page */
        *found = (struct object_lookup_found){.account = large.account,
                                              .start = large.start,
                                              .bytes = large.end - large.start,
                                              .had_objects = true};
        return 0;
    }
    int bad = table_of(o, address, &table);
    if (!bad)
        bad = look_at_pages(o, page - PAGE, &w);
    if (!bad && table)
        found->had_objects =
            was_touched(o, entry_address(table, address)) || was_touched(o, word_address(table, address));
    for (size_t i = 0; i < w.len && w.at[i].start < page; i++)
        covering = w.at[i];
    if (!bad && !covering.account && (bad = find_covering(o, page, &large)) > 0) {
        covering = (struct begun){large.start, large.end - large.start, large.account};
        bad = 0;
    }
    if (bad)
        return bad;
    bool covers = covering.account && covering.start + covering.bytes > page;
    choose(&w, address, covers ? &covering : NULL, found);
    if (found->account || (bad = find_range(o, address, &large)) <= 0)
        return bad;
    found->account = large.account;
    found->start = large.start;
    found->bytes = large.end - large.start;
    return 0;
}

/* ---- beginning and end ---- */

bool object_lookup_is_there(const struct objects *o)
{
    uint64_t first;
    return peek(o, o->where.tables, &first, sizeof(first)) != -ESRCH;
}

static int complain(struct error *e, pid_t pid, int bad)
{
    if (bad == -ESRCH)
        return error_set(e, ESRCH, "process %d has ended", (int)pid);
    return error_set(e, -bad,
                     "the memory of process %d cannot be read (%s): run as root, or as its user with "
                     "kernel.yama.ptrace_scope=0",
                     (int)pid, strerror(-bad));
}

int object_lookup_find(struct object_lookup_where *where, int ledger, bool tags, pid_t pid, bool alive,
                       struct error *e)
{
    struct ledger_header h;
    if (!alive)
        return error_set(e, ESRCH, "process %d has ended: page faults can be counted only while it runs",
                         (int)pid);
    if (pread(ledger, &h, sizeof(h), 0) != sizeof(h) || h.magic != LEDGER_MAGIC ||
        h.version != LEDGER_VERSION)
        return error_set(e, EINVAL, "process %d has accounts of another version of allium", (int)pid);
    uint64_t tables = tags ? h.tagged : h.objects;
    if (!tables)
        return error_set(
            e, ENOENT, "process %d has no map of objects: it has allocated none, or has no room for the map",
            (int)pid);
    *where = (struct object_lookup_where){tables, tags ? h.map_start + offsetof(struct ledger_header, ranges)
                                                       : 0}; /* only tags have mappings */
    return 0;
}

int object_lookup_open(struct objects **out, pid_t pid, const struct object_lookup_where *where,
                       struct error *e)
{
    char path[64];
    uint64_t first;
    struct objects *o = mem_alloc(sizeof(*o));
    o->pid = pid;
    o->where = *where;
    snprintf(path, sizeof(path), "/proc/%d/pagemap", (int)pid);
    o->pagemap = open(path, O_RDONLY | O_CLOEXEC);
    int bad =
        o->pagemap < 0 ? (errno == ENOENT ? -ESRCH : -errno) : peek(o, where->tables, &first, sizeof(first));
    if (bad) {
        object_lookup_close(o);
        return complain(e, pid, bad);
    }
    *out = o;
    return 0;
}

void object_lookup_close(struct objects *o)
{
    if (o && o->pagemap >= 0)
        close(o->pagemap);
    free(o);
}
