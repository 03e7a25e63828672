/* SPDX-License-Identifier: BSD-2-Clause */
#include "tag/events.h"

#include <sys/mman.h>

#include "allium/event.h"
#include "base/sigsafe/atomic.h"
#include "base/sigsafe/str.h"
#include "base/sigsafe/syscall.h"
#include "ring/ring_write.h"
#include "tag/event_classes.h"
#include "tag/event_rings.h"
#include "tag/user_sums.h"
#include "tag/tag_control.h"
#include "tag/tag_internal.h"
#include "tag/tag_ledger.h"
#include "target/vm_reserve.h"
#include "wire/event_list.h"
#include "wire/event_schema.h"

#define LIST_TRIES 4 /* the tool replaces the list meanwhile */
#define FIRST_WORD 3u

_Static_assert(ALLIUM_SNAPSHOT_BYTES == EVENT_TABLE_REASON_BYTES, "a reason has the same room in both");
_Static_assert(ALLIUM_EVENTS_WORD * 4 == LEDGER_CONTROL_EVENTS_AT, "inline code reads `word` there");

/* The first list, for a page that has none. */
static void write_list(const struct ledger_control *page, const char *list)
{
    struct ledger_control_events *e = (struct ledger_control_events *)ledger_control_events(page);
    text_copy(e->lists[FIRST_WORD & 1], sizeof(e->lists[0]), list);
    e->last = FIRST_WORD;
    store_release(&e->word, event_list_has_library(list) ? FIRST_WORD : 0);
}

static const char *first_list = "";
bool events_has_tags;

void events_begin_library(const char *list)
{
    first_list = list;
    events_has_tags = event_list_has_group(list, "tag");
    user_sums_begin_library(list);
    write_list(process.config.initial_control, list); /* process_control_at_start() has made it */
}

void events_begin_ledger(void)
{
    const struct ledger_control *page = process.ledger.control;
    if (process.generation > 1 || !*first_list || page == &ledger_no_control ||
        page == process.config.initial_control || load_relaxed(&ledger_control_events(page)->last) ||
        !vm_reserve_may_call() || sys_call(SYS_mprotect, page, LEDGER_PAGE_BYTES, PROT_READ | PROT_WRITE))
        return;
    write_list(page, first_list);
    sys_call(SYS_mprotect, page, LEDGER_PAGE_BYTES, PROT_READ);
}

TAG_EXPORT void allium_event_module(const volatile void *page)
{
    if (!tag_ledger_open())
        return;
    tag_control_show_page(process.ledger.control, (const char *)(uintptr_t)page);
    if (process.ledger.control != &ledger_no_control &&
        load_relaxed(&ledger_control_events(process.ledger.control)->word))
        event_rings_prepare();
}

TAG_EXPORT int allium_event_decide(struct allium_event *event, uint32_t word)
{
    char list[LEDGER_EVENT_LIST_BYTES] = "";
    if (event->version != ALLIUM_EVENT_VERSION || !tag_ledger_open() ||
        process.ledger.control == &ledger_no_control)
        return 0;
    const struct ledger_control_events *e = ledger_control_events(process.ledger.control);
    for (int tries = 0; tries < LIST_TRIES; tries++) {
        word = load_acquire(&e->word);
        __builtin_memcpy(list, e->lists[word & 1], sizeof(list) - 1);
        const bool on = word && event_list_has(list, event->name);
        __atomic_thread_fence(__ATOMIC_ACQUIRE);
        if (load_relaxed(&e->word) != word)
            continue;
        if (on && (!event_rings_open() || !event_classes_number(event))) {
            event_rings_lose();
            return 0;
        }
        if (word)
            store_relaxed(on ? &event->on : &event->off, word);
        return on;
    }
    return 0;
}

void events_write_cold(struct allium_event *event, enum sequence_result before, uint64_t *words,
                       uint32_t n_words, uint32_t cut)
{
    if (!tag_ledger_open() || !event_rings_open())
        return event_rings_lose();
    const uint16_t number = event_classes_number(event);
    if (!number || n_words > RING_EVENT_WORDS_MAX)
        return event_rings_lose();
    if (user_sums_are_on())
        return user_sums_add(event, number, words, event_rings_thread());
    words[1] = ring_what(number, n_words | (cut ? RING_FLAG_CUT << RING_SIZE_BITS : 0), 0);
    event_rings_append(before, words, n_words);
}

void events_put_cold(struct allium_event *event, enum sequence_result before, uint32_t words, uint64_t a,
                     uint64_t b, uint64_t c)
{
    uint64_t all[] = {0, 0, a, b, c};
    events_write_cold(event, before, all, words, 0);
}

/* Copies a text of the ledger. Returns whether it was cut. */
static bool put_string(char *field, uint32_t bytes, uint32_t string)
{
    return allium_event_text(field, bytes, ledger_at(&process.ledger, LEDGER_STRINGS, char, string));
}

/* Returns whether the user has switched the library's events off since the start. */
static bool is_switched_off(void)
{
    const struct ledger_control *page = process.ledger.control;
    const struct ledger_control_events *e =
        page && page != &ledger_no_control ? ledger_control_events(page) : NULL;
    return e && load_relaxed(&e->last) && !load_relaxed(&e->word);
}

void events_put_tag_call(uint32_t account, const void *object, size_t bytes, uint64_t took_ns, uintptr_t site)
{
    struct {
        uint64_t head[2], ptr, size, duration_ns, site;
        char class[EVENT_TAG_CLASS_BYTES], name[EVENT_TAG_NAME_BYTES];
    } e = {.ptr = (uintptr_t)object, .size = bytes, .duration_ns = took_ns, .site = site};
    if (is_switched_off())
        return;
    if (!account || !event_rings_open())
        return event_rings_lose();
    const struct ledger_tag *tag = tag_ledger_tag(account);
    const bool is_class_cut = put_string(e.class, sizeof(e.class), tag->class);
    const bool cut = put_string(e.name, sizeof(e.name), tag->name) || is_class_cut;
    e.head[1] = ring_what(EVENT_tag_call, sizeof(e) / 8 | (cut ? RING_FLAG_CUT << RING_SIZE_BITS : 0), 0);
    event_rings_append(SEQUENCE_NO_CPU, (uint64_t *)&e, sizeof(e) / 8);
}

TAG_EXPORT void allium_event_snapshot(struct allium_event *event, const char *reason)
{
    struct {
        uint64_t words[2];
        char reason[ALLIUM_SNAPSHOT_BYTES];
    } asked = {0};
    const uint32_t cut = allium_event_text(asked.reason, sizeof(asked.reason), reason);
    allium_event_write(event, asked.words, sizeof(asked) / 8, cut);
    if (tag_ledger_open() && event_rings_open())
        event_classes_ask(asked.reason);
}

TAG_EXPORT uint32_t allium_event_text(char *field, uint32_t bytes, const char *text)
{
    uint32_t n = 0;
    while (text && n < bytes && text[n]) {
        field[n] = text[n];
        n++;
    }
    if (!text || n < bytes || !text[n])
        return 0;
    while (n && (text[n] & 0xC0) == 0x80) /* not amid a character */
        field[--n] = '\0';
    return 1;
}
