/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef BPF_FAULT_CLASS_BPF_H
#define BPF_FAULT_CLASS_BPF_H

/*
 * Finds the kind of memory at an address of the current process, and its file. This takes longer than
 * everything else for a fault, and most faults hit the mapping of the previous one. So the result is cached
 * for each CPU. It is valid as long as nobody has taken the address space's lock for writing; the kernel
 * counts that since 6.4.
 *
 * Runs in: the kernel. A part of the tools that show faults.
 */

#include "bpf/sys.bpf.h"

#include "bpf/faults.h"
#include "bpf/mapped.bpf.h"

/* Whether files have to be identified, and not only the kind of memory. */
#ifndef FAULT_FILES_WANTED
#define FAULT_FILES_WANTED (config.parts & FAULTS_BY_FILE)
#endif
/* Whether the size of the pages of hugetlbfs is to be found. */
#ifndef FAULT_SIZES_WANTED
#define FAULT_SIZES_WANTED false
#endif

#define NO_VERSION 1u /* odd: the lock is held, or the kernel does not count */

struct mapping_seen {
    /* odd: an update is in progress. Code that interrupts it must neither use half of it nor appear as half
     * of one */
    __u32 writes;
    __u32 version, tgid;
    __u32 reserved;
    __u64 exec_id, mm; /* another address space may get the address of one that has ended */
    __u64 start, end;
    struct faults_file is;
};

struct {
    __uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
    __uint(max_entries, 1);
    __uint(key_size, sizeof(__u32));
    __uint(value_size, sizeof(struct mapping_seen));
} mapping_seen SEC(".maps");

struct {
    __uint(type, BPF_MAP_TYPE_HASH);
    __uint(max_entries, 4096);
    __uint(map_flags, BPF_F_NO_PREALLOC);
    __uint(key_size, sizeof(struct faults_file));
    __uint(value_size, sizeof(struct faults_name));
} file_names SEC(".maps");

struct {
    __uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
    __uint(max_entries, 1);
    __uint(key_size, sizeof(__u32));
    __uint(value_size, sizeof(struct faults_name));
} name_scratch SEC(".maps");

/* Names are never removed: if the last part is there, all are. */
static __attribute__((noinline)) int name_file(const struct faults_file *key, const struct file *file)
{
    __u32 zero = 0;
    struct faults_name *name = bpf_map_lookup_elem(&name_scratch, &zero);
    const struct dentry *d = BPF_CORE_READ(file, f_path.dentry), *up;
    if (!name || bpf_map_lookup_elem(&file_names, key))
        return 0;
    for (int i = 0; i < FAULTS_NAME_PARTS; i++) {
        name->part[i][0] = 0;
        if (!d)
            continue;
        bpf_probe_read_kernel_str(name->part[i], FAULTS_NAME_BYTES, BPF_CORE_READ(d, d_name.name));
        up = BPF_CORE_READ(d, d_parent);
        d = up == d ? NULL : up;
    }
    if (bpf_map_update_elem(&file_names, key, name, BPF_ANY))
        count(FAULTS_NAMES_FULL);
    return 0;
}

static __always_inline __u32 class_of_file(const struct file *file, __u64 flags)
{
    if (flags & KERNEL_VM_SHARED && BPF_CORE_READ(file, f_inode, i_sb, s_magic) == KERNEL_TMPFS_MAGIC)
        return FAULTS_SHARED;
    return FAULTS_FILE;
}

/* Distinguishes heap and stack as /proc/PID/maps does. */
static __always_inline __u32 class_of(const struct vm_area_struct *v, const struct mm_struct *mm, __u64 start,
                                      __u64 end)
{
    __u64 flags = BPF_CORE_READ(v, vm_flags);
    if (flags & KERNEL_VM_HUGETLB)
        return FAULTS_HUGETLB;
    if (BPF_CORE_READ(v, vm_ops)) {
        const struct file *file = BPF_CORE_READ(v, vm_file);
        return file ? class_of_file(file, flags) : FAULTS_OTHER;
    }
    if (start <= mm->brk && end >= mm->start_brk)
        return FAULTS_HEAP;
    __u64 stack = mm->start_stack;
    return flags & KERNEL_VM_GROWSDOWN || (start <= stack && end >= stack) ? FAULTS_STACK : FAULTS_ANONYMOUS;
}

