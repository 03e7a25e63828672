/* SPDX-License-Identifier: BSD-2-Clause */
#include "collect/trace/trace_switch.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "collect/ledger/control_events.h"
#include "collect/ledger/control_write.h"
#include "collect/ledger/ledger_copy.h"
#include "collect/trace/ring_image.h"
#include "wire/event_list.h"

/* Rings that the agent has made have the process id in their header; those of liballium.so have 0. */
static void look_at_rings(struct trace_switch *s, const struct ledger_entry *ledger)
{
    struct ring_image image;
    char *path = ring_image_path(ledger);
    char *slash = path ? strrchr(path, '/') : NULL;
    if (slash)
        *slash = '\0';
    if (slash && !ring_image_look(&image, path, slash + 1)) {
        const struct ring_header *h = ring_reader_header(image.reader);
        s->has_agent = h->pid != 0;
        s->has_begin = s->has_agent && h->begins;
        ring_image_close(&image);
    }
    free(path);
}

static bool uses_library(const struct ledger_entry *ledger)
{
    struct ledger_header h;
    const int fd = ledger->tags ? -1 : ledger_entry_open(ledger);
    const bool has =
        ledger->tags || (fd >= 0 && !ledger_copy_header(fd, &h, NULL) && ledger_copy_has_tags(&h));
    if (fd >= 0)
        close(fd);
    return has;
}

int trace_switch_read(struct trace_switch *s, const struct ledger_entry *ledger, struct error *e)
{
    uint64_t word;
    bool listed;
    *s = (struct trace_switch){.has_library = uses_library(ledger)};
    look_at_rings(s, ledger);
    int bad = control_change(ledger, 0, 0, &word, e);
    bad = bad ? bad : control_get_events(ledger, s->list, &listed, e);
    if (bad)
        return bad;
    s->has_tags = s->has_library && event_list_has_group(s->list, "tag");
    s->is_on = s->has_agent ? !(word & LEDGER_CONTROL_TRACE_OFF) : listed;
    s->alloc = s->has_agent && !(word & LEDGER_CONTROL_ALLOC_OFF);
    return 0;
}

bool trace_switch_any(const struct trace_switch *s)
{
    return s->has_agent || s->has_library;
}

int trace_switch_explain(pid_t pid, const char *of, struct error *e)
{
    return error_set(e, ENOENT,
                     "process %d writes no events%s: restart it with allium trace, or with the environment "
                     "that allium env --trace prints",
                     (int)pid, of);
}

static int check(const struct trace_switch *s, int pid, const char *list, struct error *e)
{
    const bool begin = event_list_has_group(list, "begin");
    if (!s->has_agent && (begin || event_list_has_group(list, "alloc")))
        return trace_switch_explain(pid, " of malloc", e);
    if (begin && !s->has_begin)
        return error_set(
            e, ENOENT,
            "process %d writes no events at the beginning of calls: restart it with allium trace "
            "--events begin",
            pid);
    if (event_list_has_group(list, "tag") && !s->has_tags)
        return error_set(
            e, ENOENT, "process %d writes no events of code tags: restart it with allium trace --events tag",
            pid);
    return 0;
}

/* If the process was started with the group `tag`, the group stays in each list. */
static int put_list(const struct trace_switch *s, const struct ledger_entry *ledger, const char *list,
                    bool on, struct error *e)
{
    struct buf b = BUF_INIT;
    if (s->has_tags && !event_list_has_group(list, "tag"))
        buf_printf(&b, "tag%s", *list ? "," : "");
    buf_addstr(&b, list);
    const int bad = control_put_events(ledger, buf_str(&b), on, e);
    buf_release(&b);
    return bad;
}

static int put_bits(const struct trace_switch *s, const struct ledger_entry *ledger, bool on, bool alloc,
                    struct error *e)
{
    const uint64_t set = (on ? 0 : LEDGER_CONTROL_TRACE_OFF) | (alloc ? 0 : LEDGER_CONTROL_ALLOC_OFF);
    return s->has_agent ? control_change(ledger, LEDGER_CONTROL_ALLOC_BITS, set, NULL, e) : 0;
}

/* Returns `bad`, the result of a change in two parts. If it failed, restores the state: one part may be made. */
static int complete(int bad, const struct trace_switch *before, const struct ledger_entry *ledger)
{
    if (bad)
        trace_switch_restore(before, ledger, NULL);
    return bad;
}

int trace_switch_select(const struct trace_switch *before, const struct ledger_entry *ledger,
                        const char *list, struct error *e)
{
    int bad = check(before, ledger->pid, list, e);
    if (bad)
        return bad;
    bad = put_list(before, ledger, list, true, e);
    bad = bad ? bad : put_bits(before, ledger, true, event_list_has_agent(list), e);
    return complete(bad, before, ledger);
}

int trace_switch_turn(const struct trace_switch *before, const struct ledger_entry *ledger, bool on,
                      struct error *e)
{
    const bool has_events = event_list_has_library(before->list);
    const char *list = has_events || before->has_agent ? before->list : "user";
    int bad = on == before->is_on ? 0 : put_list(before, ledger, list, on, e);
    bad = bad ? bad : put_bits(before, ledger, on, before->alloc, e);
    return complete(bad, before, ledger);
}

int trace_switch_restore(const struct trace_switch *before, const struct ledger_entry *ledger,
                         struct error *e)
{
    const int bad_list = put_list(before, ledger, before->list, before->is_on, e);
    const int bad_bits = put_bits(before, ledger, before->is_on, before->alloc, bad_list ? NULL : e);
    return bad_list ? bad_list : bad_bits;
}

static void add(struct buf *b, struct event_item i)
{
    buf_addstr(b, b->len ? "," : "");
    buf_add(b, i.at, (size_t)(i.end - i.at));
}

void trace_switch_print(const struct trace_switch *s, struct buf *b)
{
    struct buf names = BUF_INIT;
    if (!trace_switch_any(s))
        return;
    if (s->alloc)
        buf_addstr(&names, s->has_begin ? "begin" : "alloc");
    for (const char *at = s->list; *at;) {
        const struct event_item i = event_list_next(&at);
        if (!event_item_is(i, "alloc") && !event_item_is(i, "begin"))
            add(&names, i);
    }
    if (s->is_on)
        buf_printf(b, "trace on: %s", names.len ? buf_str(&names) : "no events");
    else
        buf_addstr(b, "trace off");
    buf_release(&names);
}
