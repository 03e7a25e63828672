/* SPDX-License-Identifier: BSD-2-Clause */
/* The folder of `allium sys record --raw`; src/sys/record/raw_folder.h says what is in it. */
#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/read_file.h"
#include "collect/kernel/trace/trace_losses.h"
#include "collect/kernel/trace/trace_saved.h"

#define TEXT_MAX     (1u << 20)
#define KALLSYMS_MAX (256u << 20)
#define COMMS_MAX    (64u << 20)

/* The word behind a key at the beginning of a line; NULL: there is none. */
static const char *value_of(const char *text, const char *key)
{
    const size_t len = strlen(key);
    for (const char *at = text; *at; at += strcspn(at, "\n"), at += *at != '\0')
        if (!strncmp(at, key, len) && at[len] == ' ')
            return at + len + 1;
    return NULL;
}

/* Hex digits up to the end of the line. */
static void take_build_id(struct trace_saved *s, const char *hex)
{
    unsigned byte;
    for (; hex && s->build_id_len < sizeof(s->build_id) && sscanf(hex, "%2x", &byte) == 1; hex += 2) {
        if (!isxdigit((unsigned char)hex[0]) || !isxdigit((unsigned char)hex[1]))
            break;
        s->build_id[s->build_id_len++] = (unsigned char)byte;
    }
}

/* Which kernel it was: without, nothing can be compared. */
static void take_kernel(struct trace_saved *s, const char *text)
{
    const char *release = value_of(text, "release");
    if (release)
        sscanf(release, "%255[^\n]", s->release);
    take_build_id(s, value_of(text, "build_id"));
}

static int read_about(struct trace_saved *s, int folder, const char *path, struct error *e)
{
    char machine[64] = "";
    struct buf text = BUF_INIT;
    int bad = file_read_at(folder, "allium", TEXT_MAX, &text);
    const char *version = value_of(buf_str(&text), "version"), *name = value_of(buf_str(&text), "machine");
    const char *realtime = value_of(buf_str(&text), "realtime_ns"),
               *own = value_of(buf_str(&text), "own_tid"), *end = value_of(buf_str(&text), "end_ns"),
               *settle = value_of(buf_str(&text), "settle_ns"), *cpus = value_of(buf_str(&text), "cpus"),
               *page = value_of(buf_str(&text), "page_bytes");
    if (bad == -ENOENT)
        bad = error_set(e, ENOENT,
                        "%s: is not a folder of allium sys record --raw, or its recording was cut off", path);
    else if (bad)
        error_set(e, -bad, "%s/allium: %s", path, strerror(-bad));
    else if (!version || !name || !realtime || sscanf(name, "%63[^\n]", machine) != 1)
        bad = error_set(e, EBADMSG, "%s/allium: is damaged", path);
    else if (strtol(version, NULL, 10) != 1)
        bad = error_set(e, ENOTSUP, "%s: was made by another version of allium", path);
    else
        bad = trace_saved_check_machine(path, machine, e);
    if (!bad) {
        s->has_realtime = true;
        s->realtime_ns = strtoll(realtime, NULL, 10);
        s->page_bytes = page ? strtoull(page, NULL, 10) : 0;
        s->possible_cpus = cpus ? strtoul(cpus, NULL, 10) : 0;
        take_kernel(s, buf_str(&text));
        s->own_tid = own ? (int32_t)strtol(own, NULL, 10) : 0;
        s->end_ns = end ? strtoull(end, NULL, 10) : 0;
        s->settle_ns = settle ? strtoull(settle, NULL, 10) : 0;
    }
    buf_release(&text);
    return bad;
}

