/* SPDX-License-Identifier: BSD-2-Clause */
#include "collect/kernel/kmsg.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "collect/kernel/proc_text.h"

#define RECORD_BYTES 8193 /* the kernel's own limit, and a NUL */
#define KILLS_KEPT   4096u

void kmsg_open(struct kmsg *k)
{
    *k = (struct kmsg){.fd = open("/dev/kmsg", O_RDONLY | O_NONBLOCK | O_CLOEXEC)};
    if (k->fd < 0)
        k->fd = -errno;
}

void kmsg_close(struct kmsg *k)
{
    if (k->fd >= 0)
        close(k->fd);
    vec_each (struct overview_kill, kill, &k->kills)
        free(kill->cgroup);
    vec_release(&k->kills);
    free(k->cgroup);
    *k = (struct kmsg){.fd = -EBADF};
}

int kmsg_read(struct kmsg *k)
{
    char record[RECORD_BYTES];
    if (k->fd < 0)
        return k->fd;
    for (;;) {
        ssize_t n = read(k->fd, record, sizeof(record) - 1);
        if (n > 0) {
            record[n] = '\0';
            kmsg_take(k, record);
        } else if (n == 0 || errno == EAGAIN) {
            return 0;
        } else if (errno == EPIPE) {
            k->begun = false; /* records were overwritten: begins with the next one */
        } else if (errno != EINTR && errno != EINVAL) { /* EINVAL: the record is too long */
            return -errno;
        }
    }
}

/* Parses "foo invoked oom-killer: gfp_mask=...". Returns false for another line. */
static bool take_trigger(struct kmsg *k, const char *text)
{
    const char *found = strstr(text, " invoked oom-killer: gfp_mask=");
    if (!found)
        return false;
    snprintf(k->trigger, sizeof(k->trigger), "%.*s", (int)(found - text < 63 ? found - text : 63), text);
    return true;
}

/*
 * Parses "oom-kill:constraint=CONSTRAINT_MEMCG,nodemask=(null),cpuset=/,mems_allowed=0,oom_memcg=/a,task_memcg=/a/b,
 * task=foo,pid=1,uid=0" (one line). Returns false for another line. The name of the task may contain ",pid=", so the
 * last ",pid=" counts.
 */
static bool take_constraint(struct kmsg *k, const char *text)
{
    static const char begin[] = "oom-kill:constraint=", memcg[] = ",oom_memcg=", task[] = ",task_memcg=";
    uint64_t pid = 0;
    if (strncmp(text, begin, strlen(begin)))
        return false;
    const char *at = NULL, *group = strstr(text, memcg), *end = group ? strstr(group, task) : NULL;
    for (const char *p = text; (p = strstr(p, ",pid=")); p++)
        at = p + 5;
    free(k->cgroup);
    k->cgroup = end ? mem_strndup(group + strlen(memcg), (size_t)(end - group) - strlen(memcg)) : NULL;
    k->victim = at && proc_text_number(&at, &pid) && pid <= INT32_MAX ? (int)pid : 0;
    return true;
}

/* Returns the bytes of a figure "KEY12kB" in the text; 0 if it is missing. */
static uint64_t figure(const char *text, const char *key)
{
    const char *found = strstr(text, key);
    uint64_t value = 0;
    if (found) {
        found += strlen(key);
        proc_text_number(&found, &value);
    }
    return proc_text_times(value, 1024);
}

static void forget_old(struct kmsg *k)
{
    if (k->kills.len < KILLS_KEPT)
        return;
    k->since_ns = k->kills.at[1].boot_ns;
    free(k->kills.at[0].cgroup);
    memmove(k->kills.at, k->kills.at + 1, --k->kills.len * sizeof(*k->kills.at));
}

/*
 * Adds the kill of "Memory cgroup out of memory: Killed process 1 (foo) total-vm:4kB, anon-rss:4kB, file-rss:4kB,
 * shmem-rss:0kB, UID:0 pgtables:4kB oom_score_adj:0". Other lines are ignored.
 */
static void take_kill(struct kmsg *k, const char *text, uint64_t boot_us)
{
    static const char killed[] = ": Killed process ", behind[] = ") total-vm:";
    struct overview_kill kill = {.boot_ns = proc_text_times(boot_us, 1000)};
    const char *at = strstr(text, killed), *end = NULL;
    uint64_t pid, uid = 0;
    kill.cgroup_limit = !strncmp(text, "Memory cgroup out of memory", 27);
    if (!at || (!kill.cgroup_limit && strncmp(text, "Out of memory", 13)))
        return;
    at += strlen(killed);
    for (const char *p = at; (p = strstr(p, behind)); p++)
        end = p;
    if (!proc_text_number(&at, &pid) || pid > INT32_MAX || strncmp(at, " (", 2) || !end || end < at + 2)
        return;
    at += 2;
    kill.pid = (int)pid;
    snprintf(kill.name, sizeof(kill.name), "%.*s", (int)(end - at < 63 ? end - at : 63), at);
    kill.anon_bytes = figure(end, "anon-rss:");
    kill.file_bytes = figure(end, "file-rss:");
    kill.shmem_bytes = figure(end, "shmem-rss:");
    kill.page_table_bytes = figure(end, "pgtables:");
    const char *user = strstr(end, "UID:"), *adjust = strstr(end, "oom_score_adj:");
    if (user && (user += 4, proc_text_number(&user, &uid)))
        kill.uid = (unsigned)uid;
    kill.score_adjust = adjust ? strtol(adjust + strlen("oom_score_adj:"), NULL, 10) : 0;
    snprintf(kill.trigger, sizeof(kill.trigger), "%s", k->trigger);
    if (kill.cgroup_limit && k->victim == kill.pid && k->cgroup)
        kill.cgroup = mem_strdup(k->cgroup);
    forget_old(k);
    *vec_push(&k->kills) = kill;
}

/* Notes how far back the log goes, at its first record. Records are numbered from 0: if the first one has another
 * number, earlier records were overwritten. */
static void begin(struct kmsg *k, uint64_t sequence, uint64_t boot_us)
{
    if (!k->begun && sequence)
        k->since_ns = proc_text_times(boot_us, 1000);
    k->begun = true;
}

void kmsg_take(struct kmsg *k, const char *record)
{
    char line[PROC_TEXT_BYTES];
    uint64_t priority, sequence, boot_us;
    const char *at = record, *text;
    if (!proc_text_next(&at, line))
        return;
    at = line;
    if (!proc_text_number(&at, &priority) || *at++ != ',' || !proc_text_number(&at, &sequence) ||
        *at++ != ',' || !proc_text_number(&at, &boot_us) || !(text = strchr(at, ';')))
        return;
    text++;
    begin(k, sequence, boot_us);
    if (priority >> 3) /* the facility: 0 is the kernel; processes cannot write records with it */
        return;
    if (!take_constraint(k, text) && !take_trigger(k, text))
        take_kill(k, text, boot_us);
}
