/* SPDX-License-Identifier: BSD-2-Clause */
#define ALLIUM_ONLY_ADDRESS(parameter) /* nothing in the library itself: see allium/tag.h */
#include "allium/tag.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>

#include "base/sigsafe/atomic.h"
#include "tag/agent_bridge.h"
#include "tag/call_details.h"
#include "tag/events.h"
#include "tag/event_rings.h"
#include "tag/helper_scope.h"
#include "tag/hot_objects.h"
#include "tag/tag_control.h"
#include "tag/tag_internal.h"
#include "tag/tag_ledger.h"
#include "target/fork_placeholder.h"
#include "target/object_map.h"
#include "target/shards.h"
#include "unwind/module.h"

/*
 * The slow paths of <allium/tag.h>. For example: the first request of a tag, of a thread, or in a 4 MiB unit of
 * addresses; large objects; all requests of threads that share the last shard, because all other shards have owners.
 */

_Static_assert(OBJECTS_UNIT_SHIFT == ALLIUM_UNIT_SHIFT && OBJECTS_BYTES_BITS == ALLIUM_BYTES_BITS &&
                   OBJECTS_BYTES_INLINE == ALLIUM_INLINE_BYTES_MAX &&
                   ALLIUM_BYTES_OF(~0u) == ALLIUM_INLINE_BYTES_MAX,
               "inline code of programs and of the agent reads the same map");

TAG_EXPORT __thread struct allium_thread allium_thread
    __attribute__((tls_model("initial-exec"))) = {.objects = object_map_none};
TAG_EXPORT uint32_t allium_objects_tracked;

static __thread struct {
    uint32_t generation; /* process.generation + 1 when the thread attached; 0: not attached yet */
    uint32_t shard;
} self __attribute__((tls_model("initial-exec")));

/* Gives the calling thread counters in the ledger of this process, unless it has them. */
static void thread_attach(void)
{
    uint32_t generation = process.generation + 1;
    if (self.generation == generation)
        return;
    self.shard = SHARDS_SHARED; /* for a signal handler that interrupts this function */
    self.generation = generation;
    allium_thread.objects = object_map_none;
    uintptr_t *objects = object_map_tables();
    if (objects) {
        tag_ledger_show_objects(objects);
        self.shard = shards_claim(process.ledger.header->pid);
    }
    allium_thread.counters = tag_ledger_counters(self.shard);
    __atomic_signal_fence(__ATOMIC_SEQ_CST);
    bool cold = self.shard == SHARDS_SHARED || helper_scope_is_on() || agent_bridge_has_sites();
    allium_thread.objects = cold ? object_map_none : objects;
}

void tag_use_cold_paths(bool all)
{
    bool own = self.generation && self.generation == process.generation + 1 && self.shard != SHARDS_SHARED;
    uintptr_t *objects = own && !all && !agent_bridge_has_sites() ? object_map_tables() : NULL;
    allium_thread.objects = objects ? objects : object_map_none;
}

static void add(uint32_t account, bool released, uint64_t bytes)
{
    tag_ledger_add(account, self.shard, released, 1, bytes);
}

TAG_EXPORT void allium_carry_cold(uint64_t *count, uint64_t bytes)
{
    tag_ledger_carry((struct ledger_count *)(void *)count, self.shard, bytes);
}

/* The account of a tag, and the actions that the rules of the control page request for the tag. */
struct tag_rules {
    uint32_t account; /* 0: the tag has none */
    uint32_t actions; /* bits 1 << enum ledger_action_kind, and TAG_CONTROL_COUNTED */
    struct ledger_action action;
};

static struct tag_rules rules_of(struct allium_tag *tag)
{
    struct tag_rules a = {0};
    if (load_acquire(&tag->counters) == ALLIUM_TAG_NO_ACCOUNT) {
        tag_control_turn_off(tag);
        return a;
    }
    if (!tag_ledger_open())
        return a;
    thread_attach();
    if (load_acquire(&tag->counters) == ALLIUM_TAG_UNREGISTERED && !tag_ledger_register(tag))
        return a;
    a.account = tag_ledger_number(load_acquire(&tag->counters));
    store_relaxed(&tag->entry, ledger_index_of(a.account, LEDGER_ACCOUNTS_TOGETHER) << ALLIUM_BYTES_BITS);
    a.actions = tag_control_lookup(tag, tag_ledger_target(a.account), &a.action);
    return a;
}

