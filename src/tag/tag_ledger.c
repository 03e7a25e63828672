/* SPDX-License-Identifier: BSD-2-Clause */
#include "tag/tag_ledger.h"

#include <dlfcn.h>
#include <elf.h>
#include <fcntl.h>
#include <link.h>
#include <signal.h>
#include <stddef.h>
#include <stdlib.h>
#include <sys/auxv.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <time.h>

#include "base/sigsafe/clock_ns.h"
#include "target/object_map.h"
#include "target/ledger_stacks.h"
#include "base/sigsafe/draw.h"
#include "base/sigsafe/syscall.h"
#include "base/sigsafe/str.h"
#include "target/vm_reserve.h"
#include "tag/tag_control.h"
#include "tag/call_details.h"
#include "tag/agent_bridge.h"
#include "tag/tag_index.h"
#include "tag/tag_strings.h"
#include "tag/tags_met.h"
#include "tag/mmap_ranges.h"
#include "tag/spin_wait.h"
#include "wire/deferred_rules.h"
#include "wire/headroom.h"
#include "wire/ledger_make.h"

#define LIMIT_BYTES (64ull << 20)

/* As tag_index.c knows it, too. */
_Static_assert(TAGS_MET_MOST *LEDGER_ACCOUNT_SHARDS <= 1u << (32 - ALLIUM_BYTES_BITS) &&
                   TAGS_MET_MOST / LEDGER_ACCOUNTS_TOGETHER * sizeof(struct ledger_accounts) <= LIMIT_BYTES,
               "an entry has no more bits, and a table no more room");
_Static_assert(sizeof(struct ledger_words) == 1 << (ALLIUM_BYTES_BITS - 7), "ALLIUM_COUNTERS_OF() knows it");

enum stage { STAGE_NONE, STAGE_MAKING, STAGE_MADE, STAGE_FAILED };

struct ledger tag_ledger = {.control = &ledger_no_control};
static struct ledger_config config;
static uint32_t stage, generation;
/* What the process knows of itself, in a page that the kernel wipes in fork children. */
enum { UNAWARE, AWARE, LEARNING };
static uint32_t alive_fallback = AWARE, *alive = &alive_fallback;
static uint64_t parent_image_id;
static union {
    struct ledger_control control;
    char page[LEDGER_PAGE_BYTES];
} asked_at_start;
static bool began;

static bool in_vain;                          /* was waited for who makes them */
static uint32_t accounts, accounts_of_parent; /* one more than the highest number */

#define AT(table, type, index) ledger_at(&tag_ledger, table, type, index)

static const char *variable(const char *name)
{
    const char *value = secure_getenv(name);
    return value ? value : "";
}

static void describe_image(void)
{
    struct ledger_header *h = tag_ledger.header;
    char exe[LEDGER_PATH_BYTES * 4];
    h->clock = LEDGER_CLOCK_NS;
    h->began_ticks = h->began_monotonic_ns = clock_ns(CLOCK_MONOTONIC);
    h->began_realtime_ns = clock_ns(CLOCK_REALTIME);
    h->parent_pid = (int32_t)sys_call(SYS_getppid, 0);
    h->parent_image_id = parent_image_id;
    h->forked_ticks = parent_image_id ? h->began_ticks : 0;
    sys_call(SYS_prctl, PR_GET_NAME, h->comm);
    long length = sys_call(SYS_readlinkat, AT_FDCWD, "/proc/self/exe", exe, sizeof(exe) - 1);
    exe[sys_failed(length) ? 0 : length] = '\0';
    ledger_stacks_add_string(&tag_ledger, ""); /* string 0 */
    h->exe = ledger_stacks_add_string(&tag_ledger, exe);
}

