/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef BPF_FAULT_CLASS_BPF_H
#define BPF_FAULT_CLASS_BPF_H

/*
 * Finds the kind of memory at an address of the current process, and its file. This takes longer than
 * everything else for a fault, and most faults hit the mapping of the previous one. So the result is cached
 * for each CPU. It is valid as long as nobody has taken the address space's lock for writing; the kernel
 * counts that since 6.4. A file can be renamed or deleted without that, so its entry in its directory is compared, too.
 *
 * Runs in: the kernel. A part of the tools that show faults.
 */

#include "bpf/sys.bpf.h"

#include "bpf/faults.h"
#include "bpf/process_mapping.bpf.h"

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
    __u64 entry, parent, name_hash; /* of the file in its directory; 0: no file, or not asked for */
    struct process_mapping is;
};

struct {
    __uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
    __uint(max_entries, 1);
    __uint(key_size, sizeof(__u32));
    __uint(value_size, sizeof(struct mapping_seen));
} mapping_seen SEC(".maps");

static __always_inline bool same_name(const char *a, const char *b)
{
    const __u64 *one = (const __u64 *)a, *other = (const __u64 *)b;
    return one[0] == other[0] && one[1] == other[1];
}

/*
 * Shared memory without a name, and memory of huge pages without one, have files of the kernel's own, a new one for
 * each call of mmap(). Neither their names nor their numbers mean anything.
 */
static __attribute__((noinline)) bool has_no_name(const struct file *file)
{
    static const char shared[16] __attribute__((aligned(8))) = "dev/zero",
                                 huge[16] __attribute__((aligned(8))) = "anon_hugepage";
    char name[16] __attribute__((aligned(8))) = {0};
    const struct dentry *entry = path_entry(file);
    if (BPF_CORE_READ(entry, d_parent) != entry)
        return false;
    bpf_probe_read_kernel_str(name, sizeof(name), BPF_CORE_READ(entry, d_name.name));
    return same_name(name, shared) || same_name(name, huge);
}

/* Of rows by file, also the file, whose path is kept. */
static __always_inline void describe_mapping(struct process_mapping *is, const struct vm_area_struct *v,
                                             const struct mm_struct *mm, __u64 start, __u64 end)
{
    is->class = mapping_class_of(v, mm, start, end);
    if (FAULT_SIZES_WANTED && is->class == MAPPING_HUGETLB)
        is->page_bytes = BPF_CORE_READ(v, vm_file, f_inode, i_sb, s_blocksize);
    const struct file *file = FAULT_FILES_WANTED ? BPF_CORE_READ(v, vm_file) : NULL;
    if (!file)
        return;
    if ((is->class == MAPPING_SHARED || is->class == MAPPING_HUGETLB) && has_no_name(file))
        return;
    mapping_set_file(is, file);
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
    seen->entry = now->entry;
    seen->parent = now->parent;
    seen->name_hash = now->name_hash;
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

/* The entry is read behind the file's path: if it changes between the two, the path is read again at the next fault. */
static __always_inline void see_entry(struct mapping_seen *now, const struct vm_area_struct *v)
{
    if (!now->is.device)
        return;
    const struct dentry *entry = path_entry(BPF_CORE_READ(v, vm_file));
    now->entry = (__u64)entry;
    now->parent = (__u64)BPF_CORE_READ(entry, d_parent);
    now->name_hash = BPF_CORE_READ(entry, d_name.hash_len);
}

/* What of an entry changes when its file is renamed, moved or deleted. */
struct entry_now {
    __u64 hashed, parent, name_hash;
};

/* These lie side by side in all known kernels, and one read takes a third of the time of three. */
static __always_inline struct entry_now read_entry(const struct dentry *entry)
{
    struct entry_now now = {0};
    if (config.casts) {
        const struct dentry *e = CAST_TO(dentry, entry);
        now.hashed = (__u64)e->d_hash.pprev;
        now.parent = (__u64)e->d_parent;
        now.name_hash = e->d_name.hash_len;
        return now;
    }
    const __u64 at = bpf_core_field_offset(entry->d_hash.pprev);
    if (bpf_core_field_offset(entry->d_parent) == at + 8 &&
        bpf_core_field_offset(entry->d_name.hash_len) == at + 16) {
        bpf_probe_read_kernel(&now, sizeof(now), (const void *)entry + at);
        return now;
    }
    now.hashed = (__u64)BPF_CORE_READ(entry, d_hash.pprev);
    now.parent = (__u64)BPF_CORE_READ(entry, d_parent);
    now.name_hash = BPF_CORE_READ(entry, d_name.hash_len);
    return now;
}

/* Returns whether the file has the name that was seen. Its entry exists as long as the mapping does. */
static __always_inline bool is_named_so(const struct mapping_seen *seen)
{
    if (!FAULT_FILES_WANTED || !seen->entry)
        return true;
    const struct entry_now now = read_entry((const void *)seen->entry);
    return seen->is.deleted == !now.hashed && seen->parent == now.parent && seen->name_hash == now.name_hash;
}

/* The present state, from the address space's own tree. */
static __attribute__((noinline)) int look_up(struct mapping_seen *seen, struct process_mapping *is,
                                             __u64 address)
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
        is->class = grows ? MAPPING_STACK : MAPPING_OTHER;
        return 0;
    }
    describe_mapping(&now.is, v, mm, now.start, now.end);
    see_entry(&now, v);
    *is = now.is;
    if (!(now.version & 1))
        see(seen, &now);
    return 0;
}

/* Where the address of a fault lies. */
static __always_inline void classify(struct process_mapping *is, __u64 address)
{
    __u32 zero = 0;
    struct mapping_seen *seen = bpf_map_lookup_elem(&mapping_seen, &zero);
    if (!seen)
        return;
    if (!mapped_can_be_found()) {
        is->class = MAPPING_UNKNOWN;
        return;
    }
    const struct task_struct *task = bpf_get_current_task_btf();
    const struct mm_struct *mm = task->mm;
    __u32 writes = *(volatile __u32 *)&seen->writes;
    bool holds = address >= seen->start && address < seen->end && seen->mm == (__u64)mm &&
                 seen->version == version_of(mm) && seen->tgid == (__u32)task->tgid &&
                 seen->exec_id == task->self_exec_id && is_named_so(seen);
    *is = seen->is;
    barrier();
    if (UNLIKELY(!holds || writes & 1 || writes != *(volatile __u32 *)&seen->writes)) {
        *is = (struct process_mapping){0};
        look_up(seen, is, address);
    }
}

#endif
