/* SPDX-License-Identifier: BSD-2-Clause */
#include "agent/sites/sites.h"

#include <sys/mman.h>

#include "agent/ledger_writer.h"
#include "agent/reentry.h"
#include "agent/sites/site_rules.h"
#include "agent/sites/site_tables.h"
#include "agent/sites/sites_hooks.h"
#include "agent/sites/sites_operators.h"
#include "agent/sites/sites_unload.h"
#include "agent/sites/wrapper_match.h"
#include "base/sigsafe/syscall.h"
#include "target/shards.h"
#include "target/vm_reserve.h"
#include "unwind/module.h"

/* the most nested wrappers to pass over: code that uses the C++ library nests many if compiled without optimisation */
#define WRAPPERS_NESTED 64

uint32_t sites_on, sites_counting, sites_heads_have_size;

static uint16_t *modules; /* by number of the site: index of its module in unwind_modules */
/* Calls that could not be counted for a site, mostly because there was no ledger yet: move_missed() counts them. */
static struct {
    uint64_t allocated, freed;
} missed;

/* Index of the first word of each sum: allocations by the site, frees of objects allocated by the site, frees by it. */
enum sum { ALLOCATED = 0, RELEASED = 3, FREED = 6 };

#define AT(table, type, index) ledger_at(&process.ledger, table, type, index)

static char *sums_of(uint32_t shard)
{
    return process.ledger.regions[LEDGER_SITE_SUMS] +
           shard * LEDGER_SITES_TOGETHER * sizeof(struct ledger_site_words);
}

static void add(const struct thread *t, uint64_t number, enum sum sum, uint64_t bytes, uint64_t usable)
{
    struct ledger_site_words *w = sites_words(t->sums, SITES_ID((uint32_t)number));
    uint64_t *word = (uint64_t *)w + sum;
    if (t->sums != sums_of(SHARDS_SHARED)) {
        if (sum == FREED)
            sites_add2(w, bytes);
        else
            sites_add3(w, sum == RELEASED, bytes, usable);
        return;
    }
    __atomic_fetch_add(word, 1, __ATOMIC_RELAXED);
    __atomic_fetch_add(word + 1, bytes, __ATOMIC_RELAXED);
    if (sum != FREED)
        __atomic_fetch_add(word + 2, usable, __ATOMIC_RELAXED);
}

/* Undoes add(t, number, ALLOCATED, bytes, usable). */
static void take_back(const struct thread *t, uint64_t number, uint64_t bytes, uint64_t usable)
{
    struct ledger_site_words *w = sites_words(t->sums, SITES_ID((uint32_t)number));
    if (t->sums == sums_of(SHARDS_SHARED)) {
        __atomic_fetch_sub(&w->allocated_calls, 1, __ATOMIC_RELAXED);
        __atomic_fetch_sub(&w->allocated_bytes, bytes, __ATOMIC_RELAXED);
        __atomic_fetch_sub(&w->allocated_usable_bytes, usable, __ATOMIC_RELAXED);
    } else {
        __asm__ volatile("decq (%0)\n\tsubq %1, 8(%0)\n\tsubq %2, 16(%0)"
                         :
                         : "r"(w), "er"(bytes), "er"(usable)
                         : "memory", "cc");
    }
}

/* Backs the sums of the site, and of all sites in the same block of the table, with memory. False: there is no room. */
static bool back_sums(uint32_t number)
{
    const struct ledger_region *r = &process.ledger.header->regions[LEDGER_SITE_SUMS];
    uint32_t block = number / LEDGER_SITES_TOGETHER;
    while (load_acquire(&r->used) <= block)
        if (ledger_append(&process.ledger, LEDGER_SITE_SUMS, 1) == LEDGER_NONE)
            return false;
    return ledger_reach(&process.ledger, LEDGER_SITE_SUMS, (block + 1) * sizeof(struct ledger_site_sums));
}

void sites_begin_ledger(void)
{
    vm_reserve_obey(process.ledger.control);
    if (sites_counting)
        site_tables_take(process.generation);
    site_rules_begin_ledger();
    if (ledger_append(&process.ledger, LEDGER_SITES, LEDGER_SITE_FIRST) || !back_sums(LEDGER_SITE_OTHER))
        return;
    AT(LEDGER_SITES, struct ledger_site, LEDGER_SITE_NOBODY)->frame = LEDGER_NONE;
    AT(LEDGER_SITES, struct ledger_site, LEDGER_SITE_OTHER)->frame = LEDGER_NONE;
    if (!sites_counting)
        AT(LEDGER_SITES, struct ledger_site, LEDGER_SITE_NOBODY)->flags = LEDGER_SITE_UNFOLLOWED;
}

