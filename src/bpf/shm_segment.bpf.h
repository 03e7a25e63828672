/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef BPF_SHM_SEGMENT_BPF_H
#define BPF_SHM_SEGMENT_BPF_H

/*
 * Segments of shared memory (shmget()) and files that are shared memory, as the kernel has them at this moment. A part
 * of shmsnoop.bpf.c.
 *
 * Runs in: the kernel, in the context of a process, whose namespace has the segments.
 */

#include "bpf/sys.bpf.h"

#include "bpf/mapped.bpf.h"
#include "bpf/shmsnoop.h"

enum { IPC_SHARED_MEMORY = 2, IDENTIFIER_BITS = 15, IDENTIFIER_BITS_EXTENDED = 24, TREE_LEVELS_MAX = 5 };

static __attribute__((noinline)) __u32 number_of_process(const struct pid *pid)
{
    if (!pid)
        return 0;
    return config.pid_namespace ? number_in_namespace(pid) : (__u32)BPF_CORE_READ(pid, numbers[0].nr);
}

/* Returns the entry with this index in a tree of identifiers; 0: there is none. */
GLOBAL __u64 tree_find(__u64 entry, __u32 index)
{
    const __u32 slots = bpf_core_field_size(((struct xa_node *)0)->slots) / sizeof(void *);
    __u32 shift = 0;
    if ((entry & 3) != 2)
        return index ? 0 : entry;
    for (int level = 0; level < TREE_LEVELS_MAX; level++) {
        if ((entry & 3) != 2 || entry < PAGE)
            break;
        const struct xa_node *node = (const void *)(entry - 2);
        shift = KERNEL_READ(xa_node, node, shift) & 31;
        if (!level && index >> shift >= slots)
            return 0;
        const __u64 at = (__u64)node + bpf_core_field_offset(struct xa_node, slots) +
                         (index >> shift & (slots - 1)) * sizeof(void *);
        if (bpf_probe_read_kernel(&entry, sizeof(entry), (const void *)at))
            return 0;
    }
    return (entry & 3) ? 0 : entry;
}

/* Returns the struct vm_area_struct that ends above an address of the current process; 0: there is none. */
GLOBAL __u64 mapped_now(__u64 address)
{
    const struct mm_struct *mm = bpf_get_current_task_btf()->mm;
    return mm ? mapped_find(mm, address) : 0;
}

/* Returns the struct shmid_kernel of an identifier of the current process; 0: there is none. */
GLOBAL __u64 segment_find(__s32 id)
{
    const struct task_struct *task = (const void *)bpf_get_current_task();
    const struct ipc_namespace *ns = KERNEL_READ(task_struct, task, nsproxy, ipc_ns);
    if (!ns || id < 0)
        return 0;
    const __u64 tree = (__u64)BPF_CORE_READ(ns, ids[IPC_SHARED_MEMORY].ipcs_idr.idr_rt.xa_head);
    const struct kern_ipc_perm *found = (const void *)tree_find(tree, id & ((1u << IDENTIFIER_BITS) - 1));
    if (found && KERNEL_READ(kern_ipc_perm, found, id) == id)
        return (__u64)found;
    /* With the parameter ipcmni_extend. */
    found = (const void *)tree_find(tree, id & ((1u << IDENTIFIER_BITS_EXTENDED) - 1));
    return found && KERNEL_READ(kern_ipc_perm, found, id) == id ? (__u64)found : 0;
}

/* How much of the file is resident. The kernel counts huge pages in units that differ between versions. */
static __always_inline void put_resident(struct shmsnoop_segment *s, const struct inode *inode)
{
    if (KERNEL_READ(inode, inode, i_sb, s_magic) == KERNEL_HUGETLBFS_MAGIC)
        return;
    s->resident_bytes = KERNEL_READ(inode, inode, i_mapping, nrpages) * PAGE;
    s->what |= SHMSNOOP_RESIDENT;
}

/* Returns whether there is such a segment. */
static __always_inline bool segment_read(struct shmsnoop_segment *s, __s32 id)
{
    const struct shmid_kernel *k = (const void *)segment_find(id);
    if (!k)
        return false;
    const struct task_struct *task = (const void *)bpf_get_current_task();
    s->what |= SHMSNOOP_SEGMENT;
    s->ipc_namespace = KERNEL_READ(task_struct, task, nsproxy, ipc_ns, ns.inum);
    s->id = id;
    s->key = KERNEL_READ(shmid_kernel, k, shm_perm.key);
    s->mode = KERNEL_READ(shmid_kernel, k, shm_perm.mode);
    s->bytes = KERNEL_READ(shmid_kernel, k, shm_segsz);
    s->attached = (__u32)KERNEL_READ(shmid_kernel, k, shm_nattch);
    s->creator = number_of_process(KERNEL_READ(shmid_kernel, k, shm_cprid));
    put_resident(s, KERNEL_READ(shmid_kernel, k, shm_file, f_inode));
    return true;
}

/* Returns whether the segment is destroyed when nobody has it attached any more. */
static __always_inline bool segment_is_removed(__s32 id)
{
    enum { SHM_DEST = 01000 };
    const struct shmid_kernel *k = (const void *)segment_find(id);
    return k && KERNEL_READ(shmid_kernel, k, shm_perm.mode) & SHM_DEST;
}

static __always_inline void file_read(struct shmsnoop_segment *s, const struct file *file)
{
    const struct inode *inode = KERNEL_READ(file, file, f_inode);
    s->what |= SHMSNOOP_FILE;
    s->bytes = KERNEL_READ(inode, inode, i_size);
    if (KERNEL_READ(file, file, f_mode) & KERNEL_FMODE_CREATED)
        s->what |= SHMSNOOP_CREATED;
    put_resident(s, inode);
}

#endif
