/* SPDX-License-Identifier: BSD-2-Clause */
#include "sys/uprobe/alloc_attach.h"

#include "bpf/memleak.h"
#include "sys/uprobe/uprobe_attach.h"

static uint64_t cookie_of(const struct alloc_process *p, const struct alloc_place *place)
{
    const uint32_t reaches = place->reaches ? MEMLEAK_REACHES : 0;
    return (uint64_t)p->number << 32 | place->function->what | reaches | MEMLEAK_AT(place->place.kind);
}

static int attach_returns(struct sys_session *s, struct alloc_process *p, const char *path,
                          const struct alloc_place *place)
{
    int bad = 0;
    vec_each (const uint64_t, offset, &place->returns) {
        const struct uprobe_spot spot = {path, p->pid, *offset, cookie_of(p, place)};
        bad = bad ? bad : uprobe_attach(&p->links, s, "memleak_leaves", &spot, false);
    }
    return bad;
}

/*
 * Both ends of a call have their probes at one place, where the stack pointer is still that of the entry. The return
 * comes first: else a call between the two would have a beginning and no end.
 */
static int attach_place(struct sys_session *s, struct alloc_process *p, const char *path,
                        const struct alloc_place *place)
{
    const struct uprobe_spot spot = {path, p->pid, place->offset, cookie_of(p, place)};
    int bad;
    switch (place->function->role) {
    case ALLOC_RETURNS:
        bad = place->function->throws ? attach_returns(s, p, path, place)
                                      : uprobe_attach(&p->links, s, "memleak_returns", &spot, true);
        return bad ? bad : uprobe_attach(&p->links, s, "memleak_enters", &spot, false);
    case ALLOC_FREES:
        return uprobe_attach(&p->links, s, "memleak_frees", &spot, false);
    default:
        return uprobe_attach(&p->links, s, "memleak_loads", &spot, false);
    }
}

static int attach_each(struct sys_session *s, struct alloc_process *p, const char *path,
                       const struct alloc_file *file)
{
    int bad = 0;
    vec_each (const struct alloc_place, place, &file->places)
        bad = bad ? bad : attach_place(s, p, path, place);
    return bad;
}

/* What all places of one kind have. */
struct role_program {
    const char *name;
    enum uprobe_multi_kind kind;
    enum alloc_role role;
    bool throws;
};

/*
 * The kernel notes the return of a function with a session in every process that has a probe there, also if it is
 * another tool's: so functions that may throw have none.
 */
static const struct role_program role_programs[] = {
    {"memleak_session", UPROBE_MULTI_SESSION, ALLOC_RETURNS, false},
    {"memleak_enters", UPROBE_MULTI_ENTRY, ALLOC_RETURNS, true},
    {"memleak_frees", UPROBE_MULTI_ENTRY, ALLOC_FREES, false},
    {"memleak_loads", UPROBE_MULTI_ENTRY, ALLOC_LOADS, false},
};
#define ROLE_PROGRAMS (sizeof(role_programs) / sizeof(*role_programs))

/* All its places at once. */
static int attach_role(struct sys_session *s, struct alloc_process *p, const char *path,
                       const struct alloc_file *file, const struct role_program *program)
{
    struct uprobe_multi m = {.path = path, .pid = p->pid, .kind = program->kind};
    vec_each (const struct alloc_place, place, &file->places)
        if (place->function->role == program->role && place->function->throws == program->throws) {
            *vec_push(&m.offsets) = place->offset;
            *vec_push(&m.cookies) = cookie_of(p, place);
        }
    const int bad = m.offsets.len ? uprobe_attach_multi(&p->multi_fds, s, program->name, &m) : 0;
    vec_release(&m.offsets);
    vec_release(&m.cookies);
    return bad;
}

static int attach_all_returns(struct sys_session *s, struct alloc_process *p, const char *path,
                              const struct alloc_file *file)
{
    struct uprobe_multi m = {.path = path, .pid = p->pid, .kind = UPROBE_MULTI_ENTRY};
    vec_each (const struct alloc_place, place, &file->places)
        vec_each (const uint64_t, offset, &place->returns) {
            *vec_push(&m.offsets) = *offset;
            *vec_push(&m.cookies) = cookie_of(p, place);
        }
    const int bad = m.offsets.len ? uprobe_attach_multi(&p->multi_fds, s, "memleak_leaves", &m) : 0;
    vec_release(&m.offsets);
    vec_release(&m.cookies);
    return bad;
}

int alloc_attach(struct sys_session *s, bool at_once, struct alloc_process *p, const char *path,
                 const struct alloc_file *file)
{
    if (!at_once)
        return attach_each(s, p, path, file);
    int bad = attach_all_returns(s, p, path, file);
    for (size_t i = 0; i < ROLE_PROGRAMS && !bad; i++)
        bad = attach_role(s, p, path, file, &role_programs[i]);
    return bad;
}
