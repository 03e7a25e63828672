/* SPDX-License-Identifier: BSD-2-Clause */
#include "collect/ledger/control_events.h"

#include <errno.h>
#include <stddef.h>
#include <string.h>
#include <sys/file.h>
#include <unistd.h>

#include "collect/ledger/control_write.h"
#include "wire/event_list.h"
#include "wire/ledger.h"

static const char in_patterns[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_:*?";

const char *event_list_mistake(const char *list)
{
    const char *at = list;
    if (strlen(list) >= LEDGER_EVENT_LIST_BYTES)
        return "it is too long";
    do {
        struct event_item i = event_list_next(&at);
        if (event_item_is(i, "alloc") || event_item_is(i, "begin") || event_item_is(i, "tag") ||
            event_item_is(i, "user"))
            continue;
        i.at += *i.at == '!';
        if (!event_item_is_pattern(i) || strspn(i.at, in_patterns) < (size_t)(i.end - i.at))
            return "its items are alloc, begin, tag, user, and PROVIDER:NAME, in which * and ? are allowed; "
                   "! excludes";
    } while (*at);
    return list[0] && list[strlen(list) - 1] == ',' ? "it ends with a comma" : NULL;
}

bool event_list_matches(const char *pattern, const char *name)
{
    return event_item_matches((struct event_item){pattern, pattern + strlen(pattern)}, name);
}

bool event_list_has_agent(const char *list)
{
    return event_list_has_group(list, "alloc") || event_list_has_group(list, "begin");
}

bool event_list_has_begin(const char *list)
{
    return event_list_has_group(list, "begin");
}

/* Reads what the page has. Returns 0 or -EIO. */
static int read_page(int fd, struct ledger_control_events *now)
{
    if (pread(fd, now, sizeof(*now), LEDGER_CONTROL_EVENTS_AT) != sizeof(*now))
        return -EIO;
    for (int i = 0; i < 2; i++)
        now->lists[i][sizeof(now->lists[i]) - 1] = '\0';
    return 0;
}

static int put_list(int fd, const char *list, bool on)
{
    const off_t at = LEDGER_CONTROL_EVENTS_AT;
    struct ledger_control_events now;
    char text[LEDGER_EVENT_LIST_BYTES] = "";
    if (flock(fd, LOCK_EX) || read_page(fd, &now))
        return -EIO;
    memcpy(text, list, strlen(list));
    uint32_t word = ledger_events_next(now.last);
    const off_t list_at =
        (off_t)offsetof(struct ledger_control_events, lists[0]) + (word & 1) * (off_t)sizeof(text);
    if (pwrite(fd, text, sizeof(text), at + list_at) != sizeof(text) ||
        pwrite(fd, &word, sizeof(word), at + (off_t)offsetof(struct ledger_control_events, last)) !=
            sizeof(word))
        return -EIO;
    if (!on || !event_list_has_library(list))
        word = 0;
    return pwrite(fd, &word, sizeof(word), at) == sizeof(word) ? 0 : -EIO;
}

int control_put_events(const struct ledger_entry *ledger, const char *list, bool on, struct error *e)
{
    const char *mistake = *list ? event_list_mistake(list) : NULL;
    if (mistake)
        return error_set(e, EINVAL, "the list of events %s: %s", list, mistake);
    const int fd = control_open(ledger, e);
    if (fd < 0)
        return fd;
    const int bad = put_list(fd, list, on);
    close(fd);
    return bad ? control_failed(ledger, -bad, e) : 0;
}

int control_set_events(const struct ledger_entry *ledger, const char *list, struct error *e)
{
    return control_put_events(ledger, list, true, e);
}

int control_get_events(const struct ledger_entry *ledger, char list[static LEDGER_EVENT_LIST_BYTES], bool *on,
                       struct error *e)
{
    struct ledger_control_events now;
    const int fd = control_open(ledger, e);
    if (fd < 0)
        return fd;
    const int bad = read_page(fd, &now);
    close(fd);
    if (bad)
        return control_failed(ledger, -bad, e);
    *on = now.word != 0;
    memcpy(list, now.lists[now.last & 1], LEDGER_EVENT_LIST_BYTES);
    if (*list && event_list_mistake(list)) /* another program has written it */
        *list = '\0';
    return 0;
}