static __always_inline void describe_mapping(struct faults_file *is, const struct vm_area_struct *v,
                                             const struct mm_struct *mm, __u64 start, __u64 end)
{
    is->class = class_of(v, mm, start, end);
    if (FAULT_SIZES_WANTED && is->class == FAULTS_HUGETLB)
        is->page_bytes = BPF_CORE_READ(v, vm_file, f_inode, i_sb, s_blocksize);
    const struct file *file = FAULT_FILES_WANTED ? BPF_CORE_READ(v, vm_file) : NULL;
    if (!file)
        return;
    is->inode = BPF_CORE_READ(file, f_inode, i_ino);
    is->device = BPF_CORE_READ(file, f_inode, i_sb, s_dev);
    if (!bpf_map_lookup_elem(&file_names, is))
        name_file(is, file);
}

static __always_inline __u32 version_of(const struct mm_struct *mm)
{
    const struct mm_struct___before_6_14 *old = (const void *)mm;
    if (bpf_core_field_exists(mm->mm_lock_seq.sequence))
        return mm->mm_lock_seq.sequence;
    return bpf_core_field_exists(old->mm_lock_seq) ? (__u32)old->mm_lock_seq << 1 : NO_VERSION;
}

static __always_inline void see(struct mapping_seen *seen, const struct mapping_seen *now)
{
    __u32 writes = seen->writes;
    if (writes & 1)
        return;
    *(volatile __u32 *)&seen->writes = writes + 1;
    barrier();
    seen->version = now->version;
    seen->tgid = now->tgid;
    seen->exec_id = now->exec_id;
    seen->mm = now->mm;
    seen->start = now->start;
    seen->end = now->end;
    seen->is = now->is;
    barrier();
    *(volatile __u32 *)&seen->writes = writes + 2;
}

/*
 * Whoever looks at a program's memory from where nothing may wait takes what is there, and does without the rest: a BPF
 * program that takes the stack, these among them. What is not there raises an exception all the same, of which
 * handle_page_fault() tells before do_user_addr_fault() sees that it must not be handled; nor does the kernel count it.
 * To be read directly: bpf_probe_read_kernel() is one of those who do without.
 */
static __always_inline bool is_only_tried(bool by_kernel)
{
    return by_kernel && bpf_get_current_task_btf()->pagefault_disabled;
}

/* The present state, from the address space's own tree. */
static __attribute__((noinline)) int look_up(struct mapping_seen *seen, struct faults_file *is, __u64 address)
{
    const struct task_struct *task = bpf_get_current_task_btf();
    const struct mm_struct *mm = task->mm;
    struct mapping_seen now = {.version = version_of(mm), .tgid = task->tgid, .exec_id = task->self_exec_id};
    barrier(); /* the version was read before the tree */
    const struct vm_area_struct *v = (const void *)mapped_find(mm, address);
    now.mm = (__u64)mm;
    now.start = v ? BPF_CORE_READ(v, vm_start) : 0;
    now.end = v ? BPF_CORE_READ(v, vm_end) : 0;
    if (address < now.start || address >= now.end) {
        bool grows = address >= mm->mmap_base && address < mm->start_stack; /* the stack is about to grow */
        is->class = grows ? FAULTS_STACK : FAULTS_OTHER;
        return 0;
    }
    describe_mapping(&now.is, v, mm, now.start, now.end);
    *is = now.is;
    if (!(now.version & 1))
        see(seen, &now);
    return 0;
}

/* Where the address of a fault lies. */
static __always_inline void classify(struct faults_file *is, __u64 address)
{
    __u32 zero = 0;
    struct mapping_seen *seen = bpf_map_lookup_elem(&mapping_seen, &zero);
    if (!seen)
        return;
    if (!mapped_can_be_found()) {
        is->class = FAULTS_CLASS_UNKNOWN;
        return;
    }
    const struct task_struct *task = bpf_get_current_task_btf();
    const struct mm_struct *mm = task->mm;
    __u32 writes = *(volatile __u32 *)&seen->writes;
    bool holds = address >= seen->start && address < seen->end && seen->mm == (__u64)mm &&
                 seen->version == version_of(mm) && seen->tgid == (__u32)task->tgid &&
                 seen->exec_id == task->self_exec_id;
    *is = seen->is;
    barrier();
    if (UNLIKELY(!holds || writes & 1 || writes != *(volatile __u32 *)&seen->writes)) {
        *is = (struct faults_file){0};
        look_up(seen, is, address);
    }
}

#endif
