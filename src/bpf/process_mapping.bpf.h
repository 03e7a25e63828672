/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef BPF_PROCESS_MAPPING_BPF_H
#define BPF_PROCESS_MAPPING_BPF_H

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
    if (flags & KERNEL_VM_SHARED && KERNEL_READ(file, file, f_inode, i_sb, s_magic) == KERNEL_TMPFS_MAGIC)
        return MAPPING_SHARED;
    return MAPPING_FILE;
}

/* `mm`, the address space of `v`, is a pointer that the verifier trusts: it is read directly. */
static __always_inline __u32 mapping_class_of(const struct vm_area_struct *v, const struct mm_struct *mm,
                                              __u64 start, __u64 end)
{
    const __u64 flags = KERNEL_READ(vm_area_struct, v, vm_flags);
    if (flags & KERNEL_VM_HUGETLB)
        return MAPPING_HUGETLB;
    if (KERNEL_READ(vm_area_struct, v, vm_ops)) {
        const struct file *file = BPF_CORE_READ(v, vm_file);
        return file ? mapping_class_of_file(file, flags) : MAPPING_OTHER;
    }
    if (start < mm->brk && end > mm->start_brk)
        return MAPPING_HEAP;
    const __u64 stack = mm->start_stack;
    return flags & KERNEL_VM_GROWSDOWN || (start <= stack && end >= stack) ? MAPPING_STACK
                                                                           : MAPPING_ANONYMOUS;
}

/* The file of a mapping, or of a call: its path is kept. */
static __always_inline void mapping_set_file(struct process_mapping *m, const struct file *file)
{
    struct path_key key;
    path_of(&key, file);
    m->inode = key.inode;
    m->device = key.device;
    m->deleted = path_is_deleted(file);
}

/* Of the last search on this CPU. */
struct mapping_found {
    struct process_mapping is;
    __u64 start, end; /* 0, both: there is none */
};

struct {
    __uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
    __uint(max_entries, 1);
    __uint(key_size, sizeof(__u32));
    __uint(value_size, sizeof(struct mapping_found));
} mapping_found SEC(".maps");

/* Searches at an address of the current process. Returns 0 if nothing was found; the class tells why. */
GLOBAL __u32 mapping_search(__u64 address)
{
    const __u32 zero = 0;
    struct mapping_found *m = bpf_map_lookup_elem(&mapping_found, &zero);
    const struct mm_struct *mm = bpf_get_current_task_btf()->mm;
    if (!m)
        return 0;
    *m = (struct mapping_found){.is.class = MAPPING_UNKNOWN};
    if (!mm || !mapped_can_be_found())
        return 0;
    m->is.class = MAPPING_OTHER;
    const struct vm_area_struct *v = (const void *)mapped_find(mm, address);
    const __u64 start = v ? KERNEL_READ(vm_area_struct, v, vm_start) : 0,
                end = v ? KERNEL_READ(vm_area_struct, v, vm_end) : 0;
    if (address < start || address >= end)
        return 0;
    m->start = start;
    m->end = end;
    m->is.class = mapping_class_of(v, mm, start, end);
    const struct file *file = BPF_CORE_READ(v, vm_file);
    if (file)
        mapping_set_file(&m->is, file);
    return 1;
}

/*
 * Describes the mapping at an address of the current process. Not for programs that run in interrupts. Returns the
 * size of the mapping; 0: there is none.
 */
static __always_inline __u64 mapping_at(struct process_mapping *m, __u64 address)
{
    const __u32 zero = 0;
    mapping_search(address);
    const struct mapping_found *found = bpf_map_lookup_elem(&mapping_found, &zero);
    if (!found)
        return 0;
    *m = found->is;
    return found->end - found->start;
}

#endif
