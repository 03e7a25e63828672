/* SPDX-License-Identifier: BSD-2-Clause */
/* Sinks of BPF: the programs of src/bpf/hit.bpf.c. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <bpf/bpf.h>
#include <bpf/libbpf.h>

#include "base/buf.h"
#include "base/mem.h"
#include "base/read_file.h"
#include "bench/kernel/kernel_event.h"
#include "bench/kernel/kernel_sinks.h"
#include "bpf/hit.h"
#include "sys/bpf_object.h"

extern const unsigned char sys_object_hit[];
extern const size_t sys_object_hit_bytes;

struct bpf_sink {
    struct buf bytes; /* of the object, which libbpf keeps using */
    struct bpf_object *object;
    struct bpf_link *link;
    struct ring_buffer *ring;
    int event; /* of a uprobe */
    uint64_t before[HIT_COUNTS];
    struct kernel_probe_counts *taken; /* during a read */
};

static int ignore_words(enum libbpf_print_level level, const char *fmt, va_list args)
{
    (void)level, (void)fmt, (void)args;
    return 0;
}

static int take(void *arg, void *record, size_t bytes)
{
    struct bpf_sink *s = arg;
    (void)record;
    s->taken->seen += bytes == sizeof(struct hit_record);
    s->taken->bytes += bytes + BPF_RINGBUF_HDR_SZ;
    return 0;
}

/* The configuration is the first, and only, variable of its section. */
static void configure(struct bpf_sink *s, const struct kernel_probe_target *target)
{
    struct bpf_map *map;
    bpf_object__for_each_map(map, s->object)
    {
        size_t bytes = 0;
        struct hit_config *config = (struct hit_config *)(uintptr_t)bpf_map__initial_value(map, &bytes);
        if (!strstr(bpf_map__name(map), ".rodata") || !config || bytes < sizeof(*config))
            continue;
        *config = (struct hit_config){.pid = (uint32_t)target->pid, .syscall = SYS_getppid};
    }
}

static int load(struct kernel_probe *p, const char *name, struct bpf_program **program)
{
    struct bpf_sink *s = p->own;
    struct bpf_program *it;
    int bad = bpf_object_inflate(sys_object_hit, sys_object_hit_bytes, &s->bytes);
    if (bad)
        return bad;
    s->object = bpf_object__open_mem(s->bytes.data, s->bytes.len, NULL);
    if (!s->object)
        return -errno;
    bpf_map__set_autocreate(bpf_object__find_map_by_name(s->object, "ring"), p->sink->records);
    bpf_object__for_each_program(it, s->object)
        bpf_program__set_autoload(it, !strcmp(bpf_program__name(it), name));
    configure(s, &p->target);
    *program = bpf_object__find_program_by_name(s->object, name);
    return *program ? bpf_object__load(s->object) : -ENOENT;
}

/* What it takes to load and attach a program. */
static const char *needed(enum kernel_probe_kind kind)
{
    return kind == KERNEL_PROBE_FENTRY
               ? "CAP_BPF and CAP_PERFMON, Linux 5.5, CONFIG_DEBUG_INFO_BTF and CONFIG_FUNCTION_TRACER"
               : "CAP_BPF and CAP_PERFMON, and CONFIG_BPF_EVENTS";
}

static int attach(struct kernel_probe *p, const struct bpf_program *program, struct error *e)
{
    struct bpf_sink *s = p->own;
    if (p->target.kind == KERNEL_PROBE_CALL || p->target.kind == KERNEL_PROBE_FENTRY) {
        s->link = bpf_program__attach(program);
    } else {
        s->event = kernel_event_open(&p->target, &(struct perf_event_attr){.sample_period = 1}, e);
        if (s->event < 0)
            return s->event;
        s->link = bpf_program__attach_perf_event(program, s->event);
        if (s->link)
            s->event = -1; /* closed with the link */
    }
    if (!s->link)
        return error_set(e, errno, "cannot attach a BPF program: %s; it takes %s", strerror(errno),
                         needed(p->target.kind));
    if (!p->sink->records)
        return 0;
    const int ring = bpf_object__find_map_fd_by_name(s->object, "ring");
    s->ring = ring_buffer__new(ring, take, s, NULL);
    return s->ring ? 0 : error_set(e, errno, "the ring of a BPF program: %s", strerror(errno));
}

