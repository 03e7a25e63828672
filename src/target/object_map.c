/* SPDX-License-Identifier: BSD-2-Clause */
#include "target/object_map.h"

#include <sys/mman.h>

#include "base/sigsafe/atomic.h"
#include "base/sigsafe/syscall.h"
#include "target/vm_reserve.h"
#include "wire/ledger.h"

#define EPOCH_FIRST 2u
#define EPOCHS      2u          /* chunks are used again this many generations of fork children later */
#define CHUNKS_MAX  4096u       /* 512 GiB of addresses */
#define PIECE_BYTES (64u << 10) /* of the directory that are made writable at a time */
#define PIECES      (OBJECTS_TABLES * sizeof(uintptr_t) / PIECE_BYTES)
#define AHEAD_BYTES (1ull << 20) /* of addresses */
#define AHEAD_STEP  (AHEAD_BYTES / 4)
#define STEPS_KNOWN 64u

/* Indices of words in the page before the directory. The kernel wipes this page, too, in fork children. */
enum {
    MASK = -1, /* of an index, for the inline code of tags; 0: no table, or a fork child not yet updated */
    OWN_EPOCH = -2,  /* epoch of this process; 0: not known yet */
    OWN_CHUNK = -3,  /* number + 1 of the chunk that new tables come from; 0: none */
    SPARE_TABLE = -4 /* a table that was made but not used; 0: none */
};
#define HEAD_BYTES      4096u
#define DIRECTORY_BYTES (HEAD_BYTES + OBJECTS_TABLES * sizeof(uintptr_t))

uintptr_t object_map_none_words[2];
const char object_map_none_view[2 * (OBJECTS_SHIFT_MASK + 1)]
    __attribute__((aligned(OBJECTS_SHIFT_MASK + 1)));
static uintptr_t *directory;
static uint8_t writable[PIECES]; /* 1: this piece of the directory is writable */

/*
 * All chunks of address space for tables, each with the epoch of the process that used the chunk last. The epoch of a
 * process is one more than the epoch of its nearest ancestor that used the map. The kernel wipes all chunks in a fork
 * child, but the child does not use chunks of that ancestor, because code that a forking signal handler interrupted may
 * still write to them. The children of the child use them again.
 */
static struct {
    uintptr_t at; /* written last */
    uint32_t epoch;
    uint32_t used; /* tables */
} chunks[CHUNKS_MAX];
static uint32_t n_chunks, epoch = EPOCH_FIRST - 1;

static uint32_t epoch_of(uintptr_t *all)
{
    uint32_t *own = (uint32_t *)&all[OWN_EPOCH], none = 0, next = load_relaxed(&epoch) + 1;
    if (unlikely(!load_relaxed(own)) &&
        __atomic_compare_exchange_n(own, &none, next, false, __ATOMIC_RELAXED, __ATOMIC_RELAXED))
        store_relaxed(&epoch, next);
    return load_relaxed(own);
}

/* Takes over a chunk that no code uses any more, because its epoch is at least EPOCHS below `now`, the epoch of this
 * process. Returns the number of the chunk; CHUNKS_MAX: there is none. */
static uint32_t take_old_chunk(uint32_t now)
{
    for (uint32_t i = 0; i < CHUNKS_MAX && i < load_acquire(&n_chunks); i++) {
        uint32_t of = load_relaxed(&chunks[i].epoch);
        if (load_acquire(&chunks[i].at) && of + EPOCHS <= now &&
            __atomic_compare_exchange_n(&chunks[i].epoch, &of, now, false, __ATOMIC_RELAXED,
                                        __ATOMIC_RELAXED)) {
            store_relaxed(&chunks[i].used, 0);
            return i;
        }
    }
    return CHUNKS_MAX;
}

/* Reserves a new chunk and returns its number. CHUNKS_MAX: no address space, or CHUNKS_MAX chunks already. */
static uint32_t make_chunk(uint32_t now)
{
    void *at = load_relaxed(&n_chunks) < CHUNKS_MAX ? vm_reserve(OBJECTS_CHUNK_BYTES, true) : NULL;
    uint32_t number = at ? __atomic_fetch_add(&n_chunks, 1, __ATOMIC_RELAXED) : CHUNKS_MAX;
    if (number >= CHUNKS_MAX) {
        if (at)
            vm_reserve_release(at, OBJECTS_CHUNK_BYTES);
        return CHUNKS_MAX;
    }
    store_relaxed(&chunks[number].epoch, now);
    store_release(&chunks[number].at, (uintptr_t)at);
    return number;
}

/* Sets another chunk for new tables in place of `was` (number + 1 of a full chunk; 0: none), unless another thread has
 * done so already. False: there is no other chunk. */