/* Returns the account of the tag, if the tag is counted; else 0. */
static uint32_t account_of(struct allium_tag *tag)
{
    struct tag_rules a = rules_of(tag);
    return a.actions & TAG_CONTROL_COUNTED ? a.account : 0;
}

/* Called after the library has counted an allocation with allium_add(). Updates the peak for large objects; for small
 * ones the next carry does so. */
static void update_peak(const struct allium_tag *tag, uint64_t bytes)
{
    if (bytes > ALLIUM_INLINE_BYTES_MAX)
        tag_ledger_added(allium_thread.counters + tag->counters, self.shard, bytes);
}

TAG_EXPORT void allium_account_cold(struct allium_tag *tag, size_t bytes, int sign)
{
    struct walk_start start = WALK_CALLER();
    if (tag_control_state(tag) > 0 && hot_account(tag, bytes, sign)) {
        if (sign > 0)
            update_peak(tag, bytes);
        return;
    }
    struct tag_rules a = rules_of(tag);
    if (a.actions & TAG_CONTROL_COUNTED)
        add(a.account, sign < 0, bytes);
    if (sign > 0 && tag_control_requests(a.actions, LEDGER_ACTION_STACKS))
        call_details_stack(a.account, bytes, &start);
}

uint32_t tag_account(struct allium_tag *tag)
{
    return account_of(helper_scope_of(tag));
}

void tag_allocated(uint32_t account, uint64_t bytes)
{
    add(account, false, bytes);
}

void tag_released(uint32_t account, uint64_t bytes)
{
    add(account, true, bytes);
}

void tag_released_part(uint32_t account, uint64_t bytes)
{
    tag_ledger_add(account, self.shard, true, 0, bytes);
}

void tag_released_unseen(uint32_t account)
{
    tag_ledger_count_unseen_free(account);
    tag_ledger_count_loss(LEDGER_LOST_TAGGED_FREES);
}

static void not_followed(uint32_t account)
{
    tag_ledger_count_unseen_free(account);
    tag_ledger_count_loss(LEDGER_LOST_TAGGED);
}

/* The map has the index of the account's counters in place of the account number; take() and put() convert. */
static bool take(bool (*how)(uintptr_t, struct object *), const void *p, struct object *o)
{
    bool ours = how((uintptr_t)p, o);
    o->account = ledger_number_at(o->account, LEDGER_ACCOUNTS_TOGETHER);
    return ours;
}

static bool put(const void *p, struct object o)
{
    o.account = ledger_index_of(o.account, LEDGER_ACCOUNTS_TOGETHER);
    return object_map_put((uintptr_t)p, o);
}

static void count_unseen_free(struct object old)
{
    add(old.account, true, old.bytes);
    tag_released_unseen(old.account);
}

/* Adds a new object to the map and counts it. If the map has an old object there, code without tags freed that one. */
static void enter(uint32_t account, const void *object, size_t bytes)
{
    struct object old;
    if (take(object_map_take, object, &old))
        count_unseen_free(old);
    if (bytes > ALLIUM_INLINE_BYTES_MAX && take(object_map_take_from_page, object, &old))
        count_unseen_free(old);
    if (put(object, (struct object){account, bytes})) {
        store_relaxed(&allium_objects_tracked, 1);
        add(account, false, bytes);
        agent_bridge_charged(object, account);
    } else {
        not_followed(account);
    }
}

void tag_object_add(uint32_t account, const void *object, size_t bytes)
{
    enter(account, object, bytes);
}

static inline bool track_hot(const struct allium_tag *tag, const void *object, size_t bytes)
{
    if (!hot_track(tag, object, bytes))
        return false;
    update_peak(tag, bytes);
    return true;
}

TAG_EXPORT void allium_track_cold(struct allium_tag *tag, const void *object, size_t bytes)
{
    if (tag_control_state(tag) > 0 && track_hot(tag, object, bytes))
        return;
    uint32_t account = account_of(helper_scope_of(tag));
    if (account)
        enter(account, object, bytes);
}

/* Does not make a ledger: a fork child has none before its first tagged request, and needs none until then, because it
 * counts no object of its parent. */
