/* SPDX-License-Identifier: BSD-2-Clause */
#include "sys/uprobe/uprobe_attach.h"

#include <errno.h>
#include <pthread.h>
#include <sys/syscall.h>
#include <unistd.h>

#define DETACHERS 16u

/* Of the kernel's interface, newer than the headers of some systems. */
#define LINK_CREATE          28
#define TRACE_UPROBE_MULTI   48
#define TRACE_UPROBE_SESSION 57
#define MULTI_RETURN         1u

static const uint32_t attach_types[] = {
    [UPROBE_MULTI_ENTRY] = TRACE_UPROBE_MULTI,
    [UPROBE_MULTI_RETURN] = TRACE_UPROBE_MULTI,
    [UPROBE_MULTI_SESSION] = TRACE_UPROBE_SESSION,
};

int uprobe_attach(struct uprobe_links *links, struct sys_session *s, const char *program,
                  const struct uprobe_spot *spot, bool returns)
{
    LIBBPF_OPTS(bpf_uprobe_opts, o, .bpf_cookie = spot->cookie, .retprobe = returns);
    const struct bpf_program *code = bpf_object__find_program_by_name(s->object, program);
    struct bpf_link *link =
        code ? bpf_program__attach_uprobe_opts(code, spot->pid, spot->path, spot->offset, &o) : NULL;
    if (!link)
        return code ? -errno : -EIO;
    *vec_push(links) = link;
    return 0;
}

struct detacher {
    struct uprobe_links *links;
    struct uprobe_fds *fds;
    size_t *next;
};

static void *detach(void *arg)
{
    const struct detacher *d = arg;
    size_t at;
    while ((at = __atomic_fetch_add(d->next, 1, __ATOMIC_RELAXED)) < d->links->len + d->fds->len)
        if (at < d->links->len)
            bpf_link__destroy(d->links->at[at]);
        else
            close(d->fds->at[at - d->links->len]);
    return NULL;
}

void uprobe_detach(struct uprobe_links *links, struct uprobe_fds *fds)
{
    size_t next = 0, n = 0;
    struct detacher d = {links, fds, &next};
    pthread_t threads[DETACHERS];
    while (n < DETACHERS && n + 1 < links->len + fds->len && !pthread_create(&threads[n], NULL, detach, &d))
        n++;
    detach(&d);
    while (n)
        pthread_join(threads[--n], NULL);
    vec_release(links);
    vec_release(fds);
}

void uprobe_multi_ready(struct bpf_object *object, const char *program, enum uprobe_multi_kind kind)
{
    bpf_program__set_expected_attach_type(bpf_object__find_program_by_name(object, program),
                                          (enum bpf_attach_type)attach_types[kind]);
}

int uprobe_attach_multi(struct uprobe_fds *fds, struct sys_session *s, const char *program,
                        const struct uprobe_multi *m)
{
    const struct bpf_program *code = bpf_object__find_program_by_name(s->object, program);
    struct {
        uint32_t program, target, type, flags;
        uint64_t path, offsets, reference_counters, cookies;
        uint32_t n, uprobe_flags, pid, reserved;
    } request = {.program = (uint32_t)bpf_program__fd(code),
                 .type = attach_types[m->kind],
                 .path = (uintptr_t)m->path,
                 .offsets = (uintptr_t)m->offsets.at,
                 .cookies = (uintptr_t)m->cookies.at,
                 .n = (uint32_t)m->offsets.len,
                 .uprobe_flags = m->kind == UPROBE_MULTI_RETURN ? MULTI_RETURN : 0,
                 .pid = (uint32_t)m->pid};
    const int fd = (int)syscall(SYS_bpf, LINK_CREATE, &request, sizeof(request));
    if (fd < 0)
        return -errno;
    *vec_push(fds) = fd;
    return 0;
}
