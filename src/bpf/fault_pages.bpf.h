/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef BPF_FAULT_PAGES_BPF_H
#define BPF_FAULT_PAGES_BPF_H

/*
 * The pages of a file that a fault brings into memory: a fault that misses a page reads others along with it, and one
 * that finds its page may read those ahead of it. They are added to the page cache by the thread that has the fault. A
 * thread that reads the file by read(2) adds pages, too, but no fault of it is in progress then.
 *
 * Runs in: the kernel. A part of faults.bpf.c, for rows by file.
 */

#include "bpf/sys.bpf.h"

#include "bpf/faults.h"
#include "bpf/process_mapping.bpf.h"

struct {
    __uint(type, BPF_MAP_TYPE_ARRAY);
    __uint(max_entries, FAULTS_THREADS);
    __uint(key_size, sizeof(__u32));
    __uint(value_size, sizeof(struct faults_reading));
} reading SEC(".maps");

static __always_inline struct faults_reading *reading_of_thread(__u32 tid)
{
    const __u32 slot = tid % FAULTS_THREADS;
    return bpf_map_lookup_elem(&reading, &slot);
}

/* A fault begins. A fault that failed has no end, and leaves its entry: the next one of the thread begins anew. */
static __always_inline void reading_begins(__u64 address)
{
    const __u32 tid = (__u32)bpf_get_current_pid_tgid();
    struct faults_reading *r = config.parts & FAULTS_BY_FILE ? reading_of_thread(tid) : NULL;
    if (!r)
        return;
    r->tid = tid;
    r->address = address;
    r->pages = r->index = 0;
    r->brought_in = r->read_ahead = 0;
}

/* Its end. `in` is where it was: only files on disks have pages that are brought in. */
static __always_inline void reading_ends(struct faults_value *v, const struct process_mapping *in)
{
    const __u32 tid = (__u32)bpf_get_current_pid_tgid();
    if (!(config.parts & FAULTS_BY_FILE) || in->class != MAPPING_FILE)
        return;
    struct faults_reading *r = reading_of_thread(tid);
    if (!r || r->tid != tid || !r->address) {
        count(FAULTS_PAGES_UNKNOWN);
        return;
    }
    v->brought_in += r->brought_in;
    v->read_ahead += r->read_ahead;
    r->address = 0;
}

static __always_inline void reading_is_of(struct faults_reading *r, const struct vm_area_struct *v)
{
    const struct file *file = v ? BPF_CORE_READ(v, vm_file) : NULL;
    r->pages = file ? (__u64)BPF_CORE_READ(file, f_mapping) : ~0ull;
    if (v)
        r->index = BPF_CORE_READ(v, vm_pgoff) + (r->address - BPF_CORE_READ(v, vm_start)) / PAGE;
}

static __always_inline __u64 folio_pages(const struct folio *folio)
{
    const struct folio___before_6_6 *old = (const void *)folio;
    const __u32 head = bpf_core_enum_value(enum pageflags, PG_head);
    unsigned long flags = 0;
    bpf_probe_read_kernel(&flags, sizeof(flags), folio);
    if (!(flags >> (head & 63) & 1))
        return 1;
    const __u32 order = bpf_core_field_exists(old->_folio_order) ? BPF_CORE_READ(old, _folio_order)
                                                                 : BPF_CORE_READ(folio, _flags_1) & 0xff;
    return 1ull << (order & 31);
}

/* The current thread has added pages to the page cache. */
static __always_inline void reading_adds(const struct folio *folio)
{
    const __u32 tid = (__u32)bpf_get_current_pid_tgid();
    struct faults_reading *r = reading_of_thread(tid);
    if (!r || r->tid != tid || !r->address)
        return;
    const struct mm_struct *mm = bpf_get_current_task_btf()->mm;
    if (!r->pages && mm)
        reading_is_of(r, (const void *)mapped_find(mm, r->address));
    if ((__u64)BPF_CORE_READ(folio, mapping) != r->pages) /* the file system reads its own data, too */
        return;
    const __u64 from = BPF_CORE_READ(folio, index), pages = folio_pages(folio);
    r->brought_in += pages;
    r->read_ahead += r->index >= from && r->index < from + pages ? pages - 1 : pages;
}

/* A fault begins, perhaps without an exception. One that is tried again, after it has waited for a page, goes on. */
static __always_inline void reading_begins_in(const struct vm_area_struct *vma, __u64 address, __u32 flags)
{
    if (flags & bpf_core_enum_value(enum fault_flag, FAULT_FLAG_TRIED))
        return;
    reading_begins(address);
    struct faults_reading *r = reading_of_thread((__u32)bpf_get_current_pid_tgid());
    if (r)
        reading_is_of(r, vma);
}

#endif
