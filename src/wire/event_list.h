/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef WIRE_EVENT_LIST_H
#define WIRE_EVENT_LIST_H

/*
 * A list of events that are on: "alloc,shop:*,!shop:noisy". Its items are groups (`alloc`: those of the agent; `begin`:
 * these, and one at the beginning of each call; `tag`: the calls of code tags; `user`: all of the program) and
 * patterns of PROVIDER:NAME, in which `*` stands for any characters and `?` for one. An event of the program is on if
 * an item names it, and no item that begins with a `!` does.
 *
 * Runs in: target, tool. Pure.
 */

#include <stdbool.h>
#include <stddef.h>

/* One item: the characters from `at` to `end`. */
struct event_item {
    const char *at, *end;
};

/** Returns the item that begins there; *list moves to the next one. */
static inline struct event_item event_list_next(const char **list)
{
    struct event_item i = {*list, *list};
    while (*i.end && *i.end != ',')
        i.end++;
    *list = *i.end ? i.end + 1 : i.end;
    return i;
}

static inline bool event_item_is(struct event_item i, const char *word)
{
    while (i.at < i.end && *i.at == *word) {
        i.at++;
        word++;
    }
    return i.at == i.end && !*word;
}

/** Returns whether the item, as a pattern, matches the text. */
static inline bool event_item_matches(struct event_item i, const char *text)
{
    const char *star = NULL, *again = NULL;
    while (*text) {
        if (i.at < i.end && *i.at == '*') {
            star = i.at++;
            again = text;
        } else if (i.at < i.end && (*i.at == '?' || *i.at == *text)) {
            i.at++;
            text++;
        } else if (star) {
            i.at = star + 1;
            text = ++again;
        } else {
            return false;
        }
    }
    while (i.at < i.end && *i.at == '*')
        i.at++;
    return i.at == i.end;
}

static inline bool event_item_is_pattern(struct event_item i)
{
    while (i.at < i.end && *i.at != ':')
        i.at++;
    return i.at < i.end;
}

/** Returns whether the list has this group. */
static inline bool event_list_has_group(const char *list, const char *group)
{
    while (*list)
        if (event_item_is(event_list_next(&list), group))
            return true;
    return false;
}

/** Returns whether the list may have events of the program. */
static inline bool event_list_has_user(const char *list)
{
    while (*list) {
        const struct event_item i = event_list_next(&list);
        if (*i.at != '!' && (event_item_is_pattern(i) || event_item_is(i, "user")))
            return true;
    }
    return false;
}

/** Returns whether the list may have events that liballium.so writes. */
static inline bool event_list_has_library(const char *list)
{
    return event_list_has_user(list) || event_list_has_group(list, "tag");
}

/** Returns whether the list has this event of the program, PROVIDER:NAME. */
static inline bool event_list_has(const char *list, const char *name)
{
    bool on = false;
    while (*list) {
        struct event_item i = event_list_next(&list);
        const bool off = *i.at == '!';
        i.at += off;
        if (!event_item_is(i, "user") && !(event_item_is_pattern(i) && event_item_matches(i, name)))
            continue;
        if (off)
            return false;
        on = true;
    }
    return on;
}

#endif
