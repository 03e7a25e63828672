/* SPDX-License-Identifier: BSD-2-Clause */
#include "tag/tag_ledger.h"

#include <dlfcn.h>
#include <elf.h>
#include <link.h>
#include <stddef.h>
#include <stdlib.h>
#include <sys/auxv.h>

#include "base/sigsafe/str.h"
#include "tag/agent_bridge.h"
#include "tag/call_details.h"
#include "tag/event_rings.h"
#include "tag/events.h"
#include "tag/mmap_ranges.h"
#include "tag/tag_control.h"
#include "tag/tag_index.h"
#include "tag/tag_strings.h"
#include "tag/tags_met.h"
#include "target/ledger_stacks.h"
#include "target/object_map.h"
#include "target/vm_reserve.h"
#include "wire/deferred_rules.h"

#define LIMIT_BYTES (64ull << 20)
#define OPEN_TRIES  2 /* after the first wait, another thread may begin to make the ledger: wait again */

/* tag_index.c also relies on TAGS_MET_MOST. */
_Static_assert(TAGS_MET_MOST *LEDGER_ACCOUNT_SHARDS <= 1u << (32 - ALLIUM_BYTES_BITS) &&
                   TAGS_MET_MOST / LEDGER_ACCOUNTS_TOGETHER * sizeof(struct ledger_accounts) <= LIMIT_BYTES,
               "an entry has no more bits, and a table no more room");
_Static_assert(sizeof(struct ledger_words) == 1 << (ALLIUM_BYTES_BITS - 7), "ALLIUM_COUNTERS_OF() knows it");

static uint32_t accounts, accounts_of_parent; /* the highest account number + 1; its value at the fork */

#define AT(table, type, index) ledger_at(&process.ledger, table, type, index)

static const char *variable(const char *name)
{
    const char *value = secure_getenv(name);
    return value ? value : "";
}

void process_begin_library(void)
{
    const void *random = (const void *)getauxval(AT_RANDOM);
    text_copy(process.config.dir, sizeof(process.config.dir), variable("ALLIUM_DIR"));
    text_copy(process.config.runtime_dir, sizeof(process.config.runtime_dir), variable("XDG_RUNTIME_DIR"));
    process.config.limit_bytes = LIMIT_BYTES;
    process.config.tags = true;
    process_control_at_start(text_starts(variable("ALLIUM_TAGS"), "off") ? LEDGER_CONTROL_TAGS_OFF : 0);
    events_begin_library(variable("ALLIUM_EVENTS"));
    if (random)
        __builtin_memcpy(&process.config.image_id, random, sizeof(process.config.image_id));
    process.exec_name = (const char *)getauxval(AT_EXECFN);
    agent_bridge_begin();
    tag_index_init();
    tags_met_begin();
}

uint64_t process_ticks(void)
{
    return event_rings_ns();
}

/* Backs the block of the ledger that has the counters of the account. Returns false if there is no room. */
static bool back_account(uint32_t number)
{
    const struct ledger_region *r = &process.ledger.header->regions[LEDGER_ACCOUNTS];
    while (load_acquire(&r->used) <= number / LEDGER_ACCOUNTS_TOGETHER)
        if (ledger_append(&process.ledger, LEDGER_ACCOUNTS, 1) == LEDGER_NONE)
            return false;
    return ledger_reach(&process.ledger, LEDGER_ACCOUNTS,
                        (number / LEDGER_ACCOUNTS_TOGETHER + 1) * sizeof(struct ledger_accounts));
}

/* Adds the build id of the module mapped at `image`, if it has one in its notes, to *m. */
static void add_build_id(struct ledger_module *m, const char *image)
{
    const Elf64_Ehdr *h = (const Elf64_Ehdr *)image;
    const Elf64_Phdr *p = (const Elf64_Phdr *)(image + h->e_phoff), *end = p + h->e_phnum;
    for (; p < end; p++) {
        const char *at = (const char *)m->bias + p->p_vaddr, *stop = at + p->p_memsz;
        while (p->p_type == PT_NOTE && p->p_align <= 4 && at + sizeof(Elf64_Nhdr) <= stop) {
            const Elf64_Nhdr *n = (const Elf64_Nhdr *)at;
            const char *id = at + sizeof(*n) + ((n->n_namesz + 3) & ~3u);
            if (n->n_type == NT_GNU_BUILD_ID && n->n_descsz <= LEDGER_BUILD_ID_BYTES) {
                m->build_id_len = (uint8_t)n->n_descsz;
                __builtin_memcpy(m->build_id, id, n->n_descsz);
            }
            at = id + ((n->n_descsz + 3) & ~3u);
        }
    }
}