/* Takes every text of this name that there is below the folder: NAME, or NAME/GROUP/EVENT/format. */
static void add_formats(struct trace_saved *s, int folder, const char *name, unsigned depth)
{
    struct buf text = BUF_INIT;
    int fd = openat(folder, name, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
    DIR *d = fd < 0 ? NULL : fdopendir(fd);
    for (struct dirent *entry = d ? readdir(d) : NULL; entry; entry = readdir(d)) {
        char path[512];
        if (entry->d_name[0] == '.' ||
            (size_t)snprintf(path, sizeof(path), "%s/%s", name, entry->d_name) >= sizeof(path))
            continue;
        if (entry->d_type == DT_DIR && depth)
            add_formats(s, folder, path, depth - 1);
        else if (entry->d_type != DT_DIR && !file_read_at(folder, path, TEXT_MAX, &text))
            tracing_data_add_text(&s->formats, path, &text);
        buf_reset(&text);
    }
    buf_release(&text);
    if (d)
        closedir(d);
    else if (fd >= 0)
        close(fd);
}

static int add_cpu(struct trace_saved *s, int folder, uint32_t cpu, const char *path, struct error *e)
{
    char name[64];
    struct stat st;
    struct buf text = BUF_INIT;
    snprintf(name, sizeof(name), "per_cpu/cpu%u/trace_pipe_raw", cpu);
    int fd = openat(folder, name, O_RDONLY | O_CLOEXEC);
    if (fd < 0 || fstat(fd, &st)) {
        int bad = errno;
        if (fd >= 0)
            close(fd);
        return error_set(e, bad, "%s/%s: %s", path, name, strerror(bad));
    }
    *vec_push(&s->fds) = fd;
    *vec_push(&s->cpus) = (struct trace_kept_pages){cpu, fd, 0, (uint64_t)st.st_size};
    snprintf(name, sizeof(name), "per_cpu/cpu%u/stats", cpu);
    if (!file_read_at(folder, name, TEXT_MAX, &text)) {
        s->has_lost = true;
        s->lost += trace_losses_of(buf_str(&text));
    }
    buf_release(&text);
    return 0;
}

static int add_cpus(struct trace_saved *s, int folder, const char *path, struct error *e)
{
    int fd = openat(folder, "per_cpu", O_RDONLY | O_DIRECTORY | O_CLOEXEC), bad = 0;
    DIR *d = fd < 0 ? NULL : fdopendir(fd);
    for (struct dirent *entry = d ? readdir(d) : NULL; entry && !bad; entry = readdir(d)) {
        uint32_t cpu;
        int end = 0;
        if (sscanf(entry->d_name, "cpu%" SCNu32 "%n", &cpu, &end) == 1 && !entry->d_name[end] &&
            cpu <= UINT16_MAX)
            bad = add_cpu(s, folder, cpu, path, e);
    }
    if (d)
        closedir(d);
    else if (fd >= 0)
        close(fd);
    return bad || s->cpus.len ? bad
                              : error_set(e, ENODATA, "%s: has no pages (per_cpu/cpu0/trace_pipe_raw)", path);
}

static int by_cpu(const void *a, const void *b)
{
    const struct trace_kept_pages *x = a, *y = b;
    return (x->cpu > y->cpu) - (x->cpu < y->cpu);
}

int trace_folder_open(struct trace_saved *s, const char *path, struct error *e)
{
    struct buf clock = BUF_INIT;
    *s = (struct trace_saved){.own_tid = 0};
    int folder = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (folder < 0)
        return error_set(e, errno, "%s: %s", path, strerror(errno));
    int bad = read_about(s, folder, path, e);
    bad = bad ? bad : add_cpus(s, folder, path, e);
    if (!bad) {
        qsort(s->cpus.at, s->cpus.len, sizeof(*s->cpus.at), by_cpu);
        add_formats(s, folder, "events", 2);
        file_read_at(folder, "kallsyms", KALLSYMS_MAX, &s->formats.kallsyms);
        file_read_at(folder, "saved_cmdlines", COMMS_MAX, &s->formats.comms);
        file_read_at(folder, "groups", COMMS_MAX, &s->tasks);
        if (!file_read_at(folder, "trace_clock", TEXT_MAX, &clock))
            sscanf(buf_str(&clock), "%31[a-z0-9-]", s->clock);
    }
    buf_release(&clock);
    close(folder);
    return bad;
}
