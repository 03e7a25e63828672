/* SPDX-License-Identifier: BSD-2-Clause */
#include "sys/bpf_object.h"

#include <errno.h>
#include <string.h>
#include <sys/mman.h>
#include <zlib.h>

#include <bpf/btf.h>

#include "sys/stack_samples.h"

int bpf_object_inflate(const unsigned char *object, size_t bytes, struct buf *out)
{
    z_stream z = {.next_in = (Bytef *)(uintptr_t)object, .avail_in = (uInt)bytes};
    unsigned char part[16384];
    if (inflateInit2(&z, 15 + 16) != Z_OK)
        return -ENOMEM;
    int r;
    do {
        z.next_out = part;
        z.avail_out = sizeof(part);
        r = inflate(&z, Z_NO_FLUSH);
        buf_add(out, part, sizeof(part) - z.avail_out);
    } while (r == Z_OK);
    inflateEnd(&z);
    return r == Z_STREAM_END ? 0 : -EIO;
}

int sys_map(const struct sys_session *s, const char *name)
{
    const struct bpf_map *map = bpf_object__find_map_by_name(s->object, name);
    return map ? bpf_map__fd(map) : -1;
}

/* The offset of a variable in the section of that name. */
static ptrdiff_t variable_at(const struct bpf_object *o, const char *section, const char *name)
{
    const struct btf *btf = bpf_object__btf(o);
    int id = btf__find_by_name_kind(btf, section, BTF_KIND_DATASEC);
    if (id < 0)
        return -1;
    const struct btf_type *data = btf__type_by_id(btf, (uint32_t)id);
    const struct btf_var_secinfo *v = btf_var_secinfos(data);
    for (unsigned i = 0; i < btf_vlen(data); i++, v++)
        if (!strcmp(btf__name_by_offset(btf, btf__type_by_id(btf, v->type)->name_off), name))
            return v->offset;
    return -1;
}

/* Maps of global variables are called after the object, whose name the kernel cuts. */
static struct bpf_map *section_map(const struct sys_session *s, const char *section)
{
    struct bpf_map *map;
    bpf_object__for_each_map(map, s->object)
    {
        const char *name = bpf_map__name(map), *end = name + strlen(name) - strlen(section);
        if (end >= name && !strcmp(end, section))
            return map;
    }
    return NULL;
}

void *sys_variable(struct sys_session *s, const char *name, size_t bytes)
{
    size_t size = 0;
    struct bpf_map *map = section_map(s, ".rodata");
    ptrdiff_t at = variable_at(s->object, ".rodata", name);
    char *data = map && at >= 0 ? (char *)(uintptr_t)bpf_map__initial_value(map, &size) : NULL;
    return data && (size_t)at + bytes <= size ? data + at : NULL;
}

static bool tools_map(const struct sys_session *s, const char *name, struct bpf_map **map)
{
    *map = bpf_object__find_map_by_name(s->object, name);
    return *map != NULL;
}

void bpf_object_size_maps(struct sys_session *s)
{
    struct bpf_map *map;
    const struct sys_settings *set = &s->settings;
    for (int i = 0; i < 2; i++)
        if (tools_map(s, i ? "table_1" : "table_0", &map) && set->part) {
            bpf_map__set_max_entries(map, set->rows_max);
            bpf_map__set_key_size(map, SYS_ROW_HEAD_BYTES + set->part->key_bytes);
            bpf_map__set_value_size(map, (uint32_t)rows_sum_bytes(s));
        } else if (map) {
            bpf_map__set_max_entries(map, 1); /* a tool with events and rows shows events */
        }
    if (tools_map(s, "stacks", &map))
        bpf_map__set_max_entries(map, set->config.stack_slots);
    if (tools_map(s, "ring", &map))
        bpf_map__set_max_entries(map, set->ring_bytes);
    stack_samples_size_maps(s);
}

/* Mapped here, as nothing but a skeleton does it by itself. */
int bpf_object_share(struct sys_session *s, struct error *e)
{
    struct bpf_map *map = section_map(s, ".bss");
    ptrdiff_t at = variable_at(s->object, ".bss", "state");
    s->shared_bytes = map ? bpf_map__value_size(map) : 0;
    s->shared = map ? mmap(NULL, s->shared_bytes, PROT_READ | PROT_WRITE, MAP_SHARED, bpf_map__fd(map), 0)
                    : MAP_FAILED;
    if (s->shared == MAP_FAILED || at < 0)
        return error_set(e, errno ? errno : EIO, "cannot share memory with the BPF programs: %s",
                         strerror(errno));
    s->state = (struct sys_state *)(s->shared + at);
    return 0;
}

void *bpf_object_map_section(const struct sys_session *s, const char *section, size_t *bytes)
{
    const struct bpf_map *map = section_map(s, section);
    *bytes = map ? bpf_map__value_size(map) : 0;
    errno = ENOENT;
    char *at = map ? mmap(NULL, *bytes, PROT_READ | PROT_WRITE, MAP_SHARED, bpf_map__fd(map), 0) : MAP_FAILED;
    return at == MAP_FAILED ? NULL : at;
}

void *bpf_object_shared(const struct sys_session *s, const char *name)
{
    const ptrdiff_t at = variable_at(s->object, ".bss", name);
    return at < 0 ? NULL : s->shared + at;
}

void bpf_object_close(struct sys_session *s)
{
    if (s->shared && s->shared != MAP_FAILED)
        munmap(s->shared, s->shared_bytes);
    s->shared = NULL;
    bpf_object__close(s->object);
    s->object = NULL;
}