/* Adds a record for the site with the return address `pc`, and returns its number: with SITES_WRAPPER if the site lies
 * in a wrapper, and also SITES_STAYS if the wrapper's module is permanent. LEDGER_SITE_OTHER: there is no room. */
static uint32_t add_site(uintptr_t pc, uint32_t module)
{
    uint32_t number = ledger_append(&process.ledger, LEDGER_SITES, 1);
    if (number >= SITES_MOST || !back_sums(number))
        return LEDGER_SITE_OTHER;
    struct ledger_site *site = AT(LEDGER_SITES, struct ledger_site, number);
    site->frame = module == MODULE_NONE ? LEDGER_NONE : writer_caller_of_each(pc);
    modules[number] = (uint16_t)module;
    if (module == MODULE_NONE || !wrappers_have(module, pc - 1))
        return number;
    site->flags = LEDGER_SITE_WRAPPER;
    return number | SITES_WRAPPER | (unwind_modules.at[module].permanent ? SITES_STAYS : 0);
}

#define JIT_PC 1u /* stands for all return addresses outside of known modules: they share one site */

/* Converts an id with flags, as slots have it, to a number with the same flags. */
static uint32_t number_in(uint32_t id)
{
    return SITES_NUMBER(id & SITES_PLAIN) | (id & ~SITES_PLAIN);
}

/* Assigns a new site to the slot, which has the id `was`, and returns its number with flags. Code outside of known
 * modules shares the site of JIT_PC. If two threads assign at once, the number of the slower one stays unused. */
static uint32_t assign_site(struct sites_slot *slot, uintptr_t pc, uint32_t was)
{
    uint32_t module = pc == JIT_PC ? MODULE_NONE : module_find(pc);
    if (module == MODULE_NONE && pc != JIT_PC) {
        slot = sites_slots_take(JIT_PC);
        uint32_t jit = slot ? load_acquire(&slot->id) : SITES_ID(LEDGER_SITE_OTHER);
        return jit ? number_in(jit) : assign_site(slot, JIT_PC, 0);
    }
    uint32_t number = add_site(pc, module), id = SITES_ID(number & SITES_PLAIN) | (number & ~SITES_PLAIN);
    if (!__atomic_compare_exchange_n(&slot->id, &was, id, false, __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE))
        return number_in(was);
    return number;
}

/* Returns the number. Unless the site lies in a wrapper or outside of all modules: adds SITES_STACKS if a rule requests
 * the site's stacks; else makes the slot hot if sites_unload_is_noticed() for the module. */
static uint32_t apply_rules(struct sites_slot *slot, uint32_t number, uintptr_t pc)
{
    const struct ledger_control *c = process.ledger.control;
    int32_t state = load_acquire(&c->state);
    uint32_t module = number >= LEDGER_SITE_FIRST ? modules[number & SITES_PLAIN] : module_find(pc);
    if (number & SITES_WRAPPER || module >= MODULE_MAX)
        return number;
    if (number >= LEDGER_SITE_FIRST && site_rules_want_stacks(c, state, number, module, pc))
        return number | SITES_STACKS;
    if (sites_unload_is_noticed(&unwind_modules.at[module]))
        store_release(&slot->state, state);
    return number;
}

static bool may_be_unloaded(uint32_t id)
{
    uint32_t number = number_in(id) & SITES_PLAIN, module = number < SITES_MOST ? modules[number] : 0;
    return number < LEDGER_SITE_FIRST || module >= MODULE_MAX || !unwind_modules.at[module].permanent;
}

void sites_forget_unloadable(void)
{
    if (sites_counting)
        sites_slots_cool(may_be_unloaded);
}

/* Returns the number of the site, with the flags of add_site() and apply_rules(). If the slot is not hot: first assigns
 * a site if the slot has none or its module was unloaded. LEDGER_SITE_OTHER: the address gets no slot or record. */
