/* SPDX-License-Identifier: BSD-2-Clause */
#include "collect/process/proc.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <linux/capability.h>

#include "base/guard.h"

#define AGENT      "liballium-agent" /* .so, -full.so */
#define PF_KTHREAD 0x00200000u       /* in the flags of /proc/PID/stat */

/* Opens /proc/PID/NAME. Returns a descriptor, or -1. */
static int open_file(pid_t pid, const char *name)
{
    char path[64];
    snprintf(path, sizeof(path), "/proc/%d/%s", (int)pid, name);
    return open(path, O_RDONLY | O_CLOEXEC);
}

/* Reads at most size - 1 bytes of /proc/PID/NAME as text. Returns the length, or -1. */
static ssize_t read_file(pid_t pid, const char *name, char *out, size_t size)
{
    int fd = open_file(pid, name);
    if (fd < 0)
        return -1;
    ssize_t len = read(fd, out, size - 1);
    close(fd);
    out[len < 0 ? 0 : len] = '\0';
    return len;
}

static uint64_t status_number(const char *text, const char *key)
{
    const char *found = strstr(text, key);
    return found ? strtoull(found + strlen(key), NULL, 10) : 0;
}

/* Returns the last number of "NSpid:"; the first one is the pid in the namespace of this /proc. */
static pid_t innermost_pid(const char *text)
{
    const char *line = strstr(text, "\nNSpid:"), *end = line ? strchr(line + 1, '\n') : NULL;
    const char *last = end ? memrchr(line, '\t', (size_t)(end - line)) : NULL;
    return last ? (pid_t)strtol(last, NULL, 10) : 0;
}

int proc_status_open(pid_t pid)
{
    return open_file(pid, "status");
}

bool proc_status_read(int fd, struct proc_status *s)
{
    char text[4096];
    *s = (struct proc_status){0};
    ssize_t len = pread(fd, text, sizeof(text) - 1, 0);
    if (len <= 0)
        return false;
    text[len] = '\0';
    const char *user = strstr(text, "\nUid:");
    if (user)
        sscanf(user, "\nUid:\t%*u\t%u", &s->user);
    s->tgid = (pid_t)status_number(text, "\nTgid:");
    s->inner_pid = innermost_pid(text);
    s->rss_anon_bytes = status_number(text, "\nRssAnon:") << 10;
    s->seccomp = (unsigned)status_number(text, "\nSeccomp:");
    s->seccomp_filters = (unsigned)status_number(text, "\nSeccomp_filters:");
    return true;
}

bool proc_status(pid_t pid, struct proc_status *s)
{
    int fd = proc_status_open(pid);
    bool read = proc_status_read(fd, s);
    if (fd >= 0)
        close(fd);
    return read;
}

/* Limit for reads that take the lock of a process's memory map, or read its memory: such a read may never return. */
#define PATIENCE_MS 1000

struct reading {
    pid_t pid;
    ssize_t len;
    char text[4096];
};

static void read_command_line(void *work)
{
    struct reading *r = work;
    r->len = read_file(r->pid, "cmdline", r->text, sizeof(r->text));
}

void proc_command_line(pid_t pid, size_t max, struct buf *out)
{
    struct reading r = {.pid = pid};
    ssize_t len = guard_run(read_command_line, &r, sizeof(r), PATIENCE_MS) ? 0 : r.len;
    len = len > (ssize_t)max ? (ssize_t)max : len;
    while (len > 0 && !r.text[len - 1])
        len--;
    for (ssize_t i = 0; i < len; i++)
        buf_addch(out, r.text[i] ? r.text[i] : ' ');
}

void proc_name(pid_t pid, struct buf *out)
{
    char text[64];
    ssize_t len = read_file(pid, "comm", text, sizeof(text));
    if (len > 0)
        buf_add(out, text, (size_t)len - (text[len - 1] == '\n'));
}

bool proc_may_see_all(void)
{
    char text[4096];
    const char *found =
        read_file(getpid(), "status", text, sizeof(text)) > 0 ? strstr(text, "\nCapEff:") : NULL;
    return found && (strtoull(found + 8, NULL, 16) >> CAP_SYS_PTRACE & 1);
}

void proc_program(pid_t pid, struct buf *out)
{
    char path[64], text[4096];
    snprintf(path, sizeof(path), "/proc/%d/exe", (int)pid);
    ssize_t len = readlink(path, text, sizeof(text));
    if (len > 0)
        buf_add(out, text, (size_t)len);
}

