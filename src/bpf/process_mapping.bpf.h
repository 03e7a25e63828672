/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef BPF_MAPPING_BPF_H
#define BPF_MAPPING_BPF_H

/*
 * What a mapping of a process is: its class, as /proc/PID/maps distinguishes heap and stack, and its file.
 *
 * Runs in: the kernel.
 */

#include "bpf/sys.bpf.h"

#include "bpf/mapped.bpf.h"
#include "bpf/process_mapping.h"
#include "bpf/path.bpf.h"

static __always_inline __u32 mapping_class_of_file(const struct file *file, __u64 flags)
{
    if (flags & KERNEL_VM_SHARED && BPF_CORE_READ(file, f_inode, i_sb, s_magic) == KERNEL_TMPFS_MAGIC)
        return MAPPING_SHARED;
    return MAPPING_FILE;
}

/* `mm`, of which v is a mapping, may be read directly. */
static __always_inline __u32 mapping_class_of(const struct vm_area_struct *v, const struct mm_struct *mm,
                                              __u64 start, __u64 end)
{
    const __u64 flags = BPF_CORE_READ(v, vm_flags);
    if (flags & KERNEL_VM_HUGETLB)
        return MAPPING_HUGETLB;
    if (BPF_CORE_READ(v, vm_ops)) {
        const struct file *file = BPF_CORE_READ(v, vm_file);
        return file ? mapping_class_of_file(file, flags) : MAPPING_OTHER;
    }
    if (start <= mm->brk && end >= mm->start_brk)
        return MAPPING_HEAP;
    const __u64 stack = mm->start_stack;
    return flags & KERNEL_VM_GROWSDOWN || (start <= stack && end >= stack) ? MAPPING_STACK
                                                                           : MAPPING_ANONYMOUS;
}

/* The file of a mapping, or of a call: its path is kept. */
static __always_inline void mapping_set_file(struct mapping *m, const struct file *file)
{
    struct path_key key;
    path_of(&key, file);
    m->inode = key.inode;
    m->device = key.device;
    m->deleted = path_is_deleted(file);
}

static __always_inline bool same_name(const char *a, const char *b)
{
    const __u64 *one = (const __u64 *)a, *other = (const __u64 *)b;
    return one[0] == other[0] && one[1] == other[1];
}

/*
 * Shared memory without a name, and memory of huge pages without one, have files of the kernel's own, a new one for each
 * call of mmap(). Neither their names nor their numbers mean anything.
 */
static __attribute__((noinline, unused)) bool mapping_has_no_name(const struct file *file)
{
    static const char shared[16] __attribute__((aligned(8))) = "dev/zero",
                                 huge[16] __attribute__((aligned(8))) = "anon_hugepage";
    char name[16] __attribute__((aligned(8))) = {0};
    const struct dentry *entry = BPF_CORE_READ(file, f_path.dentry);
    if (BPF_CORE_READ(entry, d_parent) != entry)
        return false;
    bpf_probe_read_kernel_str(name, sizeof(name), BPF_CORE_READ(entry, d_name.name));
    return same_name(name, shared) || same_name(name, huge);
}

/* Describes the mapping at an address of the current process. Returns its start; 0: there is none. */
static __attribute__((noinline, unused)) __u64 mapping_at(struct mapping *m, __u64 address)
{
    const struct mm_struct *mm = bpf_get_current_task_btf()->mm;
    if (!m)
        return 0;
    m->class = MAPPING_UNKNOWN;
    if (!mm || !mapped_can_be_found())
        return 0;
    m->class = MAPPING_OTHER;
    const struct vm_area_struct *v = (const void *)mapped_find(mm, address);
    const __u64 start = v ? BPF_CORE_READ(v, vm_start) : 0, end = v ? BPF_CORE_READ(v, vm_end) : 0;
    if (address < start || address >= end)
        return 0;
    m->class = mapping_class_of(v, mm, start, end);
    const struct file *file = BPF_CORE_READ(v, vm_file);
    if (file)
        mapping_set_file(m, file);
    return start;
}

#endif