/* Returns the index of a module's record in the ledger; adds a record if there is none. LEDGER_NONE: no room. */
static uint32_t module_of(const struct dl_find_object *found)
{
    const struct link_map *map = found->dlfo_link_map;
    const struct ledger_region *r = &process.ledger.header->regions[LEDGER_MODULES];
    struct ledger_module m = {.start = (uint64_t)found->dlfo_map_start,
                              .end = (uint64_t)found->dlfo_map_end,
                              .bias = map->l_addr,
                              .path = map->l_name[0] ? tag_strings_number(map->l_name)
                                                     : process.ledger.header->exe};
    for (uint32_t i = 0; i < load_acquire(&r->used); i++) {
        const struct ledger_module *known = AT(LEDGER_MODULES, struct ledger_module, i);
        if (known->start == m.start && known->end == m.end && known->path == m.path)
            return i;
    }
    uint32_t at = ledger_append(&process.ledger, LEDGER_MODULES, 1);
    if (at == LEDGER_NONE)
        return at;
    m.seen_ticks = process_ticks();
    add_build_id(&m, found->dlfo_map_start);
    *AT(LEDGER_MODULES, struct ledger_module, at) = m;
    return at;
}

/* Sets the keys by which rules of the control page identify the place and its module. */
static void set_keys(struct deferred_target *place, uint32_t module, uint64_t code)
{
    const void *id = "";
    uint64_t bytes = 0;
    if (module != LEDGER_NONE) {
        const struct ledger_module *m = AT(LEDGER_MODULES, struct ledger_module, module);
        const char *path = AT(LEDGER_STRINGS, char, m->path);
        id = m->build_id_len ? (const void *)m->build_id : path;
        bytes = m->build_id_len ? m->build_id_len : text_length(path);
    }
    place->key = ledger_action_key(id, bytes, code);
    place->module = ledger_module_key(id, bytes);
}

static uint64_t code_of(const struct tag_met *of, const struct dl_find_object *found)
{
    return (uint64_t)of->place.code - found->dlfo_link_map->l_addr;
}

/*
 * Returns the identity of a place for tag_index.h. 0: the module has no record or no build id. Without a build id it is
 * unknown whether a module that is loaded later from the same file is the same.
 */
static uint64_t identity_of(const struct tag_met *of, uint32_t module)
{
    if (module == LEDGER_NONE)
        return 0;
    const struct ledger_module *m = AT(LEDGER_MODULES, struct ledger_module, module);
    const char *path = AT(LEDGER_STRINGS, char, m->path);
    return m->build_id_len ? tag_index_identity(of->place.key + of->line, path, of->place.text) : 0;
}

/* Writes the record of an account to the ledger. */
static void write_record(uint32_t number, const struct tag_met *of, uint32_t module, uint64_t code)
{
    const char *class = of->place.text ? of->place.text : "\0\0", *end = (const char *)UINTPTR_MAX;
    struct ledger_tag *t = AT(LEDGER_TAGS, struct ledger_tag, number);
    *t = (struct ledger_tag){.class = tag_strings_number(class),
                             .name = tag_strings_number(class + text_length(class) + 1),
                             .file = tag_strings_number(tag_index_file(class, NULL, end)),
                             .line = of->line,
                             .module = module,
                             .code = code};
    store_release(&t->account, number);
}

struct ledger_tag *tag_ledger_tag(uint32_t number)
{
    return AT(LEDGER_TAGS, struct ledger_tag, number);
}

struct deferred_target *tag_ledger_target(uint32_t number)
{
    return &tags_met[number].place;
}

uint64_t *tag_ledger_rule_calls(uint32_t number)
{
    return &tags_met[number].calls;
}

