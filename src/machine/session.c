/* SPDX-License-Identifier: BSD-2-Clause */
#include "machine/session.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>
#include <zlib.h>

#include "base/buf.h"
#include "base/sigsafe/compiler.h"
#include "collect/cgroup_mounts.h"
#include "machine/names.h"
#include "machine/perf.h"
#include "machine/privileges.h"
#include "machine/ring.h"
#include "machine/rungs.h"
#include "machine/sampled_rows.h"
#include "machine/samples.h"
#include "machine/whose.h"

#define BACKLOG_PART  4u /* of the ring: then the reader is woken */
#define LOG_LINE_MOST 300u

/* What the loader complains of; libbpf hands its messages to one function for all. */
static struct buf loader_words = BUF_INIT;

static int hear_loader(enum libbpf_print_level level, const char *fmt, va_list args)
{
    char line[1024];
    if (level == LIBBPF_DEBUG || loader_words.len > 16384)
        return 0;
    vsnprintf(line, sizeof(line), fmt, args);
    buf_addstr(&loader_words, line);
    return 0;
}

/* The line of the loader's words that says most: the verifier's last, or the first complaint. */
static void add_reason(struct buf *why, int error)
{
    const char *text = buf_str(&loader_words), *line = text, *best = NULL;
    size_t best_len = 0;
    while (*line) {
        size_t len = strcspn(line, "\n");
        bool counts = len && *line != ';' && !(*line >= '0' && *line <= '9') && /* the verifier's trace */
                      strncmp(line, "processed ", 10) && strncmp(line, "-- ", 3) &&
                      !memmem(line, len, "ulimit -l", 9) && !memmem(line, len, "failed to load", 14) &&
                      !memmem(line, len, "-- BEGIN", 8) && !memmem(line, len, "-- END", 6);
        if (counts)
            best = line, best_len = len;
        line += len + (line[len] == '\n');
    }
    if (best && !strncmp(best, "libbpf: ", 8))
        best += 8, best_len -= 8;
    buf_printf(why, "%s", strerror(-error));
    if (best)
        buf_printf(why, ": %.*s", (int)(best_len < LOG_LINE_MOST ? best_len : LOG_LINE_MOST), best);
}