static uint32_t number_at(uintptr_t pc)
{
    const struct sites_slot *known = sites_slot_known(pc);
    uint32_t id = load_acquire(&known->id);
    if (likely(id) && likely(sites_is_hot(known, pc)))
        return number_in(id);
    struct sites_slot *slot = pc > JIT_PC ? sites_slots_take(pc) : NULL;
    if (!slot)
        return LEDGER_SITE_OTHER;
    id = load_acquire(&slot->id);
    uint32_t number = number_in(id), plain = number & SITES_PLAIN;
    if (!id || (plain >= LEDGER_SITE_FIRST && !module_is_current(modules[plain], pc)))
        number = assign_site(slot, pc, id);
    return apply_rules(slot, number, pc);
}

/* Returns the number of the first caller of `at` that lies in no wrapper; if none is found, the number in `wrapper`. */
static ONE_COPY uint32_t number_of_caller(struct thread *t, struct walk_start at, uint32_t wrapper)
{
    uint32_t inner = wrapper & SITES_PLAIN;
    for (int n = 0; n < WRAPPERS_NESTED && writer_walk_out(t, &at); n++) {
        uint32_t number = number_at(at.pc);
        if (number & SITES_WRAPPER)
            continue;
        struct ledger_site *site = AT(LEDGER_SITES, struct ledger_site, number & SITES_PLAIN);
        if (number >= LEDGER_SITE_FIRST && !load_relaxed(&site->wrapper))
            store_relaxed(&site->wrapper, inner);
        return number;
    }
    return inner;
}

const struct sites_slot *sites_pass_wrappers(const struct walk_start *from)
{
    struct walk_start at = *from;
    for (int n = 0; n < WRAPPERS_NESTED; n++) {
        const struct sites_slot *slot = sites_slot_known(at.pc);
        if (!(load_relaxed(&slot->id) & SITES_STAYS))
            return slot;
        if (!writer_walk_out_known(&thread_self, &at))
            break;
    }
    return &sites_slot_none;
}

static uint32_t number_with_flags(struct thread *t, const struct walk_start *from)
{
    uint32_t number = number_at(from->pc);
    return likely(!(number & SITES_WRAPPER)) ? number : number_of_caller(t, *from, number);
}

static uint32_t number_of(struct thread *t, const struct walk_start *from)
{
    return number_with_flags(t, from) & SITES_PLAIN;
}

static void move_missed(void)
{
    uint64_t allocated = __atomic_exchange_n(&missed.allocated, 0, __ATOMIC_RELAXED);
    uint64_t freed = __atomic_exchange_n(&missed.freed, 0, __ATOMIC_RELAXED);
    struct ledger_site_words *w = sites_words(sums_of(SHARDS_SHARED), SITES_ID(LEDGER_SITE_NOBODY));
    __atomic_fetch_add(&w->allocated_calls, allocated, __ATOMIC_RELAXED);
    __atomic_fetch_add(&w->freed_calls, freed, __ATOMIC_RELAXED);
}

static bool enter_patiently(struct thread *t, uint8_t *outside)
{
    if (likely(ledger_enter_own(t, outside)))
        return true;
    process_wait();
    return ledger_enter_own(t, outside);
}

/* If another thread starts to make the ledger after the first process_wait(), process_open_ledger() returns false at
 * once: then the second process_wait() waits for that thread. */
static bool open_ledger(void)
{
    process_wait();
    if (process_open_ledger())
        return true;
    process_wait();
    return load_acquire(&process.stage) == LEDGER_STAGE_MADE;
}

/* Opens the ledger if necessary, and gives the thread sums in it, its own or shared ones. False: no ledger or room. */
static ONE_COPY bool attach_thread(struct thread *t)
{
    if (!open_ledger() || load_acquire(&process.ledger.header->regions[LEDGER_SITE_SUMS].ready_bytes) <
                              sizeof(struct ledger_site_sums))
        return false;
    uintptr_t *objects = object_map_tables();
    store_relaxed(&process.ledger.header->objects, (uintptr_t)objects);
    uint32_t shard = objects && !process.ledger.sealed ? shards_claim(process.pid) : SHARDS_SHARED;
    /* A signal handler that interrupts these lines may attach the thread. If it got a shard and we did not, the lines
     * below undo what it set: SHARDS_SHARED goes with no tables, because shared sums need atomic additions. */
    t->sums = sums_of(shard);
    __atomic_signal_fence(__ATOMIC_SEQ_CST);
    t->objects = shard != SHARDS_SHARED ? object_map_view(objects) : OBJECT_MAP_NONE_VIEW;
    t->counts = true;
    return true;
}

static bool thread_is_attached(struct thread *t)
{
    if (unlikely(!t->counts) && !attach_thread(t))
        return false;
    if (unlikely(load_relaxed(&missed.allocated) | load_relaxed(&missed.freed)))
        move_missed();
    return true;
}