static struct tag_met description_of(const struct allium_tag *tag)
{
    if (tag->version == TAG_LEDGER_FAR) {
        const struct tag_ledger_far *far = (const struct tag_ledger_far *)(const void *)tag;
        return (struct tag_met){.place = {.code = far->code, .text = far->text}};
    }
    return (struct tag_met){.place = {.code = (const char *)&tag->code + tag->code,
                                      .text = tag->text ? (const char *)&tag->text + tag->text : NULL},
                            .line = tag->line};
}

/* True: the version is known, and code, texts and page are in one loaded module (TAG_LEDGER_FAR: the code is). */
static bool is_sound(const struct allium_tag *tag, const struct tag_met *of, struct dl_find_object *found)
{
    if (_dl_find_object((void *)of->place.code, found))
        return false;
    if (tag->version != ALLIUM_TAG_VERSION)
        return tag->version == TAG_LEDGER_FAR;
    const char *start = found->dlfo_map_start, *end = found->dlfo_map_end;
    return tag_control_is_between(tag, start, end) &&
           (!of->place.text || tag_index_file(of->place.text, start, end));
}

static bool is_of_another_version(const struct allium_tag *tag)
{
    return tag->version != ALLIUM_TAG_VERSION && tag->version != TAG_LEDGER_FAR;
}

/* Returns the account of the place, or a new account. TAGS_MET_MOST or more: there is no room. */
static uint32_t number_for(struct tag_met *of, uint64_t identity)
{
    uint32_t number = identity ? tag_index_account(identity, 0) : 0;
    if (!number)
        return ledger_append(&process.ledger, LEDGER_TAGS, 1);
    of->calls = tags_met[number].calls;
    return number;
}

static void remember(uint32_t number, const struct tag_met *of, uint32_t module, uint64_t code)
{
    tags_met[number] = *of;
    if (of->place.text)
        tags_met[number].place.file = tag_index_file(of->place.text, NULL, (const char *)UINTPTR_MAX);
    for (uint32_t most = load_relaxed(&accounts); most <= number;)
        __atomic_compare_exchange_n(&accounts, &most, number + 1, false, __ATOMIC_RELAXED, __ATOMIC_RELAXED);
    if (!load_acquire(&AT(LEDGER_TAGS, struct ledger_tag, number)->account))
        write_record(number, of, module, code);
}

bool tag_ledger_register(struct allium_tag *tag)
{
    uint32_t not_met = ALLIUM_TAG_UNREGISTERED, number = LEDGER_NONE, module = LEDGER_NONE;
    struct tag_met of = description_of(tag);
    struct dl_find_object found;
    uint64_t identity = 0, code = 0;
    bool sound = is_sound(tag, &of, &found);
    if (sound && tags_met) {
        module = module_of(&found);
        code = code_of(&of, &found);
        of.map = found.dlfo_link_map;
        set_keys(&of.place, module, code);
        /* `allium set` cannot find tags of callsite_tag() in a file: the process applies the deferred rules to them. */
        if (tag->version == TAG_LEDGER_FAR)
            of.place.module = 0;
        identity = identity_of(&of, module);
        number = number_for(&of, identity);
    }
    if (!sound)
        tag->control = 0;
    bool kept = number < TAGS_MET_MOST && back_account(number) && tags_met_reach(number);
    if (!kept && __atomic_compare_exchange_n(&tag->counters, &not_met, ALLIUM_TAG_NO_ACCOUNT, false,
                                             __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE))
        tag_ledger_count_loss(is_of_another_version(tag) ? LEDGER_LOST_TAG_VERSIONS : LEDGER_LOST_TAGS);
    if (!kept)
        return not_met != ALLIUM_TAG_NO_ACCOUNT && not_met != ALLIUM_TAG_UNREGISTERED;
    remember(number, &of, module, code);
    if (!__atomic_compare_exchange_n(&tag->counters, &not_met, tag_ledger_offset(number), false,
                                     __ATOMIC_ACQ_REL,
                                     __ATOMIC_ACQUIRE)) { /* another thread has registered the tag */
        if (not_met != tag_ledger_offset(number)) {
            tags_met[number].place.code = NULL;
            store_relaxed(&AT(LEDGER_TAGS, struct ledger_tag, number)->account, 0);
        }
        return not_met != ALLIUM_TAG_NO_ACCOUNT;
    }
    if (identity)
        tag_index_account(identity, number);
    tag_control_show(process.ledger.control, tag);
    return true;
}