/* Why a program could not be loaded. */
static const char *load_failure(enum kernel_probe_kind kind, int bad)
{
    return kind == KERNEL_PROBE_FENTRY && bad == -ESRCH
               ? "the kernel's BTF does not have " KERNEL_PROBE_FUNCTION
               : strerror(-bad);
}

/* Each kind of probe has a program for what is done at an event: "probe_count". */
static int open_sink(struct kernel_probe *p, const char *does, struct error *e)
{
    static const char *const begins[] = {[KERNEL_PROBE_ENTRY] = "probe",
                                         [KERNEL_PROBE_RETURN] = "probe",
                                         [KERNEL_PROBE_CALL] = "call",
                                         [KERNEL_PROBE_KPROBE] = "function",
                                         [KERNEL_PROBE_FENTRY] = "entered"};
    char name[32];
    struct bpf_sink *s = mem_alloc(sizeof(*s));
    struct bpf_program *program = NULL;
    s->event = -1;
    p->own = s;
    libbpf_print_fn_t before = libbpf_set_print(ignore_words);
    snprintf(name, sizeof(name), "%s_%s", begins[p->target.kind], does);
    int bad = load(p, name, &program);
    libbpf_set_print(before);
    if (bad)
        error_set(e, -bad, "cannot load a BPF program: %s; it takes %s", load_failure(p->target.kind, bad),
                  needed(p->target.kind));
    else
        bad = attach(p, program, e);
    if (bad)
        bpf_sink_close(p);
    return bad;
}

int bpf_empty_open(struct kernel_probe *p, struct error *e)
{
    return open_sink(p, "empty", e);
}

int bpf_count_open(struct kernel_probe *p, struct error *e)
{
    return open_sink(p, "count", e);
}

int bpf_ring_open(struct kernel_probe *p, struct error *e)
{
    return open_sink(p, "ring", e);
}

/* Reads a counter, the sum of all processors. */
static int read_counter(const struct bpf_sink *s, uint32_t which, uint64_t *sum)
{
    const int cpus = libbpf_num_possible_cpus(), map = bpf_object__find_map_fd_by_name(s->object, "counts");
    uint64_t *each = mem_array(cpus > 0 ? (size_t)cpus : 1, sizeof(*each));
    const int bad = bpf_map_lookup_elem(map, &which, each) ? -errno : 0;
    *sum = 0;
    for (int cpu = 0; cpu < cpus && !bad; cpu++)
        *sum += each[cpu];
    free(each);
    return bad;
}

int bpf_sink_read(struct kernel_probe *p, struct kernel_probe_counts *out)
{
    struct bpf_sink *s = p->own;
    uint64_t now[HIT_COUNTS];
    int bad = 0;
    for (uint32_t i = 0; i < HIT_COUNTS && !bad; i++)
        bad = read_counter(s, i, &now[i]);
    if (bad)
        return bad;
    out->seen += now[HIT_SEEN] - s->before[HIT_SEEN];
    out->lost += now[HIT_LOST] - s->before[HIT_LOST];
    memcpy(s->before, now, sizeof(now));
    s->taken = out;
    bad = s->ring ? ring_buffer__consume(s->ring) : 0;
    return bad < 0 ? bad : 0;
}

/* What the kernel charges for the maps. */
uint64_t bpf_sink_memory(const struct kernel_probe *p)
{
    const struct bpf_sink *s = p->own;
    const struct bpf_map *map;
    uint64_t bytes = 0;
    bpf_object__for_each_map(map, s->object)
    {
        struct buf text = BUF_INIT;
        char path[64];
        if (bpf_map__fd(map) < 0)
            continue; /* there is no ring */
        snprintf(path, sizeof(path), "/proc/self/fdinfo/%d", bpf_map__fd(map));
        file_read_at(-1, path, 4096, &text);
        const char *at = strstr(buf_str(&text), "memlock:");
        bytes += at ? strtoull(at + strlen("memlock:"), NULL, 10) : 0;
        buf_release(&text);
    }
    return bytes;
}

void bpf_sink_close(struct kernel_probe *p)
{
    struct bpf_sink *s = p->own;
    ring_buffer__free(s->ring);
    bpf_link__destroy(s->link);
    bpf_object__close(s->object);
    if (s->event >= 0)
        close(s->event);
    buf_release(&s->bytes);
    free(s);
}
