/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef BPF_PATH_BPF_H
#define BPF_PATH_BPF_H

/*
 * Paths of open files. The kernel's own function for it (bpf_d_path()) may be called from few places, so this code
 * walks up the directories itself, across mounts, up to the root of the process. It does so once for each file: the
 * path is kept in a map by the file's number, and read again when the file's entry in its directory has changed.
 *
 * Runs in: the kernel, in the context of the process whose root ends the path.
 */

#include "bpf/sys.bpf.h"

#include "bpf/path.h"

#define PATH_STEPS 20 /* directories and mounts */

extern int LINUX_KERNEL_VERSION __kconfig;

struct {
    __uint(type, BPF_MAP_TYPE_HASH);
    __uint(max_entries, 4096);
    __uint(map_flags, BPF_F_NO_PREALLOC);
    __uint(key_size, sizeof(struct path_key));
    __uint(value_size, sizeof(struct path_text));
} paths SEC(".maps");

struct path_scratch {
    struct path_text text;
    volatile __u64 busy; /* in use: a program that interrupts its user keeps no path */
};

struct {
    __uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
    __uint(max_entries, 1);
    __uint(key_size, sizeof(__u32));
    __uint(value_size, sizeof(struct path_scratch));
} path_scratch SEC(".maps");

static __always_inline bool path_is_of_layer(const struct file *file)
{
    const __u32 bit = LINUX_KERNEL_VERSION < KERNEL_VERSION(6, 14, 0) ? KERNEL_FMODE_BACKING_BEFORE_6_14
                                                                      : KERNEL_FMODE_BACKING;
    return bpf_core_field_exists(struct backing_file, user_path) && KERNEL_READ(file, file, f_mode) & bit;
}

/*
 * Where the program has found the file. Of a mapped file of an overlay f_path is that in its layer (since Linux 6.8),
 * which the program may have no path to; /proc/PID/maps has the other one, too.
 */
static __always_inline const struct path *path_place(const struct file *file)
{
    return path_is_of_layer(file) ? (const void *)file + bpf_core_field_offset(struct backing_file, user_path)
                                  : __builtin_preserve_access_index(&file->f_path);
}

/* Its entry in the directory. */
static __always_inline const struct dentry *path_entry(const struct file *file)
{
    return path_is_of_layer(file) ? BPF_CORE_READ(path_place(file), dentry)
                                  : KERNEL_READ(file, file, f_path.dentry);
}

static __always_inline const struct mount *mount_of(const struct vfsmount *in)
{
    return (const void *)in - bpf_core_field_offset(struct mount, mnt);
}

/* Where the walk is, and where it ends. */
struct path_walk {
    const struct dentry *at, *root;
    const struct mount *in, *root_in;
};

/* Goes from the root of what is mounted to the directory that it is mounted on. Returns false at the path's end. */
static __always_inline bool path_leave_mounts(struct path_walk *w)
{
    const struct mount *in = w->in;
    if (w->at == w->root && in == w->root_in)
        return false;
    if (w->at != BPF_CORE_READ(in, mnt.mnt_root))
        return true;
    const struct mount *up = BPF_CORE_READ(in, mnt_parent);
    if (up == in)
        return false;
    w->at = BPF_CORE_READ(in, mnt_mountpoint);
    w->in = up;
    return true;
}

/* Adds a name to those in the scratch. Their length stands there, too: if it were in a register, the verifier would
 * follow the walk for each length that it may have. */
static __always_inline bool path_add(struct path_text *text, const struct dentry *entry)
{
    __u32 used = *(volatile __u32 *)&text->bytes;
    if (used >= PATH_BYTES)
        return false;
    barrier_var(used); /* the compiler would leave out what follows, which the verifier needs */
    used &= PATH_BYTES - 1;
    const long bytes =
        bpf_probe_read_kernel_str(text->names + used, PATH_NAME_BYTES, BPF_CORE_READ(entry, d_name.name));
    if (bytes <= 0)
        return false;
    *(volatile __u32 *)&text->bytes = used + (__u32)bytes;
    return true;
}

/* Reads the names into the scratch. */
GLOBAL __u32 path_read(__u64 file_at)
{
    const __u32 zero = 0;
    struct path_scratch *s = bpf_map_lookup_elem(&path_scratch, &zero);
    const struct file *file = (const void *)file_at;
    const struct task_struct *task = (const void *)bpf_get_current_task();
    const struct path *place = path_place(file);
    struct path_walk w = {.at = BPF_CORE_READ(place, dentry),
                          .in = mount_of(BPF_CORE_READ(place, mnt)),
                          .root = BPF_CORE_READ(task, fs, root.dentry),
                          .root_in = mount_of(BPF_CORE_READ(task, fs, root.mnt))};
    if (!s)
        return 0;
    s->text.flags = 0;
    s->text.bytes = 0;
    for (int i = 0; i < PATH_STEPS; i++) {
        const struct mount *before = w.in;
        if (!path_leave_mounts(&w))
            return 1;
        if (w.in != before)
            continue; /* several mounts may be stacked */
        const struct dentry *at = w.at;
        if (!path_add(&s->text, at)) {
            s->text.flags = PATH_CUT;
            return 1;
        }
        w.at = BPF_CORE_READ(at, d_parent);
        if (w.at == at) { /* a file without a directory, such as one of memfd_create() */
            s->text.flags = PATH_NOWHERE;
            return 1;
        }
    }
    s->text.flags = path_leave_mounts(&w) ? PATH_CUT : 0;
    return 1;
}

/* Reads the file's path and stores it under the key; marks it as renamed if an older one is there. */
static __attribute__((noinline)) int path_keep(const struct path_key *key, const struct file *file)
{
    const __u32 zero = 0;
    struct path_scratch *s = bpf_map_lookup_elem(&path_scratch, &zero);
    const struct dentry *entry = path_entry(file);
    if (!s || __sync_lock_test_and_set(&s->busy, 1))
        return 0;
    const bool known = bpf_map_lookup_elem(&paths, key) != NULL;
    if (path_read((__u64)file)) {
        s->text.entry = (__u64)entry;
        s->text.parent = (__u64)BPF_CORE_READ(entry, d_parent);
        s->text.name_hash = BPF_CORE_READ(entry, d_name.hash_len);
        s->text.pid = current_ids() >> 32;
        if (known)
            s->text.flags |= PATH_RENAMED;
        if (bpf_map_update_elem(&paths, key, &s->text, BPF_ANY))
            count(SYS_PATHS_FULL);
    }
    s->busy = 0;
    return 0;
}

/* Returns whether the file's name is gone from its directory. Files of memfd_create() never had one. */
static __always_inline bool path_is_deleted(const struct file *file)
{
    return !KERNEL_READ(dentry, path_entry(file), d_hash.pprev);
}

/* Fills the key of an open file, and sees to it that its path is kept. */
static __always_inline void path_of(struct path_key *key, const struct file *file)
{
    const struct dentry *entry = path_entry(file);
    const struct inode *inode =
        path_is_of_layer(file) ? KERNEL_READ(dentry, entry, d_inode) : KERNEL_READ(file, file, f_inode);
    key->inode = KERNEL_READ(inode, inode, i_ino);
    key->device = KERNEL_READ(inode, inode, i_sb, s_dev);
    key->reserved = 0;
    const struct path_text *have = bpf_map_lookup_elem(&paths, key);
    if (!have || have->entry != (__u64)entry || have->parent != (__u64)KERNEL_READ(dentry, entry, d_parent) ||
        have->name_hash != KERNEL_READ(dentry, entry, d_name.hash_len))
        path_keep(key, file);
}

#endif
