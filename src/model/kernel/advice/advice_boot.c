/* SPDX-License-Identifier: BSD-2-Clause */
/* What the kernel takes when it boots: hash tables, the log buffer, reservations. */
#include "model/kernel/advice/advice_parts.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

/* A table that is made anew has room for twice what was seen in it. */
#define HEADROOM      2
#define ENTRIES_LEAST 256u
/* A record of the log has on average 32 bytes of text (PRB_AVGBITS is 5), and is described by 112 bytes. */
#define LOG_CHUNK     32u
#define LOG_DESCRIBES 112u
#define LOG_LEAST     4096u /* the kernel's own limit of LOG_BUF_SHIFT: 12 */
/* A slot of bounce buffers has 2 KiB (IO_TLB_SHIFT is 11), and is described by an address, a size and a number. */
#define SWIOTLB_SLOT      2048u
#define SWIOTLB_DESCRIBES 24u
/* An object of KFENCE is described by two stacks of 64 addresses (KFENCE_STACK_DEPTH), and less than 256 bytes. */
#define KFENCE_DESCRIBES (2u * 64u * 8u + 256u)

/* Which parameter sizes which tables, and what is in them. Tables without a parameter cannot be changed. */
struct table_kind {
    const char *parameter, *things;
    const char *tables[3];
    const char *caches[5]; /* whose objects are in the table; none: see use_of() */
    const char *price;
};

static const struct table_kind table_kinds[] = {
    {"dhash_entries", "dentries", {"Dentry cache"}, {NULL}, "looking up a file name walks longer chains"},
    {"ihash_entries", "inodes", {"Inode-cache"}, {NULL}, "looking up an inode walks longer chains"},
    {"mhash_entries", "mounts", {"Mount-cache"}, {"mnt_cache"}, "looking up a mount walks longer chains"},
    {"mphash_entries",
     "mounts",
     {"Mountpoint-cache"},
     {"mnt_cache"},
     "looking up a mount point walks longer chains"},
    {"thash_entries",
     "TCP sockets",
     {"TCP established", "TCP bind"},
     {"TCP", "TCPv6", "tw_sock_TCP", "tw_sock_TCPv6"},
     "receiving a packet walks longer chains"},
    {"uhash_entries",
     "UDP sockets",
     {"UDP", "UDP-Lite"},
     {"UDP", "UDPv6", "UDP-Lite", "UDPLITEv6"},
     "receiving a packet walks longer chains"},
};
#define TABLE_KINDS (sizeof(table_kinds) / sizeof(*table_kinds))

static uint64_t power_of_two_for(uint64_t n)
{
    uint64_t power = 1;
    while (power < n && power < UINT64_C(1) << 40)
        power *= 2;
    return power;
}

static const struct advice_table *find_table(const struct advice_input *in, const char *name)
{
    vec_each (const struct advice_table, t, &in->tables)
        if (!strcmp(t->name, name))
            return t;
    return NULL;
}

static bool is_called(const struct advice_cache *c, const char *name)
{
    const size_t len = strlen(name);
    for (const char *at = c->aliases ? c->aliases : ""; *at; at += strcspn(at, " "), at += *at == ' ')
        if (!strncmp(at, name, len) && (!at[len] || at[len] == ' '))
            return true;
    return !strcmp(c->name, name);
}

/* The objects of caches that are in the table. Objects that a CPU keeps ready count, too: at most so many are there. */
static bool objects_of(const struct advice_input *in, const struct table_kind *k, uint64_t *n)
{
    bool known = false;
    *n = 0;
    for (int i = 0; k->caches[i]; i++)
        vec_each (const struct advice_cache, c, &in->caches)
            if (is_called(c, k->caches[i])) {
                *n += c->used;
                known = true;
            }
    return known;
}

static bool use_of(const struct advice_input *in, const struct table_kind *k, uint64_t *n)
{
    const struct advice_figure *f = !strcmp(k->things, "dentries") ? &in->dentries
                                    : !strcmp(k->things, "inodes") ? &in->inodes
                                                                   : NULL;
    *n = f ? f->value : 0;
    return f ? f->known : objects_of(in, k, n);
}

