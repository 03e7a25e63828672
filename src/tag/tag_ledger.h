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
 * A descriptor in the memory of liballium.so (see callsite_tags.h). `version` of `tag` is TAG_LEDGER_FAR. `code` and
 * `text` are used instead of the offsets in `tag`.
 */
struct tag_ledger_far {
    struct allium_tag tag;
    const char *code, *text;
};
#define TAG_LEDGER_FAR 0x80000000u

/** Convert between the number of an account and the offset, in bytes, of its counters from tag_ledger_counters(). */
static inline uint32_t tag_ledger_number(uint32_t offset)
{
    return ledger_number_at(offset / sizeof(struct ledger_words), LEDGER_ACCOUNTS_TOGETHER);
}

static inline uint32_t tag_ledger_offset(uint32_t number)
{
    return ledger_index_of(number, LEDGER_ACCOUNTS_TOGETHER) * (uint32_t)sizeof(struct ledger_words);
}

/** Opens the ledger of this process, if there is none. False: there can be none, or another thread still makes it. */
bool tag_ledger_open(void);
/** Gives the descriptor an account. False: no room, or the descriptor is damaged or of another version. */
bool tag_ledger_register(struct allium_tag *tag);
/** Returns the record of an account in the ledger. */
struct ledger_tag *tag_ledger_tag(uint32_t number);
/** Returns the place of an account, with the keys by which rules identify the place. */
struct deferred_target *tag_ledger_target(uint32_t number);
/** Returns the counter of calls that tag_control_fails() uses for the account. */
uint64_t *tag_ledger_rule_calls(uint32_t number);
/** Returns the address of the counters of account 0 in a shard. */
char *tag_ledger_counters(uint32_t shard);
/**
 * Adds an object of an account to the counters of a shard: as allocated, or, if `released`, as freed. `calls`: 1, or 0
 * for a part of an object. May update the peak.
 */
void tag_ledger_add(uint32_t number, uint32_t shard, bool released, unsigned calls, uint64_t bytes);
/** Carries to the second word of a counter, because inline code has added `bytes` to the first word, which is full. */
void tag_ledger_carry(struct ledger_count *count, uint32_t shard, uint64_t bytes);
/**
 * Updates the peak if many bytes were allocated since the last update. Called after `bytes` bytes were added to the
 * counter at `count` without tag_ledger_add().
 */
void tag_ledger_added(const char *count, uint32_t shard, uint64_t bytes);
/** Write the address of the directory of the map of objects, or of the tree of mappings, to the ledger's header. */
void tag_ledger_show_objects(const void *tables);
void tag_ledger_show_ranges(const void *table);
void tag_ledger_count_loss(enum ledger_loss what);
/** Adds 1 to the failed requests of the account. */
void tag_ledger_count_failure(uint32_t number);
/**
 * Counts an object of the account whose free was not seen, or that the library could not add to the map: from then on
 * the live bytes of the account are not exact.
 */
void tag_ledger_count_unseen_free(uint32_t number);

#endif