static void begin_process(void)
{
    const void *random = (const void *)getauxval(AT_RANDOM);
    long page = sys_call(SYS_mmap, 0, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    text_copy(config.dir, sizeof(config.dir), variable("ALLIUM_DIR"));
    text_copy(config.runtime_dir, sizeof(config.runtime_dir), variable("XDG_RUNTIME_DIR"));
    config.limit_bytes = LIMIT_BYTES;
    config.tags = true;
    config.asked = &asked_at_start.control;
    asked_at_start.control.word = text_starts(variable("ALLIUM_TAGS"), "off") ? LEDGER_CONTROL_TAGS_OFF : 0;
    if (random)
        __builtin_memcpy(&config.image_id, random, sizeof(config.image_id));
    if (!sys_failed(page)) {
        *(uint32_t *)page = AWARE;
        alive = (uint32_t *)page;
        sys_call(SYS_madvise, page, 4096, MADV_WIPEONFORK);
    }
    headroom_begin();
    agent_bridge_begin();
    tag_index_init();
    tags_met_begin();
}

bool tag_ledger_is_ours(void)
{
    return load_acquire(&stage) == STAGE_MADE && load_relaxed(alive) == AWARE;
}

int32_t tag_ledger_process(void)
{
    return tag_ledger.header->pid;
}

uint32_t tag_ledger_generation(void)
{
    return generation;
}

/* Room for the account's words, up to the end of its block. */
static bool back_account(uint32_t number)
{
    const struct ledger_region *r = &tag_ledger.header->regions[LEDGER_ACCOUNTS];
    while (load_acquire(&r->used) <= number / LEDGER_ACCOUNTS_TOGETHER)
        if (ledger_append(&tag_ledger, LEDGER_ACCOUNTS, 1) == LEDGER_NONE)
            return false;
    return ledger_reach(&tag_ledger, LEDGER_ACCOUNTS,
                        (number / LEDGER_ACCOUNTS_TOGETHER + 1) * sizeof(struct ledger_accounts));
}

/* The build id of what is mapped there, as its program header says. */
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

/* The record of the module that has the code; LEDGER_NONE: none has it, or there is no room. */
static uint32_t module_of(const struct dl_find_object *found)
{
    const struct link_map *map = found->dlfo_link_map;
    const struct ledger_region *r = &tag_ledger.header->regions[LEDGER_MODULES];
    struct ledger_module m = {.start = (uint64_t)found->dlfo_map_start,
                              .end = (uint64_t)found->dlfo_map_end,
                              .bias = map->l_addr,
                              .path =
                                  map->l_name[0] ? tag_strings_number(map->l_name) : tag_ledger.header->exe};
    for (uint32_t i = 0; i < load_acquire(&r->used); i++) {
        const struct ledger_module *known = AT(LEDGER_MODULES, struct ledger_module, i);
        if (known->start == m.start && known->end == m.end && known->path == m.path)
            return i;
    }
    uint32_t at = ledger_append(&tag_ledger, LEDGER_MODULES, 1);
    if (at == LEDGER_NONE)
        return at;
    m.seen_ticks = clock_ns(CLOCK_MONOTONIC);
    add_build_id(&m, found->dlfo_map_start);
    *AT(LEDGER_MODULES, struct ledger_module, at) = m;
    return at;
}

/* What the place, and its module, are called in the control page's lists. */
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

/* 0: nothing tells whether the file is the same when it is loaded again. */
static uint64_t identity_of(const struct tag_met *of, uint32_t module)
{
    if (module == LEDGER_NONE)
        return 0;
    const struct ledger_module *m = AT(LEDGER_MODULES, struct ledger_module, module);
    const char *path = AT(LEDGER_STRINGS, char, m->path);
    return m->build_id_len ? tag_index_identity(of->place.key + of->line, path, of->place.text) : 0;
}

/* Writes the record of an account whose descriptor is there. */
static void enter(uint32_t number, const struct tag_met *of, uint32_t module, uint64_t code)
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

/* What a descriptor leads to lies where its code does: nothing else is sure to be readable. */
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

/* The number of its account, which it may have had before; TAGS_MET_MOST or more: there is no room. */
static uint32_t number_for(struct tag_met *of, uint64_t identity)
{
    uint32_t number = identity ? tag_index_account(identity, 0) : 0;
    if (!number)
        return ledger_append(&tag_ledger, LEDGER_TAGS, 1);
    of->calls = tags_met[number].calls;
    return number;
}

static void note(uint32_t number, const struct tag_met *of, uint32_t module, uint64_t code)
{
    tags_met[number] = *of;
    if (of->place.text)
        tags_met[number].place.file = tag_index_file(of->place.text, NULL, (const char *)UINTPTR_MAX);
    for (uint32_t most = load_relaxed(&accounts); most <= number;)
        __atomic_compare_exchange_n(&accounts, &most, number + 1, false, __ATOMIC_RELAXED, __ATOMIC_RELAXED);
    if (!load_acquire(&AT(LEDGER_TAGS, struct ledger_tag, number)->account))
        enter(number, of, module, code);
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
        if (tag->version == TAG_LEDGER_FAR)
            of.place.module = 0; /* no file has them: nobody knows of them before they are met */
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
    note(number, &of, module, code);
    if (!__atomic_compare_exchange_n(&tag->counters, &not_met, tag_ledger_offset(number), false,
                                     __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE)) { /* somebody else was faster */
        if (not_met != tag_ledger_offset(number)) {
            tags_met[number].place.code = NULL;
            store_relaxed(&AT(LEDGER_TAGS, struct ledger_tag, number)->account, 0);
        }
        return not_met != ALLIUM_TAG_NO_ACCOUNT;
    }
    if (identity)
        tag_index_account(identity, number);
    tag_control_show(tag_ledger.control, tag);
    return true;
}

/* The accounts that the parent's descriptors know have the same numbers here; nothing is made yet. */
static bool inherit(void)
{
    struct dl_find_object found, texts;
    for (uint32_t n = 1; n < accounts_of_parent; n++) {
        if (ledger_append(&tag_ledger, LEDGER_TAGS, 1) == LEDGER_NONE || !back_account(n))
            return false;
        bool there = tags_met[n].place.code && tag_index_module(tags_met[n].place.code, &found);
        const char *text =
            tags_met[n].place.text; /* of another library by now, perhaps, which has the place of ours */
        if (there && text &&
            (!tag_index_module(text, &texts) ||
             !tag_index_file(text, texts.dlfo_map_start, texts.dlfo_map_end)))
            there = false;
        if (there && found.dlfo_link_map == tags_met[n].map)
            enter(n, &tags_met[n], module_of(&found), code_of(&tags_met[n], &found));
    }
    return true;
}

/* A ledger of our own. */
static bool make_own(void)
{
    config.image_id ^= clock_ns(CLOCK_MONOTONIC) ^ (uint64_t)sys_call(SYS_getpid, 0) << 40;
    config.image_id = draw_next(&config.image_id);
    if (ledger_make(&tag_ledger, &config))
        return false;
    describe_image();
    return true;
}

static enum stage make(void)
{
    const struct ledger_control *inherited = config.asked;
    enum agent_api_answer answer = agent_api_agent ? agent_api_agent->open(&tag_ledger)
                                   : make_own()    ? AGENT_API_OPEN
                                                   : AGENT_API_NEVER;
    if (answer != AGENT_API_OPEN)
        return answer == AGENT_API_LATER ? STAGE_NONE : STAGE_FAILED;
    vm_reserve_count_ledger(ledger_mapped_bytes(tag_ledger.header));
    if (tag_ledger.control == &ledger_no_control)
        tag_ledger.control = inherited;
    if (!back_account(0) || ledger_append(&tag_ledger, LEDGER_TAGS, 1) || !inherit()) /* account 0: none */
        return STAGE_FAILED;
    tag_control_show_again(tag_ledger.control);
    if (inherited != &asked_at_start.control && tag_ledger.control != inherited)
        sys_call(SYS_munmap, inherited, LEDGER_CONTROL_TAG_BYTES);
    tag_ledger.header->magic = LEDGER_MAGIC;
    return STAGE_MADE;
}

/* The parent's ledger is not mapped here (MADV_DONTFORK), and nothing of it was booked by us. */
static void become_child(void)
{
    if (stage == STAGE_MADE)
        parent_image_id = config.image_id;
    accounts_of_parent = load_relaxed(&accounts);
    tag_ledger.header = NULL;
    if (tag_ledger.control != &ledger_no_control)
        config.asked = tag_ledger.control;
    object_map_begin_anew();
    mmap_ranges_reset();
    call_details_reset();
    tag_strings_reset();
    generation++;
    in_vain = false;
    store_release(&stage, STAGE_NONE);
}

/* True when somebody has seen that this is a fork child, if it is one. */
static bool know_ourselves(void)
{
    uint32_t unaware = UNAWARE;
    if (load_acquire(alive) == AWARE)
        return true;
    if (!__atomic_compare_exchange_n(alive, &unaware, LEARNING, false, __ATOMIC_ACQ_REL, __ATOMIC_RELAXED))
        return spin_while(alive, LEARNING, &in_vain);
    become_child();
    store_release(alive, AWARE);
    return true;
}

static bool begin_books(void)
{
    if (!know_ourselves())
        return false;
    uint32_t now = load_acquire(&stage);
    if (now == STAGE_NONE &&
        __atomic_compare_exchange_n(&stage, &now, STAGE_MAKING, false, __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE)) {
        if (!began)
            begin_process();
        began = true;
        now = make();
        store_release(&stage, now);
        return now == STAGE_MADE;
    }
    return now == STAGE_MADE || (now == STAGE_MAKING && spin_while(&stage, STAGE_MAKING, &in_vain) &&
                                 load_acquire(&stage) == STAGE_MADE);
}

/* A handler in the midst of the making would find no books, and have nowhere to say what it could not book. */
bool tag_ledger_open(void)
{
    static const uint64_t all = ~0ull;
    uint64_t mask;
    bool aware = load_acquire(alive) == AWARE;
    uint32_t now = load_acquire(&stage);
    if ((aware && (now == STAGE_MADE || now == STAGE_FAILED)) || vm_reserve_is_sealed())
        return aware && now == STAGE_MADE;
    sys_call(SYS_rt_sigprocmask, SIG_SETMASK, &all, &mask, sizeof(all));
    bool open = begin_books();
    sys_call(SYS_rt_sigprocmask, SIG_SETMASK, &mask, 0, sizeof(mask));
    return open;
}

char *tag_ledger_counters(uint32_t shard)
{
    return tag_ledger.regions[LEDGER_ACCOUNTS] +
           shard * LEDGER_ACCOUNTS_TOGETHER * sizeof(struct ledger_words);
}

void tag_ledger_show_objects(const void *tables)
{
    store_relaxed(&tag_ledger.header->tagged, (uintptr_t)tables);
}

void tag_ledger_show_ranges(const void *table)
{
    store_relaxed(&tag_ledger.header->ranges, (uintptr_t)table);
}

void tag_ledger_count_loss(enum ledger_loss what)
{
    __atomic_fetch_add(&tag_ledger.header->losses[what], 1, __ATOMIC_RELAXED);
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
    if (agent_api_agent || !tag_ledger_is_ours())
        return;
    tag_ledger.header->ended_ticks = clock_ns(CLOCK_MONOTONIC);
    store_release(&tag_ledger.header->state, LEDGER_EXITED);
}