/* Counts the free of `old`, which was not seen: the map still had this object where a new one was allocated. */
static void count_unseen_free(const struct thread *t, struct object old)
{
    add(t, SITES_NUMBER(old.account), RELEASED, old.bytes, old.bytes);
    add(t, LEDGER_SITE_NOBODY, RELEASED, old.bytes, old.bytes);
}

static void enter(const struct thread *t, uint32_t number, void *p, size_t size)
{
    struct object old;
    if (object_map_take((uintptr_t)p, &old))
        count_unseen_free(t, old);
    if (size > OBJECTS_BYTES_INLINE && object_map_take_from_page((uintptr_t)p, &old))
        count_unseen_free(t, old);
    bool stored = object_map_put((uintptr_t)p, (struct object){SITES_ID(number), size});
    add(t, stored ? number : LEDGER_SITE_NOBODY, ALLOCATED, size, sites_usable(p, size));
}

static void enter_call(struct thread *t, const struct walk_start *from, void *p, size_t size)
{
    uint32_t number = number_with_flags(t, from);
    if (number & SITES_STACKS)
        sites_count_stack(t, from, number & SITES_PLAIN, size);
    enter(t, number & SITES_PLAIN, p, size);
}

void sites_allocated_cold(const struct walk_start *from, void *p, size_t size)
{
    struct thread *t = &thread_self;
    uint8_t outside;
    if (t->busy)
        return;
    if (unlikely(!enter_patiently(t, &outside))) {
        __atomic_fetch_add(&missed.allocated, 1, __ATOMIC_RELAXED);
        return;
    }
    if (unlikely(!thread_is_attached(t)))
        __atomic_fetch_add(&missed.allocated, 1, __ATOMIC_RELAXED);
    else if (unlikely(!p))
        __atomic_fetch_add(&AT(LEDGER_SITES, struct ledger_site, number_of(t, from))->failed, 1,
                           __ATOMIC_RELAXED);
    else
        enter_call(t, from, p, size);
    ledger_exit(t, outside);
}

void *sites_book_cold(void *p, size_t size)
{
    struct walk_start from = WALK_CALLER();
    const struct sites_slot *slot = sites_pass_wrappers(&from);
    uintptr_t pc = load_relaxed(&slot->pc);
    if (likely(p && pc) && sites_allocated_hot(slot, pc, p, size, sites_heads_have_size))
        return p;
    sites_allocated_cold(&from, p, size);
    return p;
}

void sites_recharge_cold(const struct walk_start *from, void *p, size_t size)
{
    struct thread *t = &thread_self;
    struct object o;
    uint8_t outside;
    if (!p || t->busy || unlikely(!enter_patiently(t, &outside)))
        return;
    if (likely(t->counts) && object_map_take((uintptr_t)p, &o)) {
        take_back(t, SITES_NUMBER(o.account), o.bytes, sites_usable(p, o.bytes));
        enter_call(t, from, p, size);
    }
    ledger_exit(t, outside);
}

/* Returns the number of the tag's record in LEDGER_SITES; adds the record if there is none. If two threads do so at
 * once, the record of the slower one stays unused. LEDGER_SITE_OTHER: there is no room. */
static uint32_t number_of_tag(uint32_t account)
{
    uint32_t *known = site_tables_of_tag(account), number = known ? load_acquire(known) : 0;
    if (number || !known)
        return number ? number : LEDGER_SITE_OTHER;
    uint32_t mine = ledger_append(&process.ledger, LEDGER_SITES, 1);
    if (mine >= SITES_MOST || !back_sums(mine)) {
        mine = LEDGER_SITE_OTHER;
    } else {
        struct ledger_site *s = AT(LEDGER_SITES, struct ledger_site, mine);
        s->frame = LEDGER_NONE;
        s->tag = account;
    }
    return __atomic_compare_exchange_n(known, &number, mine, false, __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE)
               ? mine
               : number;
}

void sites_charge_tag(const void *object, uint32_t account)
{
    struct thread *t = &thread_self;
    void *p = (void *)(uintptr_t)object;
    struct object o;
    uint8_t outside;
    if (t->busy || unlikely(!ledger_enter_own(t, &outside)))
        return;
    if (likely(t->counts) && object_map_take((uintptr_t)p, &o)) {
        take_back(t, SITES_NUMBER(o.account), o.bytes, sites_usable(p, o.bytes));
        enter(t, number_of_tag(account), p, o.bytes);
    }
    ledger_exit(t, outside);
}

