/* SPDX-License-Identifier: BSD-2-Clause */
#include "collect/asked.h"

#include <errno.h>
#include <fcntl.h>
#include <stddef.h>
#include <string.h>
#include <sys/file.h>
#include <time.h>
#include <unistd.h>

#include "collect/control.h"

/* The file, locked, and what stands in it. */
struct page {
    int fd;
    struct ledger_control control;
    struct asked_list list; /* in force, by key */
};

static uint64_t now_ns(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

/* What has run out is asked no more. */
static void let_go(struct ledger_action *a, uint64_t now)
{
    for (unsigned ask = 0; ask < LEDGER_ASKS; ask++)
        if (a->until_ns[ask] && a->until_ns[ask] <= now)
            a->asked &= ~(1u << ask);
    a->asked &= (1u << LEDGER_ASKS) - 1;
}

static off_t offset_of(bool second)
{
    return LEDGER_PAGE_BYTES + (off_t)(second ? LEDGER_ACTIONS_BYTES : 0);
}

static int read_list(struct page *p)
{
    uint32_t count = p->control.listed & ~LEDGER_ACTIONS_SECOND;
    uint64_t now = now_ns();
    if (count > LEDGER_ACTIONS_MOST)
        count = 0; /* nobody's, and of no meaning to the process either */
    for (uint32_t i = 0; i < count; i++) {
        struct ledger_action a;
        off_t at = offset_of(p->control.listed & LEDGER_ACTIONS_SECOND) + (off_t)(i * sizeof(a));
        if (pread(p->fd, &a, sizeof(a), at) != sizeof(a))
            return -EIO;
        let_go(&a, now);
        if (a.asked)
            *vec_push(&p->list) = a;
    }
    return 0;
}

static int open_page(struct page *p, const struct ledger_entry *tags, struct error *e)
{
    *p = (struct page){.fd = control_open(tags, e)};
    if (p->fd < 0)
        return p->fd;
    int bad = flock(p->fd, LOCK_EX) || pread(p->fd, &p->control, sizeof(p->control), 0) != sizeof(p->control)
                  ? -EIO
                  : read_list(p);
    return bad ? control_failed(tags, -bad, e) : 0;
}

static void close_page(struct page *p)
{
    if (p->fd >= 0)
        close(p->fd);
    vec_release(&p->list);
}

/* The other list, backed, then which one is in force, and last the number that everybody looks at. */
static int write_page(struct page *p)
{
    struct ledger_control *c = &p->control;
    bool second = !(c->listed & LEDGER_ACTIONS_SECOND);
    size_t bytes = p->list.len * sizeof(*p->list.at);
    if (p->list.len > LEDGER_ACTIONS_MOST)
        return -E2BIG;
    if (bytes && (fallocate(p->fd, 0, offset_of(second), (off_t)bytes) ||
                  pwrite(p->fd, p->list.at, bytes, offset_of(second)) != (ssize_t)bytes))
        return errno ? -errno : -EIO;
    c->magic = LEDGER_CONTROL_MAGIC;
    c->listed = (uint32_t)p->list.len | (second ? LEDGER_ACTIONS_SECOND : 0);
    int32_t state = (int32_t)((((uint32_t)c->state | 1) + 1) & INT32_MAX);
    if (pwrite(p->fd, c, offsetof(struct ledger_control, state), 0) !=
            (ssize_t)offsetof(struct ledger_control, state) ||
        pwrite(p->fd, &c->listed, sizeof(c->listed), offsetof(struct ledger_control, listed)) !=
            sizeof(c->listed) ||
        pwrite(p->fd, &state, sizeof(state), offsetof(struct ledger_control, state)) != sizeof(state))
        return -EIO;
    return 0;
}

static void change(struct ledger_action *a, const struct asked_change *c)
{
    a->asked = (a->asked & ~c->clear) | c->set;
    for (unsigned ask = 0; ask < LEDGER_ASKS; ask++)
        if (c->set >> ask & 1)
            a->until_ns[ask] = c->until_ns;
    if (!(c->set >> LEDGER_ASK_FAIL & 1))
        return;
    a->fail = (uint16_t)c->fail;
    a->n = c->n;
    a->serial = (uint16_t)(a->serial + 1 ? a->serial + 1 : 1);
}

static int compare_keys(const void *a, const void *b)
{
    const uint64_t *x = a, *y = b;
    return (*x > *y) - (*x < *y);
}

/* Both are by key. */
static void change_list(struct page *p, const struct asked_keys *keys, const struct asked_change *c)
{
    struct asked_list merged = {0};
    size_t at = 0;
    for (size_t i = 0; i < keys->len; i++) {
        struct ledger_action a = {.key = keys->at[i]};
        if (i && keys->at[i] == keys->at[i - 1])
            continue;
        while (at < p->list.len && p->list.at[at].key < a.key)
            *vec_push(&merged) = p->list.at[at++];
        if (at < p->list.len && p->list.at[at].key == a.key)
            a = p->list.at[at++];
        change(&a, c);
        if (a.asked)
            *vec_push(&merged) = a;
    }
    while (at < p->list.len)
        *vec_push(&merged) = p->list.at[at++];
    vec_release(&p->list);
    p->list = merged;
}

int asked_of_places(const struct ledger_entry *tags, struct asked_keys *keys, const struct asked_change *c,
                    struct error *e)
{
    struct page p;
    int bad = open_page(&p, tags, e);
    if (keys->len)
        qsort(keys->at, keys->len, sizeof(*keys->at), compare_keys);
    if (!bad) {
        change_list(&p, keys, c);
        bad = write_page(&p);
        if (bad == -E2BIG)
            error_set(e, E2BIG, "something is asked of %zu places; at most %u can be: ask less of them",
                      p.list.len, LEDGER_ACTIONS_MOST);
        else if (bad)
            control_failed(tags, -bad, e);
    }
    close_page(&p);
    return bad;
}

int asked_of_all(const struct ledger_entry *tags, bool off, struct error *e)
{
    struct asked_keys keys = {0};
    struct page p;
    int bad = open_page(&p, tags, e);
    if (!bad) {
        vec_each (const struct ledger_action, a, &p.list)
            *vec_push(&keys) = a->key;
        change_list(&p, &keys, &(struct asked_change){.clear = 1u << LEDGER_ASK_OFF | 1u << LEDGER_ASK_ON});
        p.control.word = (p.control.word & ~LEDGER_CONTROL_TAGS_OFF) | (off ? LEDGER_CONTROL_TAGS_OFF : 0);
        bad = write_page(&p);
        if (bad)
            control_failed(tags, -bad, e);
    }
    vec_release(&keys);
    close_page(&p);
    return bad;
}

int asked_read(const struct ledger_entry *tags, struct asked_list *list, bool *off, struct error *e)
{
    struct page p;
    int bad = open_page(&p, tags, e);
    *list = (struct asked_list){0};
    if (!bad) {
        *list = p.list;
        *off = p.control.word & LEDGER_CONTROL_TAGS_OFF;
        p.list = (struct asked_list){0};
    }
    close_page(&p);
    return bad;
}