static bool next_chunk(uintptr_t *all, uintptr_t was)
{
    uint32_t now = epoch_of(all), number = take_old_chunk(now);
    if (number == CHUNKS_MAX)
        number = make_chunk(now);
    if (number == CHUNKS_MAX)
        return load_acquire(&all[OWN_CHUNK]) != was;
    if (!__atomic_compare_exchange_n(&all[OWN_CHUNK], &was, (uintptr_t)number + 1, false, __ATOMIC_ACQ_REL,
                                     __ATOMIC_ACQUIRE))
        store_relaxed(&chunks[number].epoch, now - EPOCHS); /* the next thread that needs a chunk takes it */
    return true;
}

/* Returns an unused, writable table; 0: there is no memory. */
static uintptr_t take_table(uintptr_t *all)
{
    uintptr_t spare = __atomic_exchange_n(&all[SPARE_TABLE], 0, __ATOMIC_ACQ_REL);
    while (!spare) {
        uintptr_t chunk = load_acquire(&all[OWN_CHUNK]);
        uint32_t number = (uint32_t)chunk - 1;
        uint32_t n = chunk ? load_relaxed(&chunks[number].used) : OBJECTS_TOGETHER;
        if (n >= OBJECTS_TOGETHER) {
            if (!next_chunk(all, chunk))
                return 0;
            continue;
        }
        uintptr_t table = chunks[number].at + (uintptr_t)n * OBJECTS_TABLE_BYTES;
        if (!vm_reserve_open((const void *)table, OBJECTS_TABLE_BYTES))
            return 0;
        if (__atomic_compare_exchange_n(&chunks[number].used, &n, n + 1, false, __ATOMIC_RELAXED,
                                        __ATOMIC_RELAXED))
            spare = table;
    }
    return spare;
}

/* Makes the piece of the directory that has this word (an index) writable. */
static bool open_piece(const uintptr_t *all, uint64_t word)
{
    uint64_t piece = word * sizeof(*all) / PIECE_BYTES;
    if (load_acquire(&writable[piece]))
        return true;
    if (!vm_reserve_open((const char *)all + piece * PIECE_BYTES, PIECE_BYTES))
        return false;
    store_release(&writable[piece], 1);
    return true;
}

/*
 * Returns the word of the directory for the address; makes the table first if there is none. If two threads make the
 * table at once, the slower one stores the table that it made as SPARE_TABLE. 0: there is no memory.
 */
static uintptr_t table_at(uintptr_t *all, uintptr_t address)
{
    uint64_t word = address >> OBJECTS_UNIT_SHIFT;
    uintptr_t have = load_acquire(&all[word]), none = 0;
    if (likely(have))
        return have;
    uintptr_t table = open_piece(all, word) ? take_table(all) : 0;
    if (!table)
        return load_acquire(&all[word]);
    uintptr_t mine = table - OBJECTS_BIAS(address);
    if (__atomic_compare_exchange_n(&all[word], &have, mine, false, __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE))
        return mine;
    __atomic_compare_exchange_n(&all[SPARE_TABLE], &none, table, false, __ATOMIC_ACQ_REL, __ATOMIC_RELAXED);
    return have;
}

static uintptr_t *directory_or_new(void)
{
    uintptr_t *have = load_acquire(&directory);
    if (likely(have != NULL))
        return have;
    char *memory = vm_reserve(DIRECTORY_BYTES, true);
    if (!memory)
        return load_acquire(&directory);
    uintptr_t *mine = (uintptr_t *)(void *)(memory + HEAD_BYTES);
    if (vm_reserve_open(memory, HEAD_BYTES) &&
        __atomic_compare_exchange_n(&directory, &have, mine, false, __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE))
        return mine;
    vm_reserve_release(memory, DIRECTORY_BYTES);
    return load_acquire(&directory);
}

/*
 * Also makes the table of address 0, because inline code also reads the entry of NULL. If inline code finds a directory
 * without this table, the process is a fork child that is not yet updated.
 */
uintptr_t *object_map_tables(void)
{
    uintptr_t *all = directory_or_new();
    if (!all || !table_at(all, 0))
        return NULL;
    store_release(&all[MASK], OBJECTS_TABLES - 1);
    return all;
}

/*
 * The kernel has wiped the directory at the fork. Since then only code that a forking signal handler interrupted can
 * have written to it, and only to writable pieces.
 */
void object_map_begin_anew(void)
{
    const uint64_t words = PIECE_BYTES / sizeof(*directory);
    uintptr_t *all = load_acquire(&directory);
    if (!all || !all[OWN_EPOCH])
        return;
    for (uint64_t piece = 0; piece < PIECES; piece++)
        for (uint64_t i = piece * words; load_relaxed(&writable[piece]) && i < (piece + 1) * words; i++)
            if (all[i])
                all[i] = 0;
    all[MASK] = all[OWN_EPOCH] = all[OWN_CHUNK] = all[SPARE_TABLE] = 0;
}

