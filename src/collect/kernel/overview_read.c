/* SPDX-License-Identifier: BSD-2-Clause */
#include "collect/kernel/overview_read.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/utsname.h>
#include <time.h>
#include <unistd.h>

#include "base/sigsafe/clock_ns.h"
#include "collect/kernel/cgroup_memory.h"
#include "base/read_file.h"
#include "collect/kernel/proc_text.h"
#include "collect/kernel/meminfo.h"
#include "collect/process/processes.h"

#define TEXT_BYTES_MAX (16u << 20)
#define ASK_EACH_MS    100u
#define SWAP_DEVICE    "/dev/"

void overview_read_begin(struct overview_reader *l)
{
    *l = (struct overview_reader){.asker.each_ms = ASK_EACH_MS};
    kmsg_open(&l->log);
    l->counters_bad = perf_counters_open(&l->counters);
}

void overview_read_end(struct overview_reader *l)
{
    kmsg_close(&l->log);
    perf_counters_close(&l->counters);
    process_queryer_release(&l->asker);
    overview_release(&l->before);
}

static void say_unknown(struct overview *m, const char *what, int bad)
{
    struct buf text = BUF_INIT;
    buf_printf(&text, "%s: %s", what, strerror(-bad));
    *vec_push(&m->unknown) = buf_detach(&text);
}

/* Returns the text of a file. If it cannot be read, adds it to the unknown sources, and returns "". */
static const char *text_of(struct overview *m, const char *path, struct buf *text)
{
    buf_reset(text);
    int bad = file_read(path, TEXT_BYTES_MAX, text);
    if (bad && bad != -EFBIG) {
        say_unknown(m, path, bad);
        return "";
    }
    return buf_str(text);
}

static bool number_of(int folder, const char *path, uint64_t *value)
{
    struct buf text = BUF_INIT;
    const char *at = file_read_at(folder, path, 4096, &text) ? "" : buf_str(&text);
    bool known = proc_text_number(&at, value);
    buf_release(&text);
    return known;
}

static void read_pressure(struct overview *m, struct buf *text)
{
    char path[64];
    for (int i = 0; i < OVERVIEW_RESOURCES; i++) {
        snprintf(path, sizeof(path), "/proc/pressure/%s", overview_resource_names[i]);
        pressure_parse(&m->pressure[i], text_of(m, path, text));
    }
}

/* Swap on a zram device is kept in memory, compressed. The third figure in mm_stat is the memory that it takes. */
static void read_zram(struct overview *m)
{
    vec_each (struct overview_swap, s, &m->swaps) {
        struct buf path = BUF_INIT, text = BUF_INIT;
        if (!strncmp(s->path, SWAP_DEVICE "zram", 9) && !strchr(s->path + 5, '/')) {
            buf_printf(&path, "/sys/block/%s/mm_stat", s->path + strlen(SWAP_DEVICE));
            const char *at = file_read(buf_str(&path), 4096, &text) ? "" : buf_str(&text);
            uint64_t data, packed, used;
            if (proc_text_number(&at, &data) && proc_text_number(&at, &packed) &&
                proc_text_number(&at, &used))
                s->memory_bytes = used;
        }
        buf_release(&path);
        buf_release(&text);
    }
}