/* Removes the object from the map. False: it is not there. If there is no ledger yet, or if the thread gets no sums,
 * only counts the free in `missed`; no ledger is made for a free. */
static bool take(struct thread *t, void *p, struct object *o)
{
    *o = (struct object){0};
    if (unlikely(!t->counts) &&
        (load_acquire(&process.stage) != LEDGER_STAGE_MADE || !thread_is_attached(t))) {
        __atomic_fetch_add(&missed.freed, 1, __ATOMIC_RELAXED);
        return false;
    }
    return object_map_take((uintptr_t)p, o);
}

void sites_released_cold(const struct walk_start *from, void *p)
{
    struct thread *t = &thread_self;
    struct object o;
    uint8_t outside;
    if (!p || t->busy)
        return;
    if (unlikely(!enter_patiently(t, &outside))) {
        __atomic_fetch_add(&missed.freed, 1, __ATOMIC_RELAXED);
        return;
    }
    if (take(t, p, &o)) {
        add(t, SITES_NUMBER(o.account), RELEASED, o.bytes, sites_usable(p, o.bytes));
        add(t, number_of(t, from), FREED, o.bytes, 0);
    } else if (t->counts) {
        add(t, LEDGER_SITE_NOBODY, FREED, 0, 0);
    }
    ledger_exit(t, outside);
}

struct sites_taken sites_take(void *p)
{
    struct thread *t = &thread_self;
    struct sites_taken taken = {0};
    uint8_t outside;
    if (!p || t->busy || !sites_counting || unlikely(!enter_patiently(t, &outside)))
        return taken;
    taken.generation = t->generation;
    if (take(t, p, &taken.object))
        taken.usable_bytes = sites_usable(p, taken.object.bytes);
    ledger_exit(t, outside);
    return taken;
}

/* Counts the old object of a realloc() as freed; for no site if the map did not have it, or if a signal handler has
 * forked since sites_take(): the object was then in the map of the parent. */
static void count_realloc(struct thread *t, const struct walk_start *from, const struct sites_taken *taken)
{
    if (taken->object.account && taken->generation == t->generation) {
        add(t, SITES_NUMBER(taken->object.account), RELEASED, taken->object.bytes, taken->usable_bytes);
        add(t, number_of(t, from), FREED, taken->object.bytes, 0);
    } else {
        add(t, LEDGER_SITE_NOBODY, FREED, 0, 0);
    }
}

/* Puts the old object back into the map, because realloc() has failed; not in a child that was forked meanwhile. */
static void put_back(const struct thread *t, void *old, const struct sites_taken *taken)
{
    if (taken->object.account && taken->generation == t->generation &&
        !object_map_put((uintptr_t)old, taken->object))
        add(t, LEDGER_SITE_NOBODY, RELEASED, taken->object.bytes, taken->usable_bytes);
}

void sites_moved(const struct walk_start *from, void *old, struct sites_taken taken, void *p, size_t size,
                 bool failed)
{
    struct thread *t = &thread_self;
    uint8_t outside;
    if (!sites_counting || t->busy)
        return;
    if (old && enter_patiently(t, &outside)) {
        if (failed)
            put_back(t, old, &taken);
        else if (t->counts)
            count_realloc(t, from, &taken);
        ledger_exit(t, outside);
    }
    if (p || failed)
        sites_allocated_cold(from, p, size);
}

/* Allocates two chunks to see if the word before an object has the chunk's size: debugging aids of glibc change it. */
static bool heads_have_size(void)
{
    bool so = next.is_glibc && next.malloc_usable_size;
    for (size_t size = 24; so && size < 200; size += 101) {
        uint64_t *p = next.malloc(size);
        so = p && (p[-1] & ~(uint64_t)7) - 8 == next.malloc_usable_size(p);
        if (p)
            next.free(p);
    }
    return so;
}

void sites_begin(void)
{
    modules = vm_reserve(SITES_MOST * sizeof(*modules), false);
    if (!next.malloc || !modules || !vm_reserve_open(modules, SITES_MOST * sizeof(*modules)) ||
        !site_tables_begin(process.generation) || !object_map_tables())
        return;
    wrappers_begin(agent_state.wrappers);
    site_rules_begin();
    sites_heads_have_size = heads_have_size();
    sites_on = sites_counting = 1;
    sites_hooks_begin();
    sites_operators_begin();
}
