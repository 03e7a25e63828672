/* SPDX-License-Identifier: BSD-2-Clause */
#include "base/sigsafe/atomic.h"
#include "tag/tag_ledger.h"
#include "target/shards.h"

/*
 * The part of counting that inline code leaves to the library: an addition that carries into the second word of a
 * counter, and the peak of live bytes. update_peak_if_due() decides when the peak is updated.
 */

/* an account's peak is updated if a shard has allocated this many bytes of the account since the shard's last update */
#define BETWEEN_BYTES (64u << 10)

static struct ledger_count read_count(const struct ledger_count *at)
{
    return (struct ledger_count){load_relaxed(&at->now), load_relaxed(&at->more)};
}

/* If *at is *was, stores both words of `next` at once, so no signal handler sees only one; else reads *was anew. */
static bool exchange(struct ledger_count *at, struct ledger_count *was, struct ledger_count next)
{
    bool same;
    __asm__ __volatile__("lock cmpxchg16b %1"
                         : "=@ccz"(same), "+m"(*at), "+a"(was->now), "+d"(was->more)
                         : "b"(next.now), "c"(next.more)
                         : "memory");
    return same;
}

/*
 * Returns how many more calls the first word of a counter takes before it is carried. The peak may be updated then, so
 * the number is small while the counter has few calls. `calls`: the calls that the counter has.
 */
static uint64_t calls_until(uint64_t calls)
{
    uint64_t part = calls / 32 + 1;
    return part < LEDGER_CALLS_MOST ? part : LEDGER_CALLS_MOST;
}

/* Adds to a counter. Returns true if the number of calls was carried from the first word to the second. */
static bool add(struct ledger_count *at, unsigned calls, uint64_t bytes)
{
    struct ledger_count was = read_count(at), next;
    bool full;
    do {
        next = was;
        next.more += bytes / LEDGER_BYTES_CARRY << LEDGER_MORE_SHIFT;
        next.now += bytes % LEDGER_BYTES_CARRY - ((uint64_t)calls << LEDGER_CALLS_SHIFT);
        if (next.now & LEDGER_BYTES_CARRY) {
            next.now -= LEDGER_BYTES_CARRY;
            next.more += 1ull << LEDGER_MORE_SHIFT;
        }
        full = (int64_t)next.now < 0;
        if (full) {
            uint64_t until =
                calls_until(ledger_count_calls(next)) - (uint64_t)((int64_t)next.now >> LEDGER_CALLS_SHIFT);
            next.now += until << LEDGER_CALLS_SHIFT;
            next.more += until;
        }
        if (next.more != was.more) {
            next.now ^= LEDGER_NOW_PHASE;
            next.more ^= LEDGER_MORE_PHASE;
        }
    } while (!exchange(at, &was, next));
    return full;
}

static struct ledger_words *words_of(uint32_t number, uint32_t shard)
{
    return (struct ledger_words *)(void *)(tag_ledger_counters(shard) + tag_ledger_offset(number));
}

static void raise32(uint32_t *most, uint32_t value)
{
    uint32_t was = load_relaxed(most);
    while (was < value &&
           !__atomic_compare_exchange_n(most, &was, value, true, __ATOMIC_RELAXED, __ATOMIC_RELAXED))
        ;
}

static void raise64(uint64_t *most, uint64_t value)
{
    uint64_t was = load_relaxed(most);
    while (was < value &&
           !__atomic_compare_exchange_n(most, &was, value, true, __ATOMIC_RELAXED, __ATOMIC_RELAXED))
        ;
}

/*
 * Updates the peak. The allocated bytes of all shards are read before the freed bytes, so the difference is at most the
 * bytes that were live between the two readings. `own`: the shard's allocated bytes, with the `bytes` of this call.
 */
static void update_peak(uint32_t number, uint32_t shard, uint64_t bytes, uint64_t own)
{
    struct ledger_tag *t = tag_ledger_tag(number);
    uint32_t used = shards_used();
    uint32_t between = (uint32_t)(own - bytes) - load_relaxed(&t->looked_bytes[shard]);
    uint64_t allocated = 0, released = 0;
    if (between <= INT32_MAX) /* else the peak was updated meanwhile with this object */
        raise32(&t->between_bytes, between);
    store_relaxed(&t->looked_bytes[shard], (uint32_t)own);
    for (uint32_t i = 0; i <= used; i++)
        allocated +=
            ledger_count_bytes(read_count(&words_of(number, i < used ? i : SHARDS_SHARED)->allocated));
    __atomic_thread_fence(__ATOMIC_ACQUIRE);
    for (uint32_t i = 0; i <= used; i++)
        released += ledger_count_bytes(read_count(&words_of(number, i < used ? i : SHARDS_SHARED)->released));
    if (allocated > released)
        raise64(&t->peak_bytes, allocated - released);
}

/*
 * An update of the peak reads the counters of all shards, which is slow, because other CPUs write to them. So the more
 * shards are in use, the fewer of the carries (`full`) lead to an update. A large object always does.
 */
static void update_peak_if_due(uint32_t number, uint32_t shard, uint64_t bytes, bool full)
{
    struct ledger_count allocated = read_count(&words_of(number, shard)->allocated);
    uint64_t own = ledger_count_bytes(allocated);
    uint32_t used = shards_used();
    bool large = bytes >= BETWEEN_BYTES ||
                 (uint32_t)own - load_relaxed(&tag_ledger_tag(number)->looked_bytes[shard]) >= BETWEEN_BYTES;
    if (used <= 1 || large || (full && !(allocated.more / LEDGER_CALLS_MOST % (used / 4 + 1))))
        update_peak(number, shard, bytes, own);
}

void tag_ledger_add(uint32_t number, uint32_t shard, bool released, unsigned calls, uint64_t bytes)
{
    struct ledger_words *w = words_of(number, shard);
    bool full = add(released ? &w->released : &w->allocated, calls, bytes);
    if (!released)
        update_peak_if_due(number, shard, bytes, full);
}

/* Finds the offset of a counter from tag_ledger_counters(). False: the counter is in the parent's ledger, because a
 * signal handler has forked meanwhile. */
static bool offset_of(const void *count, uint32_t shard, uint64_t *at)
{
    *at = (uintptr_t)count - (uintptr_t)tag_ledger_counters(shard);
    return process_has_ledger() && *at < process.ledger.header->regions[LEDGER_ACCOUNTS].ready_bytes;
}

void tag_ledger_carry(struct ledger_count *count, uint32_t shard, uint64_t bytes)
{
    uint64_t at;
    if (!offset_of(count, shard, &at))
        return;
    bool full = add(count, 0, 0);
    if (full && !(at & sizeof(*count)))
        update_peak_if_due(tag_ledger_number((uint32_t)at), shard, bytes, true);
}

void tag_ledger_added(const char *count, uint32_t shard, uint64_t bytes)
{
    uint64_t at;
    if (!offset_of(count, shard, &at))
        return;
    uint64_t own = ledger_count_bytes(read_count((const struct ledger_count *)(const void *)count));
    uint32_t number = tag_ledger_number((uint32_t)at);
    if ((uint32_t)own - load_relaxed(&tag_ledger_tag(number)->looked_bytes[shard]) >= BETWEEN_BYTES)
        update_peak(number, shard, bytes, own);
}