/* The kernel makes the number of entries a power of two. */
static void find_tables(struct advice *a, const struct advice_input *in, const struct table_kind *k)
{
    const struct advice_table *found[3];
    uint64_t use, saved = 0;
    size_t n = 0;
    if (!use_of(in, k, &use))
        return;
    const uint64_t wanted = power_of_two_for(use < UINT64_C(1) << 40 ? HEADROOM * use : use);
    const uint64_t entries = wanted > ENTRIES_LEAST ? wanted : ENTRIES_LEAST;
    for (int i = 0; i < 3 && k->tables[i]; i++) {
        const struct advice_table *t = find_table(in, k->tables[i]);
        if (!t || !t->entries || t->entries <= entries)
            continue;
        found[n++] = t;
        saved += t->bytes - t->bytes / t->entries * entries;
    }
    struct advice_measure *m = n ? advice_add(a, ADVICE_TABLE, saved, saved) : NULL;
    if (!m)
        return;
    advice_change(m, "boot with %s=%" PRIu64, k->parameter, entries);
    advice_formula(m,
                   "bytes of the table - %" PRIu64 " entries x bytes of an entry; %" PRIu64
                   " %s were seen, and the table has room for twice as many",
                   entries, use, k->things);
    advice_cost(m, "%s if there are more than %" PRIu64 " %s", k->price, entries, k->things);
    for (size_t i = 0; i < n; i++)
        advice_row(m, "%s hash table: %" PRIu64 " entries x %" PRIu64 " B = %" PRIu64 " B", found[i]->name,
                   found[i]->entries, found[i]->bytes / found[i]->entries, found[i]->bytes);
}

/* ---- the log buffer ---- */

static uint64_t log_whole(uint64_t data_bytes)
{
    return data_bytes + data_bytes / LOG_CHUNK * LOG_DESCRIBES;
}

static void row_of_log(struct advice_measure *m, const struct advice_input *in)
{
    advice_row(m, "log buffer: %" PRIu64 " B of text, %" PRIu64 " B with its descriptions",
               in->log_data.value, in->log_whole.value);
    if (in->log_boot.known)
        advice_row(m, "the kernel wrote %" PRIu64 " B while it booted", in->log_boot.value);
}

/* It was made at boot, in place of the one in the kernel's image: for log_buf_len=, or because there are many CPUs. The
 * parameter cannot make it smaller than the one in the image. */
static void allocated_log(struct advice *a, const struct advice_input *in)
{
    const uint64_t least = in->log_static.known ? 2 * in->log_static.value : 0;
    const bool smaller = !in->log_option_bytes && least && least < in->log_data.value;
    if (!in->log_option_bytes && !smaller)
        return;
    const uint64_t per_byte_kept = smaller ? log_whole(least) : 0;
    /* Whether the kernel then takes one for its CPUs is not known. */
    const uint64_t high = advice_less(in->log_whole.value, per_byte_kept);
    struct advice_measure *m = advice_add(a, ADVICE_LOG, smaller ? high : 0, high);
    if (!m)
        return;
    if (smaller)
        advice_change(m, "boot with log_buf_len=%" PRIu64, least);
    else
        advice_change(m, "boot without log_buf_len=%" PRIu64, in->log_option_bytes);
    advice_formula(m, "%" PRIu64 " B - %" PRIu64 " B%s", in->log_whole.value, per_byte_kept,
                   smaller ? "" : "; low: the kernel makes as large a one for its CPUs");
    advice_cost(m, "old messages of the kernel are overwritten sooner");
    row_of_log(m, in);
}

/* It is in the kernel's image, and half of it would have held what the kernel wrote. */
static void static_log(struct advice *a, const struct advice_input *in)
{
    uint64_t wanted = in->log_data.value;
    unsigned shift = 0;
    if (!in->log_boot.known || !in->log_static.known || in->log_static.value != in->log_data.value)
        return;
    while (wanted / 2 >= HEADROOM * in->log_boot.value && wanted / 2 >= LOG_LEAST)
        wanted /= 2;
    while (shift < 40 && UINT64_C(1) << shift < wanted)
        shift++;
    const uint64_t saved =
        wanted < in->log_data.value ? advice_less(in->log_whole.value, log_whole(wanted)) : 0;
    struct advice_measure *m = advice_add(a, ADVICE_LOG, saved, saved);
    if (!m)
        return;
    advice_change(m, "build the kernel with CONFIG_LOG_BUF_SHIFT=%u", shift);
    advice_formula(m, "%" PRIu64 " B - %" PRIu64 " B for half as full a log as the boot needs",
                   in->log_whole.value, log_whole(wanted));
    advice_cost(m, "old messages of the kernel are overwritten sooner");
    row_of_log(m, in);
}