bool tag_ledger_attach(void)
{
    if (!process_has_ledger())
        return false;
    thread_attach();
    return true;
}

bool tag_object_take(const void *p, struct object *o)
{
    return p && tag_ledger_attach() && take(object_map_take, p, o);
}

void tag_object_put_back(const void *p, struct object o)
{
    if (!put(p, o))
        not_followed(o.account);
}

TAG_EXPORT void allium_untrack_cold(const void *p)
{
    struct hot_object hot;
    struct object o;
    if (hot_take(p, &hot) && hot.entry)
        hot_count_free(hot);
    else if (tag_object_take(p, &o))
        add(o.account, true, o.bytes);
}

TAG_EXPORT void allium_failed(struct allium_tag *tag)
{
    uint32_t account = account_of(helper_scope_of(tag));
    if (account)
        tag_ledger_count_failure(account);
}

/* Called before the allocation: starts to time it if requested. False: fault injection makes the request fail. */
static bool begin_call(struct allium_tag *tag, const struct walk_start *start)
{
    struct tag_rules a = rules_of(helper_scope_of(tag));
    if (tag_control_requests(a.actions, LEDGER_ACTION_FAIL) &&
        tag_control_fails(&a.action, tag_ledger_rule_calls(a.account))) {
        errno = ENOMEM;
        return false;
    }
    if (tag_control_requests(a.actions, LEDGER_ACTION_LATENCY) || a.actions & TAG_CONTROL_TRACED)
        call_details_begin(a.account, start->sp);
    return true;
}

/* Called after the allocation: records its duration and stack if the rules request this. Does not count the object. */
static void end_call(struct tag_rules a, const struct walk_start *start, const void *object, size_t bytes)
{
    const bool timed = tag_control_requests(a.actions, LEDGER_ACTION_LATENCY),
               traced = a.actions & TAG_CONTROL_TRACED;
    const uint64_t took_ns = timed || traced ? call_details_end(a.account, start->sp) : 0;
    if (timed && took_ns != UINT64_MAX)
        call_details_time(a.account, took_ns);
    if (traced)
        events_put_tag_call(a.account, object, bytes, took_ns, start->pc);
    if (object && tag_control_requests(a.actions, LEDGER_ACTION_STACKS))
        call_details_stack(a.account, bytes, start);
}

void tag_request_ended(struct allium_tag *tag, const void *object, size_t bytes)
{
    struct walk_start start = WALK_CALLER();
    end_call(rules_of(helper_scope_of(tag)), &start, object, bytes);
}

TAG_EXPORT uint64_t allium_latency_start_cold(struct allium_tag *tag)
{
    return tag_control_requests(rules_of(tag).actions, LEDGER_ACTION_LATENCY) ? process_ticks() : 0;
}

TAG_EXPORT void allium_latency_stop_cold(struct allium_tag *tag, uint64_t started)
{
    struct tag_rules a = rules_of(tag);
    uint64_t now = process_ticks();
    if (a.account && now >= started)
        call_details_time(a.account, now - started);
}

TAG_EXPORT int allium_should_fail_cold(struct allium_tag *tag)
{
    struct tag_rules a = rules_of(tag);
    if (!tag_control_requests(a.actions, LEDGER_ACTION_FAIL) ||
        !tag_control_fails(&a.action, tag_ledger_rule_calls(a.account)))
        return 0;
    if (a.actions & TAG_CONTROL_COUNTED)
        tag_ledger_count_failure(a.account);
    return 1;
}

TAG_EXPORT int allium_request_begin(struct allium_tag *tag)
{
    struct walk_start start = WALK_CALLER();
    return begin_call(tag, &start);
}

TAG_EXPORT void allium_request_end(struct allium_tag *tag, const void *object, size_t bytes)
{
    struct walk_start start = WALK_CALLER();
    struct tag_rules a = rules_of(helper_scope_of(tag));
    end_call(a, &start, object, bytes);
    if (!(a.actions & TAG_CONTROL_COUNTED))
        return;
    if (object)
        enter(a.account, object, bytes);
    else
        tag_ledger_count_failure(a.account);
}

