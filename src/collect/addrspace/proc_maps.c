/* SPDX-License-Identifier: BSD-2-Clause */
#include "collect/addrspace/proc_maps.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "base/guard.h"
#include "base/mem.h"

#define TEXT_MAX    (64u << 20) /* some half a million mappings */
#define TEXT_FIRST  (64u << 10)
#define PATIENCE_MS 2000

static bool begins(const char *text, const char *with)
{
    return !strncmp(text, with, strlen(with));
}

enum mapping_kind proc_maps_kind(const char *path, uint32_t flags)
{
    if (flags & MAP_HUGETLB || begins(path, "/anon_hugepage"))
        return MAPPING_HUGETLB;
    if (begins(path, "/dev/shm/") || begins(path, "/SYSV") || begins(path, "/memfd:") ||
        begins(path, "[anon_shmem:"))
        return MAPPING_SHARED;
    if (begins(path, "/dev/zero"))
        return flags & MAP_SHARED ? MAPPING_SHARED : MAPPING_ANONYMOUS;
    if (path[0] == '/')
        return MAPPING_FILE;
    if (!path[0] || begins(path, "[anon:"))
        return flags & MAP_SHARED ? MAPPING_SHARED : MAPPING_ANONYMOUS;
    if (!strcmp(path, "[heap]"))
        return MAPPING_HEAP;
    if (!strcmp(path, "[stack]"))
        return MAPPING_STACK;
    if (begins(path, "[vdso") || begins(path, "[vvar") || !strcmp(path, "[vsyscall]"))
        return MAPPING_VDSO;
    return MAPPING_UNKNOWN;
}

/* Returns the device of huge pages without a mount (MAP_HUGETLB, memfd); 0 if it is not known. /proc/PID/maps has no
 * flag for huge pages, but it has the device. */
static dev_t hugetlb_device(void)
{
    static dev_t device;
    static bool asked;
    struct stat st;
    int fd = asked ? -1 : memfd_create("device", MFD_CLOEXEC | MFD_HUGETLB);
    asked = true;
    if (fd >= 0) {
        if (!fstat(fd, &st))
            device = st.st_dev;
        close(fd);
    }
    return device;
}

bool proc_maps_take_line(const char *line, struct mapped_files *files, struct mapping_list *out)
{
    struct space_mapping m = {0};
    struct mapping_file file = {0};
    char rights[5];
    int at = 0;
    if (sscanf(line, "%" SCNx64 "-%" SCNx64 " %4s %" SCNx64 " %" SCNx32 ":%" SCNx32 " %" SCNu64 " %n",
               &m.start, &m.end, rights, &m.page_offset, &file.major, &file.minor, &file.inode, &at) < 7 ||
        m.start >= m.end || strlen(rights) != 4)
        return false;
    m.protection = (rights[0] == 'r' ? PROT_READ : 0u) | (rights[1] == 'w' ? PROT_WRITE : 0u) |
                   (rights[2] == 'x' ? PROT_EXEC : 0u);
    m.flags = rights[3] == 's' ? MAP_SHARED : MAP_PRIVATE;
    const char *path = line + at;
    dev_t huge = hugetlb_device();
    if (huge && file.inode && makedev(file.major, file.minor) == huge)
        m.flags |= MAP_HUGETLB;
    m.kind = proc_maps_kind(path, m.flags);
    if (path[0])
        m.file = mapped_files_get(files, path, &file);
    *vec_push(out) = m;
    return true;
}

/* The file that guard_run() reads in a thread. If the thread does not return in time, it keeps its text. */
struct reading {
    char path[32];
    char *text;
    size_t len;
    int bad;
};

static void read_text(void *work)
{
    struct reading *r = work;
    size_t room = TEXT_FIRST;
    ssize_t n = -1;
    int fd = open(r->path, O_RDONLY | O_CLOEXEC);
    r->bad = fd < 0 ? -errno : 0;
    if (fd < 0)
        return;
    r->text = malloc(room);
    while (r->text && room < TEXT_MAX && (n = read(fd, r->text + r->len, room - r->len - 1)) > 0) {
        r->len += (size_t)n;
        if (room - r->len > 4096)
            continue;
        char *more = realloc(r->text, room *= 2);
        if (!more)
            break;
        r->text = more;
    }
    if (n)
        r->bad = n > 0 ? -E2BIG : errno ? -errno : -ENOMEM;
    if (r->text)
        r->text[r->len] = '\0';
    close(fd);
}

int proc_maps_read(pid_t pid, struct mapped_files *files, struct mapping_list *out)
{
    struct reading r = {.text = NULL};
    snprintf(r.path, sizeof(r.path), "/proc/%d/maps", (int)pid);
    int bad = guard_run(read_text, &r, sizeof(r), PATIENCE_MS);
    if (bad)
        return bad;
    if (r.bad == -ENOENT)
        r.bad = -ESRCH;
    for (char *line = r.text, *end; !r.bad && (end = strchr(line, '\n')); line = end + 1) {
        *end = '\0';
        proc_maps_take_line(line, files, out);
    }
    free(r.text);
    return r.bad == -EPERM ? -EACCES : r.bad;
}

void proc_maps_release(struct mapped_files *files, struct mapping_list *list)
{
    vec_each (struct space_mapping, m, list)
        mapped_files_put(files, m->file);
    vec_release(list);
}
