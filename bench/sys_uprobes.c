/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * sys_uprobes OBJECT ALLIUM PID PROGRAM: notes where `allium sys memleak`, the process ALLIUM, has its probes on the
 * process PID, and says "known". At the next line on stdin it attaches programs that do nothing there: PROGRAM
 * (both_ends or entry_of_two) to functions that allocate, "entry" to those that free. It says "ready", and ends with
 * stdin.
 */
#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <dirent.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

/* Of the kernel's interface, newer than the headers of some systems. */
#define LINK_CREATE          28
#define GET_INFO             15
#define LINK_UPROBE_MULTI    12
#define TRACE_UPROBE_MULTI   48
#define TRACE_UPROBE_SESSION 57

#define PLACES_MOST 256
#define LINKS_MOST  64

struct link_info {
    uint32_t type, id, program, unused;
    uint64_t path, offsets, counters, cookies;
    uint32_t path_size, count, flags, pid;
};

static struct place {
    char path[4096];
    uint64_t offsets[PLACES_MOST];
    uint32_t count, pid;
    bool allocates;
} links[LINKS_MOST];
static unsigned n_links;

static bool name_of_program(uint32_t id, char name[static 64])
{
    struct bpf_prog_info info = {0};
    uint32_t size = sizeof(info);
    const int fd = bpf_prog_get_fd_by_id(id);
    const bool found = fd >= 0 && !bpf_obj_get_info_by_fd(fd, &info, &size);
    snprintf(name, 64, "%s", found ? info.name : "");
    close(fd);
    return found;
}

static void note_link(uint32_t id, uint32_t of)
{
    struct place *p = &links[n_links];
    struct link_info info = {.path = (uintptr_t)p->path,
                             .path_size = sizeof(p->path),
                             .offsets = (uintptr_t)p->offsets,
                             .count = PLACES_MOST};
    struct {
        uint32_t fd, size;
        uint64_t info;
    } request = {.size = sizeof(info), .info = (uintptr_t)&info};
    char name[64];
    const int fd = bpf_link_get_fd_by_id(id);
    request.fd = (uint32_t)fd;
    if (fd < 0 || syscall(SYS_bpf, GET_INFO, &request, sizeof(request)) || info.type != LINK_UPROBE_MULTI ||
        !name_of_program(info.program, name)) {
        close(fd);
        return;
    }
    close(fd);
    p->allocates = !strcmp(name, "memleak_session");
    p->count = info.count;
    p->pid = info.pid;
    n_links += info.pid == of && (p->allocates || !strcmp(name, "memleak_frees")) && n_links + 1 < LINKS_MOST;
}

static void note_links(const char *pid, uint32_t of)
{
    char path[300], line[256];
    snprintf(path, sizeof(path), "/proc/%s/fdinfo", pid);
    DIR *folder = opendir(path);
    for (struct dirent *entry; folder && (entry = readdir(folder));) {
        snprintf(path, sizeof(path), "/proc/%s/fdinfo/%s", pid, entry->d_name);
        FILE *file = fopen(path, "r");
        unsigned id;
        while (file && fgets(line, sizeof(line), file))
            if (sscanf(line, "link_id: %u", &id) == 1)
                note_link(id, of);
        if (file)
            fclose(file);
    }
    if (folder)
        closedir(folder);
}

static bool attach(const struct place *p, int program)
{
    const struct {
        uint32_t program, target, type, flags;
        uint64_t path, offsets, counters, cookies;
        uint32_t n, uprobe_flags, pid, reserved;
    } request = {.program = (uint32_t)program,
                 .type = p->allocates ? TRACE_UPROBE_SESSION : TRACE_UPROBE_MULTI,
                 .path = (uintptr_t)p->path,
                 .offsets = (uintptr_t)p->offsets,
                 .n = p->count,
                 .pid = p->pid};
    return syscall(SYS_bpf, LINK_CREATE, &request, sizeof(request)) >= 0;
}

static int fail(const char *what)
{
    perror(what);
    return 1;
}

int main(int argc, char **argv)
{
    char line[16];
    struct bpf_object *o = argc == 5 ? bpf_object__open_file(argv[1], NULL) : NULL;
    struct bpf_program *at_both = o ? bpf_object__find_program_by_name(o, argv[4]) : NULL;
    struct bpf_program *at_entry = o ? bpf_object__find_program_by_name(o, "entry") : NULL, *p;
    if (!at_both || !at_entry)
        return 2;
    bpf_object__for_each_program(p, o) bpf_program__set_autoload(p, p == at_both || p == at_entry);
    bpf_program__set_expected_attach_type(at_both, (enum bpf_attach_type)TRACE_UPROBE_SESSION);
    bpf_program__set_expected_attach_type(at_entry, (enum bpf_attach_type)TRACE_UPROBE_MULTI);
    if (bpf_object__load(o))
        return fail("load");
    note_links(argv[2], (uint32_t)atoi(argv[3]));
    if (!n_links)
        return fail("no probe of memleak");
    puts("known");
    fflush(stdout);
    if (!fgets(line, sizeof(line), stdin))
        return 1;
    for (unsigned i = 0; i < n_links; i++)
        if (!attach(&links[i], bpf_program__fd(links[i].allocates ? at_both : at_entry)))
            return fail("attach");
    puts("ready");
    fflush(stdout);
    while (read(0, line, 1) > 0)
        ;
    return 0;
}
