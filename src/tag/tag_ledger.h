/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef TAG_TAG_LEDGER_H
#define TAG_TAG_LEDGER_H

/*
 * The ledger of tags: which tags were met, and their accounts.
 *
 * Runs in: target, cold paths. Threads: any, signal handlers included; no lock. A fork child begins a ledger of its
 * own at its first tagged request, in which the accounts have the numbers that its inherited descriptors know.
 */

#include <stdbool.h>
#include <stdint.h>

#include "allium/tag.h"
#include "target/deferred_match.h"
#include "target/process_image.h"

/** A descriptor that does not lie beside its code: `version` is TAG_LEDGER_FAR, and code and text are told here. */
struct tag_ledger_far {
    struct allium_tag tag;
    const char *code, *text;
};
#define TAG_LEDGER_FAR 0x80000000u

/** The number of an account whose words lie there, and the other way round. */
static inline uint32_t tag_ledger_number(uint32_t words)
{
    return ledger_number_at(words / sizeof(struct ledger_words), LEDGER_ACCOUNTS_TOGETHER);
}

static inline uint32_t tag_ledger_offset(uint32_t number)
{
    return ledger_index_of(number, LEDGER_ACCOUNTS_TOGETHER) * (uint32_t)sizeof(struct ledger_words);
}

/**
 * There is a ledger of this process's own. False: there is none and cannot be, or somebody else is making it just
 * now.
 */
bool tag_ledger_open(void);
/** The descriptor is met: it has an account. False: there is no room for one. */
bool tag_ledger_register(struct allium_tag *tag);
/** Its record. */
struct ledger_tag *tag_ledger_tag(uint32_t number);
/** What is known of its place. */
struct deferred_target *tag_ledger_target(uint32_t number);
/** Calls of it that tag_control_fails() counts. */
uint64_t *tag_ledger_rule_calls(uint32_t number);
/** First words of a shard, of account 0. */
char *tag_ledger_counters(uint32_t shard);
/** One more object of so many bytes in a shard's account, or one less; with `calls` 0 a part of one. */
void tag_ledger_add(uint32_t number, uint32_t shard, bool gone, unsigned calls, uint64_t bytes);
/** The count, to which a call of so many bytes was added, is to hand its calls on. */
void tag_ledger_carry(struct ledger_count *count, uint32_t shard, uint64_t bytes);
/** The ledger tells where the map of objects lies; and where that of mappings. */
void tag_ledger_show_objects(const void *tables);
void tag_ledger_show_ranges(const void *table);
void tag_ledger_count_loss(enum ledger_loss what);
/** A request of that account's tag failed. */
void tag_ledger_count_failure(uint32_t number);
/**
 * An object of that account was freed by others, or could not be followed: what is live there is not exact any more.
 */
void tag_ledger_count_unseen_free(uint32_t number);

#endif
