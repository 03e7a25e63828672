/* SPDX-License-Identifier: BSD-2-Clause */
#include "sys/tools/shared_memory/shm_list.h"

#include <ctype.h>
#include <dirent.h>
#include <fcntl.h>
#include <ftw.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "base/mem.h"

#define TMPFS_MAGIC_NUMBER 0x01021994
#define SHM_FOLDER         "/dev/shm"
#define DEV_ZERO           "/dev/zero (deleted)" /* anonymous shared memory, in /proc/PID/maps */

static uint32_t kernel_device(dev_t device)
{
    return major(device) << 20 | minor(device);
}

uint32_t shm_list_device(const char *path)
{
    struct statfs fs;
    struct stat st;
    const bool in_memory = !statfs(path, &fs) && fs.f_type == TMPFS_MAGIC_NUMBER;
    return in_memory && !stat(path, &st) ? kernel_device(st.st_dev) : 0;
}

uint32_t shm_list_memfd_device(void)
{
    struct stat st;
    const int fd = memfd_create("allium", MFD_CLOEXEC);
    const uint32_t device = fd >= 0 && !fstat(fd, &st) ? kernel_device(st.st_dev) : 0;
    if (fd >= 0)
        close(fd);
    return device;
}

/* Returns the entry, which is made if there is none yet. */
static struct shm_entry *entry_of(struct shm_list *l, uint64_t inode, uint32_t device)
{
    const struct shm_key key = {inode, device, 0};
    bool added;
    const size_t at = map_put(&l->index, &key, sizeof(key), l->entries.len, &added);
    if (added)
        *vec_push(&l->entries) = (struct shm_entry){.inode = inode, .device = device};
    return &l->entries.at[at];
}

void shm_list_read_segments(struct shm_list *l)
{
    FILE *file = fopen("/proc/sysvipc/shm", "re");
    char *line = NULL;
    size_t room = 0;
    while (file && getline(&line, &room, file) > 0) {
        int key, id;
        unsigned mode, creator, attached, uid;
        unsigned long long bytes, resident;
        if (sscanf(line, "%d %d %o %llu %u %*u %u %u %*u %*u %*u %*u %*u %*u %llu", &key, &id, &mode, &bytes,
                   &creator, &attached, &uid, &resident) != 8)
            continue;
        struct shm_entry *e = entry_of(l, (uint64_t)id, 0);
        *e = (struct shm_entry){.inode = (uint64_t)id,
                                .key = key,
                                .mode = mode,
                                .uid = uid,
                                .creator = creator,
                                .bytes = bytes,
                                .resident_bytes = resident,
                                .resident_known = true,
                                .mappings = attached};
    }
    free(line);
    if (file)
        fclose(file);
}

static struct shm_list *walked; /* nftw() passes no argument */

static int add_file(const char *path, const struct stat *st, int kind, struct FTW *where)
{
    (void)where;
    if (kind != FTW_F || !S_ISREG(st->st_mode))
        return 0;
    struct shm_entry *e = entry_of(walked, st->st_ino, kernel_device(st->st_dev));
    if (!e->name)
        e->name = mem_strdup(path);
    e->mode = st->st_mode & 07777;
    e->uid = st->st_uid;
    e->bytes = (uint64_t)st->st_size;
    e->resident_bytes = (uint64_t)st->st_blocks * 512;
    e->resident_known = true;
    return 0;
}

static void read_files(struct shm_list *l)
{
    enum { DESCRIPTORS = 16 };
    walked = l;
    if (shm_list_device(SHM_FOLDER))
        nftw(SHM_FOLDER, add_file, DESCRIPTORS, FTW_PHYS | FTW_MOUNT);
    walked = NULL;
}

static void add_pid(struct shm_entry *e, uint32_t pid)
{
    if (!e->pids.len || e->pids.at[e->pids.len - 1] != pid)
        *vec_push(&e->pids) = pid;
}

/* Identifiers of segments mean others in another IPC namespace. */
static bool same_ipc(uint32_t pid)
{
    struct stat own, its;
    char path[64];
    snprintf(path, sizeof(path), "/proc/%u/ns/ipc", pid);
    return !stat("/proc/self/ns/ipc", &own) && !stat(path, &its) && own.st_ino == its.st_ino;
}

static bool begins(const char *text, const char *with)
{
    return !strncmp(text, with, strlen(with));
}