/* ---- reservations ---- */

static void huge_pages(struct advice *a, const struct advice_input *in)
{
    if (!in->huge_free.known || !in->huge_bytes.known)
        return;
    const uint64_t unused = advice_less(in->huge_free.value, in->huge_reserved.value);
    const uint64_t saved = advice_times(unused, in->huge_bytes.value);
    struct advice_measure *m = advice_add(a, ADVICE_RESERVATION, saved, saved);
    if (!m)
        return;
    advice_change(m, "lower vm.nr_hugepages by %" PRIu64, unused);
    advice_formula(m, "(%" PRIu64 " free - %" PRIu64 " promised) huge pages x %" PRIu64 " B",
                   in->huge_free.value, in->huge_reserved.value, in->huge_bytes.value);
    advice_cost(m, "programs that begin to use huge pages later get none");
    advice_row(m, "HugePages_Free: %" PRIu64 ", HugePages_Rsvd: %" PRIu64, in->huge_free.value,
               in->huge_reserved.value);
}

static void reserved(struct advice *a, const struct advice_figure *f, uint64_t low, uint64_t high,
                     const char *change, const char *formula, const char *cost)
{
    struct advice_measure *m = f->known ? advice_add(a, ADVICE_RESERVATION, low, high) : NULL;
    if (!m)
        return;
    advice_change(m, "%s", change);
    advice_formula(m, "%s %" PRIu64 " B", formula, f->value);
    advice_cost(m, "%s", cost);
    advice_row(m, "%s %" PRIu64 " B", formula, f->value);
}

/* Bounce buffers are handed out in slots, and each slot and each CPU is described. */
static uint64_t whole_swiotlb(const struct advice_input *in)
{
    const uint64_t slots = in->swiotlb_bytes.value / SWIOTLB_SLOT;
    return in->swiotlb_bytes.value + slots * SWIOTLB_DESCRIBES + 2 * in->page_bytes;
}

static bool is_before(const struct advice_input *in, unsigned major, unsigned minor)
{
    return in->major && (in->major < major || (in->major == major && in->minor < minor));
}

static void kfence(struct advice *a, const struct advice_input *in)
{
    const uint64_t pool = in->kfence_bytes.value, objects = in->kfence_objects.value;
    /* Before, it is part of the kernel's image. */
    const uint64_t described = is_before(in, 6, 6) ? 0 : objects * KFENCE_DESCRIBES + in->page_bytes;
    struct advice_measure *m =
        in->kfence_bytes.known ? advice_add(a, ADVICE_RESERVATION, (int64_t)pool, pool + described) : NULL;
    if (!m)
        return;
    advice_change(m, "boot with kfence.sample_interval=0");
    advice_formula(
        m, "%" PRIu64 " B in which KFENCE places objects; high: and at most %" PRIu64 " B that describe them",
        pool, described);
    advice_cost(m, "KFENCE finds no use of freed memory and no access beyond an object any more");
    advice_row(m, "KFENCE: %" PRIu64 " B for %" PRIu64 " objects", pool, objects);
}

void advice_find_boot(struct advice *a, const struct advice_input *in)
{
    if (!in->has_log)
        advice_unknown(
            a,
            "Tables sized at boot, and reservations: the part of the kernel log that was written at boot is "
            "gone, may not be read (which needs root), or is not in the recording");
    for (size_t i = 0; i < TABLE_KINDS; i++)
        find_tables(a, in, &table_kinds[i]);
    if (in->log_data.known && in->log_whole.known)
        (in->log_allocated ? allocated_log : static_log)(a, in);
    huge_pages(a, in);
    kfence(a, in);
    reserved(a, &in->crash_bytes, in->crash_bytes.value, in->crash_bytes.value, "boot without crashkernel=",
             "reserved for a crash kernel:", "no dump is written when the kernel crashes");
    reserved(a, &in->swiotlb_bytes, in->swiotlb_bytes.value, whole_swiotlb(in),
             "boot with swiotlb=noforce, or with fewer slabs in swiotlb=",
             "high: and what describes them; bounce buffers:",
             "devices that cannot reach all of the memory do not work without them");
    reserved(a, &in->cma_bytes, 0, in->cma_bytes.value, "boot with a smaller cma=",
             "low: movable pages use it meanwhile; reserved for contiguous allocations:",
             "drivers that need large contiguous buffers may get none");
}