static int inflate_object(const struct sys_tool *tool, struct buf *out)
{
    z_stream z = {.next_in = (Bytef *)(uintptr_t)tool->object, .avail_in = (uInt)*tool->object_bytes};
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

/* The programs' own variables, which both sides see: mapped here, as nothing but a skeleton does it by itself. */
static int share_state(struct sys_session *s, struct error *e)
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

const char *sys_option(const struct sys_session *s, const char *name)
{
    for (int i = 0; s->settings.options && s->tool->options[i].name; i++)
        if (!strcmp(s->tool->options[i].name, name))
            return s->settings.options[i];
    return NULL;
}

static bool tools_map(const struct sys_session *s, const char *name, struct bpf_map **map)
{
    *map = bpf_object__find_map_by_name(s->object, name);
    return *map != NULL;
}

static void size_maps(struct sys_session *s)
{
    struct bpf_map *map;
    const struct sys_settings *set = &s->settings;
    for (int i = 0; i < 2; i++)
        if (tools_map(s, i ? "table_1" : "table_0", &map)) {
            bpf_map__set_max_entries(map, set->rows_max);
            bpf_map__set_key_size(map, set->part->key_bytes);
        }
    bool stacks = set->config.stacks != 0;
    if (tools_map(s, "stacks", &map))
        bpf_map__set_max_entries(map, stacks ? set->stacks_max : 1);
    if (tools_map(s, "second_stacks", &map))
        bpf_map__set_max_entries(map, stacks ? set->stacks_max / 4 + 1 : 1);
    if (tools_map(s, "ring", &map))
        bpf_map__set_max_entries(map, set->ring_bytes);
    samples_size_maps(s);
}

/* Programs of this rung are loaded, no others. False: its arguments are others here. */
static bool choose_programs(struct sys_session *s, const struct sys_rung *rung, const struct btf *kernel,
                            struct buf *why)
{
    struct bpf_program *p;
    bpf_object__for_each_program(p, s->object) bpf_program__set_autoload(p, false);
    for (const struct sys_attachment *a = rung->attach; a < rung->attach + SYS_ATTACHMENTS_MAX && a->program;
         a++) {
        if (a->if_type && btf__find_by_name_kind(kernel, a->if_type, BTF_KIND_STRUCT) < 0)
            continue;
        if (a->tracepoint && !rungs_arguments_fit(kernel, a->tracepoint, a->arguments, why))
            return false;
        p = bpf_object__find_program_by_name(s->object, a->program);
        if (!p) {
            buf_printf(why, "the object has no program %s", a->program);
            return false;
        }
        bpf_program__set_autoload(p, true);
    }
    return true;
}

static void drop_object(struct sys_session *s)
{
    bpf_object__close(s->object);
    s->object = NULL;
}

/* One program, to what its section names, or to perf's events. 0 or -errno. */
static int attach_program(struct sys_session *s, struct bpf_program *p, const struct sys_rung *rung)
{
    for (const struct sys_attachment *a = rung->attach; a < rung->attach + SYS_ATTACHMENTS_MAX && a->program;
         a++)
        if (a->software_event && !strcmp(a->program, bpf_program__name(p)))
            return perf_attach(s, p, a->software_event);
    struct bpf_link *link = bpf_program__attach(p);
    if (!link)
        return -errno;
    *vec_push(&s->links) = link;
    return 0;
}

/* The loader looks for the numbers of tracepoints there. */
static bool has_tracefs(void)
{
    return !access("/sys/kernel/tracing/events", F_OK) || !access("/sys/kernel/debug/tracing/events", F_OK);
}

static int attach_programs(struct sys_session *s, const struct sys_rung *rung, struct buf *why)
{
    struct bpf_program *p;
    bpf_object__for_each_program(p, s->object)
    {
        int error = bpf_program__autoload(p) ? attach_program(s, p, rung) : 0;
        if (error) {
            buf_printf(why, "%s: ", bpf_program__section_name(p));
            if (error == -ENOENT && !has_tracefs())
                buf_addstr(why, "tracefs is not mounted: mount -t tracefs tracefs /sys/kernel/tracing");
            else
                add_reason(why, error);
            return error;
        }
    }
    return 0;
}

/* Loads and attaches the programs of one rung. 0, or -errno with the reason. */
static int try_rung(struct sys_session *s, const struct sys_rung *rung, const struct btf *kernel,
                    const struct buf *bytes, struct buf *why, struct error *e)
{
    LIBBPF_OPTS(bpf_object_open_opts, open, .object_name = s->tool->name);
    buf_reset(&loader_words);
    s->object = bpf_object__open_mem(buf_str(bytes), bytes->len, &open);
    if (!s->object) {
        int error = -errno;
        add_reason(why, error);
        return error;
    }
    int error = choose_programs(s, rung, kernel, why) ? 0 : -EOPNOTSUPP;
    if (error)
        goto out;
    size_maps(s);
    struct sys_config *config = sys_variable(s, "config", sizeof(*config));
    *config = s->settings.config;
    if (s->tool->ready && (error = s->tool->ready(s, e))) {
        buf_addstr(why, e->text);
        goto out;
    }
    error = bpf_object__load(s->object);
    if (error)
        add_reason(why, error);
    else
        error = attach_programs(s, rung, why);
out:
    if (error) {
        sys_stop(s);
        drop_object(s);
    }
    return error;
}

static int fail_all(struct sys_session *s, int error, struct error *e)
{
    struct buf b = BUF_INIT;
    vec_each (const struct sys_refusal, r, &s->refused)
        buf_printf(&b, "%s%s: %s", b.len ? "; " : "", r->rung->name, r->why);
    struct buf missing = BUF_INIT;
    privileges_missing(&missing);
    /* EACCES is how the verifier refuses, and of one rung that is asked for EPERM says nothing about the others. */
    if (missing.len || (error == -EPERM && !s->settings.rung)) {
        if (missing.len)
            error_set(e, EPERM, "sys %s lacks %s: run it as root (sudo)", s->tool->name, buf_str(&missing));
        else
            error_set(e, EPERM,
                      "sys %s may not load BPF programs here, a policy of this machine forbids it: %s",
                      s->tool->name, buf_str(&b));
        error = -EPERM;
    } else {
        error =
            error_set(e, EOPNOTSUPP, "sys %s cannot attach to this kernel: %s", s->tool->name, buf_str(&b));
    }
    buf_release(&missing);
    buf_release(&b);
    return error;
}

static int find_rung(struct sys_session *s, const struct btf *kernel, const struct buf *bytes,
                     struct error *e)
{
    int error = -EOPNOTSUPP;
    bool known = false;
    for (const struct sys_rung *r = s->tool->rungs; r->name; r++) {
        if (s->settings.rung && strcmp(r->name, s->settings.rung))
            continue;
        known = true;
        struct buf why = BUF_INIT;
        error = try_rung(s, r, kernel, bytes, &why, e);
        if (!error) {
            s->rung = r;
            buf_release(&why);
            return 0;
        }
        *vec_push(&s->refused) = (struct sys_refusal){r, buf_detach(&why)};
        if (error == -EINVAL && *e->text) /* ready() said so: what was asked for makes no sense on any rung */
            return error;
    }
    if (!known) {
        struct buf b = BUF_INIT;
        for (const struct sys_rung *r = s->tool->rungs; r->name; r++)
            buf_printf(&b, "%s%s", b.len ? ", " : "", r->name);
        error = error_set(e, EINVAL, "sys %s has no --attach %s: it has %s", s->tool->name, s->settings.rung,
                          buf_str(&b));
        buf_release(&b);
        return error;
    }
    return fail_all(s, error, e);
}

/* Is the memory controller left to version 1 here? */
bool sys_memory_is_v1(void)
{
    struct mounts m = {0};
    mounts_read(&m);
    bool found = cgroup_mount_of(&m, CGROUP_V1_MEMORY) != NULL;
    mounts_release(&m);
    return found;
}

static void fill_settings(struct sys_session *s, const struct sys_settings *settings)
{
    struct sys_settings *set = &s->settings;
    *set = *settings;
    set->part = set->part ? set->part : s->tool->parts;
    set->rows_max = set->rows_max ? set->rows_max : SYS_ROWS_DEFAULT;
    set->stacks_max = set->stacks_max ? set->stacks_max : SYS_STACKS_DEFAULT;
    set->ring_bytes = set->ring_bytes ? set->ring_bytes : s->tool->ring_bytes ? s->tool->ring_bytes : 4096;
    set->sample_ring_bytes = set->sample_ring_bytes ? set->sample_ring_bytes : SYS_SAMPLE_RING_BYTES;
    set->config.parts = set->part ? set->part->bits : 0;
    set->config.urgent = s->tool->urgent;
    set->config.backlog_bytes = set->ring_bytes / BACKLOG_PART;
    set->config.cgroup_v1 = set->config.filters & SYS_FILTER_CGROUP_V1 ||
                            (!(set->config.filters & SYS_FILTER_CGROUP) && sys_memory_is_v1());
}

/* Tests must fail when a record is missing: they say which one is to be. */
static uint64_t lose_from_environment(void)
{
    const char *text = getenv("ALLIUM_SYS_LOSE");
    return text ? strtoull(text, NULL, 10) : 0;
}

uint64_t sys_now_ns(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

bool sys_loses(struct sys_session *s)
{
    return unlikely(s->lose) && !--s->lose;
}

int sys_open(struct sys_session **out, const struct sys_tool *tool, const struct sys_settings *settings,
             struct error *e)
{
    struct sys_session *s = mem_alloc(sizeof(*s));
    struct buf bytes = BUF_INIT;
    *out = NULL;
    *s = (struct sys_session){.tool = tool, .ring_fd = -1, .poll_fd = -1};
    fill_settings(s, settings);
    s->lose = lose_from_environment();
    int error = whose_fill(&s->settings.config, e);
    if (error) {
        sys_close(s);
        return error;
    }
    libbpf_set_print(hear_loader);
    /* Before anything is counted: what is mapped from then on is known. */
    s->names = names_new(tool->spaces || (s->settings.part && s->settings.part->spaces) ||
                         settings->config.stacks & SYS_STACK_USER);
    struct btf *kernel = btf__load_vmlinux_btf();
    error = kernel ? inflate_object(tool, &bytes) : 0;
    if (!kernel)
        error =
            error_set(e, EOPNOTSUPP,
                      "this kernel has no BTF (/sys/kernel/btf/vmlinux): it takes one that was built with "
                      "CONFIG_DEBUG_INFO_BTF, as those of all distributions since 2021 are");
    else if (error)
        error_set(e, -error, "the BPF programs of %s are damaged in this allium: install it again",
                  tool->name);
    else
        error = find_rung(s, kernel, &bytes, e);
    btf__free(kernel);
    buf_release(&bytes);
    if (!error) {
        error = share_state(s, e);
    }
    if (!error)
        error = samples_open(s, e);
    if (!error)
        error = ring_open(s, e);
    if (error) {
        sys_close(s);
        return error;
    }
    s->since_ns = sys_now_ns();
    __atomic_store_n(&s->state->runs, 1, __ATOMIC_SEQ_CST);
    *out = s;
    return 0;
}

void sys_stop(struct sys_session *s)
{
    if (s->state) {
        __atomic_store_n(&s->state->runs, 0, __ATOMIC_SEQ_CST);
        s->until_ns = sys_now_ns();
    }
    vec_each (struct bpf_link *, link, &s->links)
        bpf_link__destroy(*link);
    vec_release(&s->links);
}

void sys_close(struct sys_session *s)
{
    if (!s)
        return;
    sys_stop(s);
    ring_close(s);
    samples_close(s);
    sampled_rows_free(s->sampled);
    if (s->shared && s->shared != MAP_FAILED)
        munmap(s->shared, s->shared_bytes);
    if (s->object)
        drop_object(s);
    vec_each (struct sys_refusal, r, &s->refused)
        free(r->why);
    vec_release(&s->refused);
    if (s->tool->release)
        s->tool->release(s);
    names_free(s->names);
    free(s);
}

/* The kernel does not run a program for what interrupts it on the same CPU, and counts that (since 5.12). */
static uint64_t missed(const struct sys_session *s)
{
    struct bpf_program *p;
    uint64_t sum = 0;
    bpf_object__for_each_program(p, s->object)
    {
        struct bpf_prog_info info = {0};
        uint32_t bytes = sizeof(info);
        if (bpf_program__fd(p) >= 0 && !bpf_obj_get_info_by_fd(bpf_program__fd(p), &info, &bytes))
            sum += info.recursion_misses;
    }
    return sum;
}

void sys_read_counts(struct sys_session *s)
{
    int fd = sys_map(s, "counts"), cpus = libbpf_num_possible_cpus();
    uint64_t *each = mem_alloc((size_t)(cpus > 0 ? cpus : 1) * sizeof(*each));
    for (uint32_t i = 0; i < SYS_COUNTS; i++) {
        uint64_t sum = 0;
        if (!bpf_map_lookup_elem(fd, &i, each))
            for (int c = 0; c < cpus; c++)
                sum += each[c];
        s->counted[i] = sum;
    }
    s->counted[SYS_MISSED] = missed(s);
    free(each);
    if (s->tool->settle)
        s->tool->settle(s);
}