/* Calls real(old, bytes). First takes the old object out of the map, because another thread may get its address. */
static void *move(void *(*real)(void *, size_t), struct allium_tag *tag, void *old, size_t bytes)
{
    struct object o = {0};
    bool ours = tag_object_take(old, &o);
    void *p = real(old, bytes);
    if (!p && (bytes || !old)) {
        if (ours)
            tag_object_put_back(old, o);
        return NULL;
    }
    if (ours)
        add(o.account, true, o.bytes);
    if (p && tag)
        allium_track_cold(tag, p, bytes);
    else if (p && ours)
        enter(o.account, p, bytes);
    return p;
}

void *tag_realloc(struct allium_tag *tag, void *old, size_t bytes)
{
    return move(realloc, tag, old, bytes);
}

TAG_EXPORT void *allium_realloc_by(void *(*real)(void *, size_t), void *old, size_t bytes)
{
    return move(real, NULL, old, bytes);
}

/* allium_realloc_tagged() after hot_take(); `bytes` is not 0. `tag`: NULL if it is off. */
static void *realloc_hot(struct allium_tag *tag, void *old, struct hot_object hot, size_t bytes)
{
    void *p = realloc(old, bytes);
    if (unlikely(!p)) {
        if (hot.entry)
            tag_object_put_back(old,
                                (struct object){.account = tag_ledger_number(ALLIUM_COUNTERS_OF(hot.entry)),
                                                .bytes = hot.bytes});
        if (tag)
            allium_failed(tag);
        return NULL;
    }
    if (hot.entry)
        hot_count_free(hot);
    if (tag && !track_hot(tag, p, bytes))
        allium_track_cold(tag, p, bytes);
    return p;
}

TAG_EXPORT void *allium_realloc_tagged(struct allium_tag *tag, void *old, size_t bytes)
{
    struct walk_start start = WALK_CALLER();
    struct hot_object hot = {0};
    int state =
        helper_scope_is_on() ? -1 : tag_control_state(tag); /* in a helper, the tag of its call decides */
    if (!state && !load_relaxed(&allium_objects_tracked))
        return realloc(old, bytes);
    if (likely(bytes && state >= 0 && (!old || hot_take(old, &hot))))
        return realloc_hot(state ? tag : NULL, old, hot, bytes);
    bool frees = old && !bytes; /* realloc(p, 0) frees p, and cannot fail */
    void *p = frees || begin_call(tag, &start) ? tag_realloc(tag, old, bytes) : NULL;
    if (!frees)
        end_call(rules_of(helper_scope_of(tag)), &start, p, bytes);
    if (!p && !frees)
        allium_failed(tag);
    return p;
}

TAG_EXPORT int allium_real_posix_memalign(void **out, size_t alignment, size_t bytes)
{
    return posix_memalign(out, alignment, bytes);
}

/* The parts of the ledger that the counting of an object writes to, for fork_placeholder_note(). */
enum { PART_HEADER, PART_TAGS, PART_ACCOUNTS, PART_EVENT_RINGS };

static void before_fork(void)
{
    const struct ledger *l = &process.ledger;
    const struct ledger_region *r = process_has_ledger() ? l->header->regions : NULL;
    fork_placeholder_note(PART_HEADER, l->header, r ? LEDGER_HEADER_BYTES : 0);
    fork_placeholder_note(PART_TAGS, l->regions[LEDGER_TAGS], r ? r[LEDGER_TAGS].ready_bytes : 0);
    fork_placeholder_note(PART_ACCOUNTS, l->regions[LEDGER_ACCOUNTS], r ? r[LEDGER_ACCOUNTS].ready_bytes : 0);
    event_rings_before_fork(PART_EVENT_RINGS);
}

/* The forking thread has addresses of counters in the parent's ledger: inline code must not use them in the child. If a
 * signal handler forked, the code that it interrupted may still use them, even if the child has a ledger already:
 * fork_placeholder_put() maps memory there. */
static void in_child(void)
{
    if (!process_has_ledger())
        allium_thread.objects = object_map_none;
    fork_placeholder_put();
}

/* Opens the ledger when the library is loaded: usually there is only one thread then, and no seccomp filter. Later,
 * several threads might need the ledger at once, and would have to wait for the thread that makes it. */
__attribute__((constructor)) static void begin(void)
{
    module_init();
    pthread_atfork(before_fork, NULL, in_child);
    if (tag_ledger_open())
        thread_attach();
}
