/* SPDX-License-Identifier: BSD-2-Clause */
#include "sys/probe/probe_attach.h"

#include <errno.h>
#include <unistd.h>

#include "bpf/probe.h"
#include "sys/bpf_object.h"
#include "sys/probe/return_check.h"

#define UPROBES "/sys/bus/event_source/devices/uprobe/type"
#define WORD    8u /* of struct pt_regs */

static uint32_t static_sites(const struct probe_list *probes)
{
    size_t n;
    uint32_t sites = 0;
    const struct probe *all = probe_list_all(probes, &n);
    for (size_t i = 0; i < n; i++)
        sites += all[i].is_static ? (uint32_t)all[i].sites.len : 0;
    return sites;
}

int probes_ready(struct sys_session *s, const struct probe_list *probes, struct error *e)
{
    struct bpf_map *map = bpf_object__find_map_by_name(s->object, "static_sites");
    const uint32_t sites = static_sites(probes);
    if (!map || (sites && bpf_map__set_max_entries(map, sites)))
        return error_set(e, EIO, "its BPF programs are damaged in this allium: install it again");
    return 0;
}

static uint16_t register_at(int number)
{
    return number == STATIC_NO_REGISTER ? PROBE_NO_REGISTER : (uint16_t)(WORD * (unsigned)number);
}

static int store_site(struct sys_session *s, const struct probe *p, const struct probe_site *from,
                      uint32_t number)
{
    struct probe_static_site site = {.id = p->id, .n = from->n};
    for (unsigned i = 0; i < from->n; i++) {
        const struct static_operand *o = &from->operands[i];
        site.operands[i] = (struct probe_operand){.value = o->value,
                                                  .base = register_at(o->base),
                                                  .index = register_at(o->index),
                                                  .place = (uint8_t)o->place,
                                                  .scale = o->scale,
                                                  .bytes = o->bytes,
                                                  .is_signed = o->is_signed};
    }
    return bpf_map_update_elem(sys_map(s, "static_sites"), &number, &site, BPF_ANY);
}
_Static_assert(STATIC_CONSTANT == PROBE_CONSTANT && STATIC_REGISTER == PROBE_REGISTER &&
                   STATIC_MEMORY == PROBE_MEMORY && STATIC_PROBE_OPERANDS == PROBE_STATIC_ARGUMENTS,
               "as the programs have them");

struct bpf_link *probe_attach_one(struct sys_session *s, const char *program, const char *file,
                                  uint64_t offset, uint64_t semaphore_offset, uint64_t id)
{
    const bool returns = !strcmp(program, "probe_returns");
    LIBBPF_OPTS(bpf_uprobe_opts, o, .bpf_cookie = id, .retprobe = returns,
                .ref_ctr_offset = semaphore_offset);
    const struct bpf_program *p = bpf_object__find_program_by_name(s->object, program);
    struct bpf_link *link = p ? bpf_program__attach_uprobe_opts(p, -1, file, offset, &o) : NULL;
    errno = p ? errno : ENOENT;
    return link;
}

static int attach(struct sys_session *s, const char *program, const struct probe *p,
                  const struct probe_site *site, uint64_t id, struct error *e)
{
    struct bpf_link *link =
        probe_attach_one(s, program, site->file, site->offset, site->semaphore_offset, id);
    if (link) {
        *vec_push(&s->links) = link;
        return 0;
    }
    const int why = errno;
    if (access(UPROBES, F_OK))
        return error_set(
            e, EOPNOTSUPP,
            "--function cannot attach: this kernel has no uprobes: use a kernel with CONFIG_UPROBE_EVENTS");
    return error_set(e, why, "--function cannot attach to %s in %s: %s", p->name, site->file, strerror(why));
}

int probes_attach(struct sys_session *s, const struct probe_list *probes, struct error *e)
{
    size_t n;
    uint32_t number = 0;
    int bad = 0;
    const struct probe *all = probe_list_all(probes, &n);
    for (const struct probe *p = all; p < all + n && !bad; p++)
        bad = p->is_static ? 0 : return_check("--function", e);
    for (const struct probe *p = all; p < all + n && !bad; p++)
        for (size_t i = 0; i < p->sites.len && !bad; i++) {
            const struct probe_site *site = &p->sites.at[i];
            if (p->is_static) {
                bad = store_site(s, p, site, number);
                bad = bad ? error_set(e, -bad, "cannot store a static probe: %s", strerror(-bad))
                          : attach(s, "probe_static", p, site, number++, e);
                continue;
            }
            bad = attach(s, "probe_returns", p, site, p->id + 1u, e);
            bad = bad ? bad : attach(s, "probe_enters", p, site, p->id, e);
        }
    return bad;
}