/* Makes the table's entries for odd multiples of 8 writable: not before the first such address, because few allocators
 * return any. */
static bool open_odd(uint32_t *table)
{
    uint32_t *open = table + (OBJECTS_TABLE_BYTES - LEDGER_PAGE_BYTES) / sizeof(*table);
    if (likely(load_acquire(open)))
        return true;
    if (!vm_reserve_open((const char *)table + OBJECTS_ODD_BYTES, OBJECTS_ENTRIES * sizeof(*table)))
        return false;
    store_release(open, 1);
    return true;
}

/*
 * Finds the words of the map for an address; makes its table if `make`. The word of the directory is read only once,
 * because it may become 0 at any time: if a signal handler forks here, the directory is empty in the child.
 */
static inline __attribute__((always_inline)) bool find(struct object_place *p, uintptr_t address, bool make)
{
    uintptr_t *all = load_acquire(&directory), table;
    if (!all || address >> OBJECTS_UNIT_SHIFT >= OBJECTS_TABLES)
        return false;
    table = make ? table_at(all, address) : load_acquire(&all[address >> OBJECTS_UNIT_SHIFT]);
    if (!table)
        return false;
    *p = object_place_of(table, address);
    if (!OBJECTS_IS_ODD(address))
        return true;
    p->entry += OBJECTS_ODD_BYTES / sizeof(*p->entry);
    return !make || open_odd((uint32_t *)(table + OBJECTS_BIAS(address)));
}

/* Maps a hole where the kernel will map memory next, and unmaps it after making the tables for its addresses. Meanwhile
 * the kernel cannot place chunks of tables in the hole. */
void object_map_take_room(uint64_t bytes)
{
    struct object_place p;
    long hole = sys_call(SYS_mmap, 0, bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (sys_failed(hole))
        return;
    bool room = true;
    uintptr_t end = (uintptr_t)hole + bytes;
    /* From the highest address down, because the kernel will give the program the highest addresses first: if memory
     * runs out here, only the addresses that are used last have no table. */
    for (uintptr_t at = end - 1; room && at >= (uintptr_t)hole; at -= 1ull << OBJECTS_UNIT_SHIFT)
        room = find(&p, at, true);
    sys_call(SYS_munmap, hole, bytes);
}

void object_map_expect_more(uintptr_t address)
{
    static uintptr_t known[STEPS_KNOWN]; /* numbers of steps handled lately */
    uintptr_t step = address / AHEAD_STEP, *last = &known[step % STEPS_KNOWN];
    struct object_place p;
    if (load_relaxed(last) == step)
        return;
    store_relaxed(last, step);
    if (!vm_reserve_may_call() || !find(&p, address & ~8ull, false))
        return;
    uint64_t left = (1ull << OBJECTS_UNIT_SHIFT) - (address & ((1ull << OBJECTS_UNIT_SHIFT) - 1));
    uint64_t ahead = left < AHEAD_BYTES ? left : AHEAD_BYTES;
    uintptr_t page = (uintptr_t)p.entry & ~4095ull;
    sys_call(SYS_madvise, page, ahead / 16 * sizeof(*p.entry), MADV_POPULATE_WRITE); /* Linux 5.14 */
}

bool object_map_put(uintptr_t address, struct object o)
{
    struct object_place p;
    uint32_t entry = o.account << OBJECTS_BYTES_BITS;
    if (!find(&p, address, true))
        return false;
    if (o.bytes > OBJECTS_BYTES_INLINE) {
        store_relaxed(p.page, object_page_word(address, o.bytes));
        store_release(p.entry, entry);
    } else {
        store_release(p.entry, entry | (uint32_t)o.bytes);
    }
    return true;
}

bool object_map_has(uintptr_t address)
{
    struct object_place p;
    return find(&p, address, false) && load_relaxed(p.entry);
}

bool object_map_take(uintptr_t address, struct object *o)
{
    struct object_place p;
    uint32_t entry = find(&p, address, false) ? load_acquire(p.entry) : 0;
    *o = (struct object){entry >> OBJECTS_BYTES_BITS, entry & OBJECTS_BYTES_INLINE};
    if (!o->account)
        return false;
    uint64_t page = o->bytes ? 0 : load_relaxed(p.page);
    if (page && object_page_word_is_of(page, address)) {
        o->bytes = page >> OBJECTS_GRANULES;
        store_relaxed(p.page, 0);
    }
    store_release(p.entry, 0);
    return true;
}

bool object_map_take_from_page(uintptr_t address, struct object *o)
{
    struct object_place p;
    uint64_t page = find(&p, address, false) ? load_relaxed(p.page) : 0;
    uintptr_t other = (address & ~(uintptr_t)0xfff) | (page & ((1u << OBJECTS_GRANULES) - 1)) << 4;
    return page && (object_map_take(other, o) || object_map_take(other | 8, o));
}
