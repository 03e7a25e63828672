/* SPDX-License-Identifier: BSD-2-Clause */
#include "collect/process/processes.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/read_file.h"
#include "collect/kernel/proc_text.h"

#define TEXT_BYTES_MAX 65536u
#define PF_KTHREAD     0x00200000u

/* Fields by their numbers in proc_pid_stat(5), where the first is 1. */
enum { STATE = 3, PARENT = 4, FLAGS = 9, MINOR = 10, MAJOR = 12, THREADS = 20, START = 22, SIZE = 23 };

bool process_parse_stat(struct overview_process *p, const char *text)
{
    const char *begin = strchr(text, '('), *end = strrchr(text, ')'); /* names may contain ( ) and ' ' */
    uint64_t fields[SIZE + 1] = {0}, pid;
    const char *at = text;
    if (!begin || !end || end < begin || !proc_text_number(&at, &pid) || !pid || pid > INT32_MAX)
        return false;
    if (end[1] != ' ' || !end[2] || end[2] == '\n' || end[3] != ' ')
        return false;
    p->pid = (int)pid;
    p->state = end[2] >= 'A' && end[2] <= 'z' ? end[2] : '?';
    snprintf(p->name, sizeof(p->name), "%.*s", (int)(end - begin - 1 < 63 ? end - begin - 1 : 63), begin + 1);
    at = end + 3;
    for (int i = PARENT; i <= SIZE; i++) {
        at += strspn(at, " ");
        at += *at == '-'; /* terminal and priorities may be negative; they are not used */
        if (!proc_text_number(&at, &fields[i]))
            return false;
    }
    p->parent = (int)(fields[PARENT] > INT32_MAX ? 0 : fields[PARENT]);
    p->kernel = fields[FLAGS] & PF_KTHREAD;
    p->minor = fields[MINOR];
    p->major = fields[MAJOR];
    p->threads = (unsigned)fields[THREADS];
    p->start_ticks = fields[START];
    p->size_bytes = fields[SIZE];
    return true;
}

void process_parse_status(struct overview_process *p, const char *text)
{
    char line[PROC_TEXT_BYTES];
    uint64_t value;
    while (proc_text_next(&text, line)) {
        if (proc_text_value(line, "Uid", &value))
            p->uid = (unsigned)value;
        (void)(proc_text_value(line, "RssAnon", &p->anon_bytes) ||
               proc_text_value(line, "RssFile", &p->file_bytes) ||
               proc_text_value(line, "RssShmem", &p->shmem_bytes) ||
               proc_text_value(line, "VmSwap", &p->swap_bytes) ||
               proc_text_value(line, "HugetlbPages", &p->huge_bytes));
    }
}

static bool read_below(int folder, pid_t pid, struct overview_process *p, struct buf *text)
{
    char name[32];
    *p = (struct overview_process){.faults_per_s = -1};
    snprintf(name, sizeof(name), "%d/stat", (int)pid);
    buf_reset(text);
    if (file_read_at(folder, name, TEXT_BYTES_MAX, text) || !process_parse_stat(p, buf_str(text)))
        return false;
    snprintf(name, sizeof(name), "%d/status", (int)pid);
    buf_reset(text);
    if (file_read_at(folder, name, TEXT_BYTES_MAX, text))
        return false;
    process_parse_status(p, buf_str(text));
    return true;
}

bool process_read(pid_t pid, struct overview_process *p)
{
    struct buf text = BUF_INIT;
    int proc = open("/proc", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    bool there = proc >= 0 && read_below(proc, pid, p, &text);
    if (proc >= 0)
        close(proc);
    buf_release(&text);
    return there;
}

int processes_read(struct overview *m)
{
    DIR *proc = opendir("/proc");
    struct buf text = BUF_INIT;
    const struct dirent *entry;
    if (!proc)
        return -errno;
    while ((entry = readdir(proc))) {
        struct overview_process p;
        const char *at = entry->d_name;
        uint64_t pid;
        if (!proc_text_number(&at, &pid) || *at || pid > INT32_MAX ||
            !read_below(dirfd(proc), (pid_t)pid, &p, &text))
            continue;
        m->n_processes += !p.kernel;
        m->n_stuck += p.state == 'D';
        if (!p.kernel)
            *vec_push(&m->processes) = p;
    }
    closedir(proc);
    buf_release(&text);
    return 0;
}