/* Opens each directory NAME<number> in `folder`, and calls `take` with it. Returns 0, or -errno without `folder`. */
static int each_numbered(const char *folder, const char *name,
                         void (*take)(struct overview *m, int fd, uint64_t number), struct overview *m)
{
    DIR *dir = opendir(folder);
    const struct dirent *entry;
    if (!dir)
        return -errno;
    while ((entry = readdir(dir))) {
        const char *at = entry->d_name + strlen(name);
        uint64_t number;
        int fd;
        if (strncmp(entry->d_name, name, strlen(name)) || !proc_text_number(&at, &number))
            continue;
        fd = openat(dirfd(dir), entry->d_name, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        if (fd >= 0) {
            take(m, fd, number);
            close(fd);
        }
    }
    closedir(dir);
    return 0;
}

static void take_node(struct overview *m, int fd, uint64_t id)
{
    struct overview_node n = {.id = (unsigned)id};
    struct buf text = BUF_INIT;
    if (!file_read_at(fd, "meminfo", TEXT_BYTES_MAX, &text))
        node_meminfo_parse(&n, buf_str(&text));
    buf_reset(&text);
    if (!file_read_at(fd, "numastat", TEXT_BYTES_MAX, &text))
        node_numastat_parse(&n, buf_str(&text));
    buf_release(&text);
    *vec_push(&m->nodes) = n;
}

static void take_huge(struct overview *m, int fd, uint64_t kib)
{
    struct overview_huge h = {.size_bytes = proc_text_times(kib, 1024)};
    if (number_of(fd, "nr_hugepages", &h.total) && number_of(fd, "free_hugepages", &h.free) &&
        number_of(fd, "resv_hugepages", &h.reserved) && number_of(fd, "surplus_hugepages", &h.surplus))
        *vec_push(&m->huge) = h;
}

static int compare_nodes(const void *left, const void *right)
{
    const struct overview_node *a = left, *b = right;
    return (a->id > b->id) - (a->id < b->id);
}

static int compare_huge(const void *left, const void *right)
{
    const struct overview_huge *a = left, *b = right;
    return (a->size_bytes > b->size_bytes) - (a->size_bytes < b->size_bytes);
}

static int compare_slabs(const void *left, const void *right)
{
    const struct overview_slab *a = left, *b = right;
    return (a->bytes < b->bytes) - (a->bytes > b->bytes);
}

void overview_read_huge(struct overview *m)
{
    each_numbered("/sys/kernel/mm/hugepages", "hugepages-", take_huge, m);
    if (m->huge.len)
        qsort(m->huge.at, m->huge.len, sizeof(*m->huge.at), compare_huge);
}

static void read_pages(struct overview *m, struct buf *text, uint32_t top)
{
    each_numbered("/sys/devices/system/node", "node", take_node, m);
    overview_read_huge(m);
    buf_reset(text);
    if (!file_read("/sys/kernel/mm/transparent_hugepage/enabled", 4096, text))
        chosen_parse(buf_str(text), m->thp, sizeof(m->thp));
    slabinfo_parse(m, text_of(m, "/proc/slabinfo", text), (uint64_t)sysconf(_SC_PAGESIZE));
    if (m->nodes.len)
        qsort(m->nodes.at, m->nodes.len, sizeof(*m->nodes.at), compare_nodes);
    if (m->slabs.len)
        qsort(m->slabs.at, m->slabs.len, sizeof(*m->slabs.at), compare_slabs);
    if (top && m->slabs.len > top)
        m->slabs.len = top;
}

/* Converts a time of the log's clock to CLOCK_REALTIME; 0: not known. Like CLOCK_MONOTONIC, the log's clock stops while
 * the machine is suspended. */
static uint64_t wall_ns(const struct overview *m, uint64_t now, uint64_t log_ns)
{
    return log_ns <= now && m->taken_ns > now - log_ns ? m->taken_ns - (now - log_ns) : 0;
}

static void read_kills(struct overview_reader *l, struct overview *m)
{
    uint64_t now = clock_ns(CLOCK_MONOTONIC);
    int bad = kmsg_read(&l->log);
    if (bad)
        say_unknown(m, "/dev/kmsg", bad);
    m->kills_since_ns = l->log.since_ns ? wall_ns(m, now, l->log.since_ns) : 0;
    vec_each (const struct overview_kill, k, &l->log.kills) {
        struct overview_kill *copy = vec_push(&m->kills);
        *copy = *k;
        copy->cgroup = k->cgroup ? mem_strdup(k->cgroup) : NULL;
        copy->at_ns = wall_ns(m, now, k->boot_ns);
    }
}

static void read_processes(struct overview_reader *l, const struct overview_wish *wish, struct overview *m)
{
    overview_sort_processes(&m->processes, wish->sort, wish->top);
    l->asker.left_ms = wish->ask_ms;
    vec_each (struct overview_process, p, &m->processes)
        process_query(&l->asker, p, wish->pss);
}

/* Reads what can be read quickly: names, times, counters, pressure and processes. Returns 0 or -errno. */
static int read_counts(struct overview *m, struct buf *text)
{
    struct utsname name;
    uint64_t page_bytes = (uint64_t)sysconf(_SC_PAGESIZE);
    *m = (struct overview){.taken_ns = clock_ns(CLOCK_REALTIME), .boot_ns = clock_ns(CLOCK_BOOTTIME)};
    if (!uname(&name)) {
        snprintf(m->host, sizeof(m->host), "%.64s", name.nodename);
        snprintf(m->release, sizeof(m->release), "%.64s", name.release);
    }
    vmstat_parse(m, text_of(m, "/proc/vmstat", text), page_bytes);
    read_pressure(m, text);
    return processes_read(m);
}

/* Stores the values that the next snapshot is compared with: of all processes, not only of the listed ones. */
static void keep_counts(struct overview_reader *l, const struct overview *m)
{
    struct overview *b = &l->before;
    overview_release(b);
    *b = (struct overview){.taken_ns = m->taken_ns, .boot_ns = m->boot_ns, .counts = m->counts};
    memcpy(b->pressure, m->pressure, sizeof(b->pressure));
    vec_each (const struct overview_process, p, &m->processes)
        *vec_push(&b->processes) = *p; /* no process_query() yet: `command` is NULL */
}

int overview_read_count(struct overview_reader *l)
{
    struct buf text = BUF_INIT;
    struct overview m;
    int bad = read_counts(&m, &text);
    perf_counters_read(&l->counters, &m);
    keep_counts(l, &m);
    overview_release(&m);
    buf_release(&text);
    return bad;
}

int overview_read(struct overview_reader *l, const struct overview_wish *wish, struct overview *m)
{
    struct buf text = BUF_INIT;
    int bad = read_counts(m, &text);
    perf_counters_read(&l->counters, m);
    if (l->counters_bad)
        say_unknown(m, "perf events of all processors", l->counters_bad);
    overview_since(m, l->before.boot_ns ? &l->before : NULL);
    keep_counts(l, m);
    if (!bad) {
        meminfo_parse(m, text_of(m, "/proc/meminfo", &text));
        zoneinfo_parse(m, text_of(m, "/proc/zoneinfo", &text), (uint64_t)sysconf(_SC_PAGESIZE));
        swaps_parse(m, text_of(m, "/proc/swaps", &text));
        read_zram(m);
        read_pages(m, &text, wish->top);
        int none = cgroups_read(m, wish->top);
        if (none && none != -ENOENT)
            say_unknown(m, "memory of cgroups", none);
        read_kills(l, m);
        read_processes(l, wish, m);
        overview_account(m);
        m->has_tool = wish->has_tool;
        overview_note(m);
    }
    buf_release(&text);
    return bad;
}
