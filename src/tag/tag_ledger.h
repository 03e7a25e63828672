/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef TAG_TAG_LEDGER_H
#define TAG_TAG_LEDGER_H

/*
 * The part of the ledger that belongs to tags: the tags that the process has used so far, and their accounts.
 *
 * Runs in: target, cold paths. Threads: any, signal handlers included; no lock. A fork child makes a ledger of its
 * own at its first tagged request. The accounts keep their numbers, because inherited descriptors refer to them.
 */

#include <stdbool.h>
#include <stdint.h>

#include "allium/tag.h"
#include "target/deferred_match.h"
#include "target/process_image.h"

/**
 * A descriptor in the memory of liballium.so (see callsite_tags.h). Its `version` is TAG_LEDGER_FAR. It has pointers to
 * code and texts instead of offsets.
 */
struct tag_ledger_far {
    struct allium_tag tag;
    const char *code, *text;
};
#define TAG_LEDGER_FAR 0x80000000u

/** Convert between the number of an account and the offset of its counters in a shard. */
static inline uint32_t tag_ledger_number(uint32_t words)
{
    return ledger_number_at(words / sizeof(struct ledger_words), LEDGER_ACCOUNTS_TOGETHER);
}

static inline uint32_t tag_ledger_offset(uint32_t number)
{
    return ledger_index_of(number, LEDGER_ACCOUNTS_TOGETHER) * (uint32_t)sizeof(struct ledger_words);
}

/** Makes the ledger of this process, if there is none. False: there can be none, or another thread is making it. */
bool tag_ledger_open(void);
/** Gives the descriptor an account. False: there is no room for one. */
bool tag_ledger_register(struct allium_tag *tag);
/** The record of an account in the ledger. */
struct ledger_tag *tag_ledger_tag(uint32_t number);
/** The place of an account, with the keys that rules are matched with. */
struct deferred_target *tag_ledger_target(uint32_t number);
/** The counter of calls that tag_control_fails() uses for the account. */
uint64_t *tag_ledger_rule_calls(uint32_t number);
/** The counters of account 0 in a shard. */
char *tag_ledger_counters(uint32_t shard);
/**
 * Counts an object of an account in a shard as allocated, or, if `released`, as freed. `calls`: 1, or 0 for a part of
 * an object.
 */
void tag_ledger_add(uint32_t number, uint32_t shard, bool released, unsigned calls, uint64_t bytes);
/** Inline code has added `bytes` to the first word of a counter, which is full now: carries to the second word. */
void tag_ledger_carry(struct ledger_count *count, uint32_t shard, uint64_t bytes);
/** Write the address of the map of objects, or of the table of mappings, to the ledger, for other processes. */
void tag_ledger_show_objects(const void *tables);
void tag_ledger_show_ranges(const void *table);
void tag_ledger_count_loss(enum ledger_loss what);
/** Counts a failed request of the account. */
void tag_ledger_count_failure(uint32_t number);
/**
 * Counts an object of the account that code without tags has freed, or that the library could not put into the map:
 * from then on the live bytes of the account are not exact.
 */
void tag_ledger_count_unseen_free(uint32_t number);

#endif