/* In a fork child: writes records for the parent's accounts whose module is still loaded, with the same numbers. */
static bool inherit(void)
{
    struct dl_find_object found, texts;
    for (uint32_t n = 1; n < accounts_of_parent; n++) {
        if (ledger_append(&process.ledger, LEDGER_TAGS, 1) == LEDGER_NONE || !back_account(n))
            return false;
        bool there = tags_met[n].place.code && tag_index_module(tags_met[n].place.code, &found);
        const char *text = tags_met[n].place.text; /* another library may have been loaded at this address */
        if (there && text &&
            (!tag_index_module(text, &texts) ||
             !tag_index_file(text, texts.dlfo_map_start, texts.dlfo_map_end)))
            there = false;
        if (there && found.dlfo_link_map == tags_met[n].map)
            write_record(n, &tags_met[n], module_of(&found), code_of(&tags_met[n], &found));
    }
    return true;
}

/* Uses the ledger of the agent; without an agent, makes a ledger. */
static enum agent_api_answer open_ledger(void)
{
    if (agent_api_agent) {
        const enum agent_api_answer answer = agent_api_agent->open(&process.ledger);
        if (answer == AGENT_API_OPEN)
            process.config.image_id = process.ledger.header->image_id; /* files beside it are named so */
        return answer;
    }
    if (ledger_make(&process.ledger, &process.config))
        return AGENT_API_NEVER;
    process_describe(LEDGER_CLOCK_NS);
    return AGENT_API_OPEN;
}

enum ledger_stage process_begin_ledger(void)
{
    const struct ledger_control *inherited = process.config.initial_control;
    enum agent_api_answer answer = open_ledger();
    if (answer != AGENT_API_OPEN)
        return answer == AGENT_API_LATER ? LEDGER_STAGE_NONE : LEDGER_STAGE_FAILED;
    headroom_set_ledger(ledger_mapped_bytes(process.ledger.header)); /* even if it is the agent's ledger */
    if (process.ledger.control == &ledger_no_control)
        process.ledger.control = inherited;
    events_begin_ledger();
    if (!back_account(0) || ledger_append(&process.ledger, LEDGER_TAGS, 1) ||
        !inherit()) /* account 0 is not used */
        return LEDGER_STAGE_FAILED;
    tag_control_show_again(process.ledger.control);
    vm_reserve_obey(process.ledger.control);
    process_drop_control(inherited);
    process.ledger.header->magic = LEDGER_MAGIC;
    return LEDGER_STAGE_MADE;
}

void process_become_child(void)
{
    accounts_of_parent = load_relaxed(&accounts);
    vm_reserve_obey(NULL);
    object_map_begin_anew();
    mmap_ranges_reset();
    call_details_reset();
    tag_strings_reset();
}

bool tag_ledger_open(void)
{
    for (int tries = 0; tries < OPEN_TRIES && !process_has_ledger(); tries++) {
        if (process_update() && process_open_ledger())
            return true;
        process_wait();
    }
    return process_has_ledger();
}

char *tag_ledger_counters(uint32_t shard)
{
    return process.ledger.regions[LEDGER_ACCOUNTS] +
           shard * LEDGER_ACCOUNTS_TOGETHER * sizeof(struct ledger_words);
}

void tag_ledger_show_objects(const void *tables)
{
    store_relaxed(&process.ledger.header->tagged, (uintptr_t)tables);
}

void tag_ledger_show_ranges(const void *table)
{
    store_relaxed(&process.ledger.header->ranges, (uintptr_t)table);
}

void tag_ledger_count_loss(enum ledger_loss what)
{
    __atomic_fetch_add(&process.ledger.header->losses[what], 1, __ATOMIC_RELAXED);
}

void tag_ledger_count_unseen_free(uint32_t number)
{
    __atomic_fetch_add(&AT(LEDGER_TAGS, struct ledger_tag, number)->unseen, 1, __ATOMIC_RELAXED);
}

void tag_ledger_count_failure(uint32_t number)
{
    __atomic_fetch_add(&AT(LEDGER_TAGS, struct ledger_tag, number)->failed, 1, __ATOMIC_RELAXED);
}

__attribute__((destructor)) static void end(void)
{
    if (!agent_api_agent)
        process_end();
}
