/* SPDX-License-Identifier: BSD-2-Clause */
#include "symbol/debuginfod_servers.h"

#include <errno.h>
#include <limits.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "base/hash_map.h"
#include "base/mem.h"
#include "base/sigsafe/clock_ns.h"
#include "base/vec.h"
#include "symbol/debuginfod_fetcher.h"

enum state { WANTED, ASKED, FOUND, ABSENT, FAILED };

struct file {
    struct fetcher_request request;
    enum state state;
    int fd; /* where its answer will come */
    char *path;
};

struct symbol_servers {
    struct map index; /* build id -> files */
    struct VEC(struct file) files;
    struct VEC(int) asking; /* sockets that answers come from */
    uint64_t budget_ns, end_ns;
    int interrupt_fd, error;
    bool background, over; /* over: nothing is asked or waited for any more */
};

struct symbol_servers *symbol_servers_new(uint64_t budget_ns)
{
    struct symbol_servers *s = mem_alloc(sizeof(*s));
    s->budget_ns = budget_ns;
    s->interrupt_fd = -1;
    return s;
}

static void hang_up(struct symbol_servers *s)
{
    vec_each (int, fd, &s->asking)
        close(*fd);
    s->asking.len = 0;
}

void symbol_servers_free(struct symbol_servers *s)
{
    if (!s)
        return;
    hang_up(s);
    vec_each (struct file, f, &s->files)
        free(f->path);
    vec_release(&s->files);
    vec_release(&s->asking);
    map_release(&s->index);
    free(s);
}

void symbol_servers_in_background(struct symbol_servers *s, bool background)
{
    s->background = background;
}

void symbol_servers_interrupt(struct symbol_servers *s, int fd)
{
    s->interrupt_fd = fd;
}

void symbol_servers_want(struct symbol_servers *s, const unsigned char *build_id, size_t len)
{
    bool added;
    if (!len || len > FETCHER_BUILD_ID_MAX)
        return;
    size_t at = map_put(&s->index, build_id, len, s->files.len, &added);
    if (!added)
        return;
    struct file *f = vec_push(&s->files);
    f->request.build_id_len = len;
    f->request.key = (uint32_t)at;
    memcpy(f->request.build_id, build_id, len);
}

static void send_requests(struct symbol_servers *s)
{
    struct VEC(struct fetcher_request) requests = {0};
    vec_each (const struct file, f, &s->files)
        if (f->state == WANTED)
            *vec_push(&requests) = f->request;
    int fd = requests.len ? fetcher_start(requests.at, requests.len) : -1;
    vec_each (const struct fetcher_request, r, &requests) {
        struct file *f = &s->files.at[r->key];
        f->state = fd < 0 ? FAILED : ASKED;
        f->fd = fd;
    }
    if (fd >= 0)
        *vec_push(&s->asking) = fd;
    else if (requests.len)
        s->error = fd;
    vec_release(&requests);
}

static void take_answer(struct symbol_servers *s, int fd, const struct fetcher_answer *a)
{
    struct file *f = a->key < s->files.len ? &s->files.at[a->key] : NULL;
    if (!f || f->state != ASKED || f->fd != fd)
        return;
    if (!a->error)
        f->path = mem_strdup(a->path);
    bool absent = a->error == -ENOENT || a->error == -ENOSYS;
    f->state = !a->error ? FOUND : absent ? ABSENT : FAILED;
    if (f->state == FAILED)
        s->error = a->error;
}

/** Whoever asked there has ended: what has no answer gets none. */
static void forget(struct symbol_servers *s, int fd)
{
    vec_each (struct file, f, &s->files)
        if (f->state == ASKED && f->fd == fd) {
            f->state = FAILED;
            s->error = -EIO;
        }
    for (size_t i = 0; i < s->asking.len; i++)
        if (s->asking.at[i] == fd)
            s->asking.at[i] = s->asking.at[--s->asking.len];
    close(fd);
}

static void take_answers(struct symbol_servers *s, int fd)
{
    struct fetcher_answer a;
    for (;;) {
        ssize_t got = recv(fd, &a, sizeof(a), MSG_DONTWAIT);
        if (got < 0 && errno == EINTR)
            continue;
        if (got < 0 && errno == EAGAIN)
            return;
        if (got < (ssize_t)offsetof(struct fetcher_answer, path) + 1) {
            forget(s, fd);
            return;
        }
        ((char *)&a)[got - 1] = '\0';
        take_answer(s, fd, &a);
    }
}

/** Milliseconds that are left, rounded up; -1: no end. */
static int left_ms(const struct symbol_servers *s)
{
    if (s->background)
        return 0;
    if (s->budget_ns == SYMBOL_SERVERS_NO_LIMIT)
        return -1;
    uint64_t now = clock_ns(CLOCK_MONOTONIC), left = now < s->end_ns ? s->end_ns - now : 0;
    uint64_t ms = (left + 999999) / 1000000;
    return ms < INT_MAX ? (int)ms : INT_MAX;
}

/** Waits for something to come, and takes it. False: there will be no more. */
static bool take_some(struct symbol_servers *s)
{
    struct VEC(struct pollfd) fds = {0};
    *vec_push(&fds) = (struct pollfd){.fd = s->background ? -1 : s->interrupt_fd, .events = POLLIN};
    vec_each (const int, fd, &s->asking)
        *vec_push(&fds) = (struct pollfd){.fd = *fd, .events = POLLIN};
    int ready = poll(fds.at, fds.len, left_ms(s));
    bool more = ready > 0 || (ready < 0 && errno == EINTR);
    for (size_t i = 1; i < fds.len && ready > 0; i++)
        if (fds.at[i].revents)
            take_answers(s, fds.at[i].fd);
    if (ready > 0 && fds.at[0].revents)
        more = false;
    vec_release(&fds);
    return more;
}

bool symbol_servers_pending(const struct symbol_servers *s)
{
    vec_each (const struct file, f, &s->files)
        if (f->state == ASKED && !s->over)
            return true;
    return false;
}

void symbol_servers_wait(struct symbol_servers *s)
{
    if (s->over)
        return;
    send_requests(s);
    if (!s->background && !s->end_ns && symbol_servers_pending(s))
        s->end_ns = clock_ns(CLOCK_MONOTONIC) + s->budget_ns;
    while (symbol_servers_pending(s))
        if (!take_some(s)) {
            s->over = !s->background;
            break;
        }
    if (s->over)
        hang_up(s);
}

const char *symbol_servers_file(const struct symbol_servers *s, const unsigned char *build_id, size_t len)
{
    size_t at = map_get(&s->index, build_id, len);
    return at == MAP_NONE ? NULL : s->files.at[at].path;
}

struct symbol_servers_tally symbol_servers_tally(const struct symbol_servers *s)
{
    struct symbol_servers_tally t = {.wanted = s->files.len, .error = s->error};
    vec_each (const struct file, f, &s->files) {
        t.late += f->state == ASKED || f->state == WANTED;
        t.failed += f->state == FAILED;
    }
    return t;
}