struct finding {
    char path[96];
    int found; /* 0 or -errno */
};

static void find_link(void *work)
{
    struct finding *f = work;
    struct stat st;
    f->found = lstat(f->path, &st) ? -errno : 0;
}

int proc_maps(pid_t pid, uint64_t start, uint64_t bytes)
{
    /* lstat(2) of the exact name takes one lookup, however many mappings there are. */
    struct finding f = {.found = 0};
    snprintf(f.path, sizeof(f.path), "/proc/%d/map_files/%" PRIx64 "-%" PRIx64, (int)pid, start,
             start + bytes);
    int bad = guard_run(find_link, &f, sizeof(f), PATIENCE_MS);
    bad = bad ? bad : f.found;
    return bad == -ENOENT || bad == -ESRCH ? 0 : bad ? bad : 1;
}

bool proc_runs(pid_t pid)
{
    char text[512], state;
    int threads;
    const char *after = read_file(pid, "stat", text, sizeof(text)) > 0 ? strrchr(text, ')') : NULL;
    if (!after || sscanf(after, ") %c %*d %*d %*d %*d %*d %*u %*u %*u %*u %*u %*u %*u %*d %*d %*d %*d %d",
                         &state, &threads) != 2)
        return false;
    /* If only the main thread has ended, its state is Z, but the process still runs its other threads. */
    return (state != 'Z' && state != 'X') || threads > 1;
}

bool proc_has_agent(pid_t pid)
{
    char path[64], *line = NULL;
    size_t size = 0;
    bool found = false;
    snprintf(path, sizeof(path), "/proc/%d/maps", (int)pid);
    FILE *maps = fopen(path, "re");
    while (maps && !found && getline(&line, &size, maps) > 0) {
        const char *name = strrchr(line, '/');
        found = name && !strncmp(name, "/" AGENT, strlen("/" AGENT));
    }
    free(line);
    if (maps)
        fclose(maps);
    return found;
}

bool proc_has_program(pid_t pid)
{
    char path[64], first;
    snprintf(path, sizeof(path), "/proc/%d/exe", (int)pid);
    return readlink(path, &first, 1) >= 0 || errno != ENOENT;
}

bool proc_is_kernel(pid_t pid)
{
    char text[512];
    unsigned flags = 0;
    const char *after = read_file(pid, "stat", text, sizeof(text)) > 0 ? strrchr(text, ')') : NULL;
    return after && sscanf(after, ") %*c %*d %*d %*d %*d %*d %u", &flags) == 1 && (flags & PF_KTHREAD);
}

bool proc_thread(pid_t pid, pid_t tid, char *name, size_t size, uint64_t *began_ns)
{
    char file[64], text[1024];
    snprintf(file, sizeof(file), "task/%d/stat", (int)tid);
    if (read_file(pid, file, text, sizeof(text)) <= 0)
        return false;
    const char *begin = strchr(text, '('), *end = strrchr(text, ')'), *field = end;
    if (!begin || !end || end < begin)
        return false;
    for (int i = 2; field && i < 22; i++) /* the name is the second field, the start the 22nd */
        field = strchr(field + 1, ' ');
    if (!field)
        return false;
    *began_ns = strtoull(field, NULL, 10) * (1000000000u / (unsigned long)sysconf(_SC_CLK_TCK));
    snprintf(name, size, "%.*s", (int)(end - begin - 1), begin + 1);
    return true;
}

static bool is_named(pid_t pid, const char *name, struct buf *text)
{
    buf_reset(text);
    proc_name(pid, text);
    if (!strcmp(buf_str(text), name))
        return true;
    buf_reset(text);
    proc_program(pid, text);
    const char *base = strrchr(buf_str(text), '/');
    return base && !strcmp(base + 1, name);
}

unsigned proc_pids_named(const char *name, unsigned most, struct buf *out)
{
    DIR *proc = opendir("/proc");
    struct buf text = BUF_INIT;
    unsigned found = 0;
    for (const struct dirent *entry; proc && (entry = readdir(proc));) {
        pid_t pid = (pid_t)strtol(entry->d_name, NULL, 10); /* 0: not a process */
        if (pid <= 0 || pid == getpid() || !proc_has_program(pid) || !is_named(pid, name, &text))
            continue;
        if (found++ < most)
            buf_printf(out, "%s%s", found > 1 ? ", " : "", entry->d_name);
    }
    if (proc)
        closedir(proc);
    buf_release(&text);
    return found;
}