/* A line of /proc/PID/maps that may be shared memory. */
static void add_mapping(struct shm_list *l, uint32_t pid, char *line, uint32_t shm_device)
{
    unsigned long long from, to, offset, inode;
    unsigned device_major, device_minor;
    char how[5];
    int name = 0;
    line[strcspn(line, "\n")] = '\0';
    if (sscanf(line, "%llx-%llx %4s %llx %x:%x %llu %n", &from, &to, how, &offset, &device_major,
               &device_minor, &inode, &name) < 7 ||
        !name || how[3] != 's' || !inode)
        return;
    const char *path = line + name;
    const uint32_t device = device_major << 20 | device_minor;
    if (begins(path, "/SYSV")) {
        if (same_ipc(pid))
            add_pid(entry_of(l, inode, 0), pid);
        return;
    }
    if (device != shm_device && !begins(path, SHM_FOLDER "/") && !begins(path, "/memfd:") &&
        strcmp(path, DEV_ZERO))
        return;
    struct shm_entry *e = entry_of(l, inode, device);
    if (!e->name)
        e->name = mem_strdup(path);
    if (!e->mode && e->bytes < offset + (to - from))
        e->bytes = offset + (to - from);
    e->mappings++;
    add_pid(e, pid);
}

static void read_maps(struct shm_list *l, uint32_t pid, uint32_t shm_device)
{
    char path[64], *line = NULL;
    size_t room = 0;
    snprintf(path, sizeof(path), "/proc/%u/maps", pid);
    FILE *maps = fopen(path, "re");
    while (maps && getline(&line, &room, maps) > 0)
        add_mapping(l, pid, line, shm_device);
    free(line);
    if (maps)
        fclose(maps);
}

/* Calls `each` for the open files of a process. */
static void each_descriptor(uint32_t pid, void (*each)(void *arg, uint32_t pid, const struct stat *st),
                            void *arg)
{
    char path[64];
    struct stat st;
    snprintf(path, sizeof(path), "/proc/%u/fd", pid);
    DIR *folder = opendir(path);
    for (struct dirent *d; folder && (d = readdir(folder));)
        if (isdigit((unsigned char)*d->d_name) && !fstatat(dirfd(folder), d->d_name, &st, 0))
            each(arg, pid, &st);
    if (folder)
        closedir(folder);
}

static bool is_file(const struct shm_entry *e, const struct stat *st)
{
    return e->device && e->inode == st->st_ino && e->device == kernel_device(st->st_dev);
}

static void set_size(void *arg, uint32_t pid, const struct stat *st)
{
    struct shm_entry *e = arg;
    (void)pid;
    if (!is_file(e, st))
        return;
    e->bytes = (uint64_t)st->st_size;
    e->resident_bytes = (uint64_t)st->st_blocks * 512;
    e->resident_known = true;
}

/* A file without a name has its size from whoever has it open: its mappings may be shorter, or longer. */
static void size_nameless(struct shm_list *l)
{
    vec_each (struct shm_entry, e, &l->entries) {
        e->bytes_unsure = e->device && !e->resident_known && strcmp(e->name, DEV_ZERO) != 0;
        for (size_t i = 0; e->bytes_unsure && i < e->pids.len; i++) {
            each_descriptor(e->pids.at[i], set_size, e);
            e->bytes_unsure = !e->resident_known;
        }
    }
}

static void note_open(void *arg, uint32_t pid, const struct stat *st)
{
    struct shm_list *l = arg;
    vec_each (struct shm_entry, e, &l->entries)
        if (is_file(e, st)) {
            e->is_open = true;
            add_pid(e, pid);
        }
}

/* Files that are mapped nowhere may be open still. */
static void read_descriptors(struct shm_list *l, uint32_t pid)
{
    each_descriptor(pid, note_open, l);
}

static bool any_unmapped_file(const struct shm_list *l)
{
    vec_each (const struct shm_entry, e, &l->entries)
        if (e->device && !e->mappings)
            return true;
    return false;
}

static void each_process(struct shm_list *l, bool descriptors)
{
    const uint32_t shm_device = shm_list_device(SHM_FOLDER);
    DIR *proc = opendir("/proc");
    for (struct dirent *d; proc && (d = readdir(proc));) {
        if (!isdigit((unsigned char)*d->d_name))
            continue;
        const uint32_t pid = (uint32_t)strtoul(d->d_name, NULL, 10);
        if (descriptors)
            read_descriptors(l, pid);
        else
            read_maps(l, pid, shm_device);
    }
    if (proc)
        closedir(proc);
}

void shm_list_read(struct shm_list *l)
{
    *l = (struct shm_list){0};
    shm_list_read_segments(l);
    read_files(l);
    each_process(l, false);
    size_nameless(l);
    if (any_unmapped_file(l))
        each_process(l, true);
}

void shm_list_release(struct shm_list *l)
{
    vec_each (struct shm_entry, e, &l->entries) {
        free(e->name);
        vec_release(&e->pids);
    }
    vec_release(&l->entries);
    map_release(&l->index);
}
