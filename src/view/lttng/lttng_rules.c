/* SPDX-License-Identifier: BSD-2-Clause */
#include "view/lttng/lttng_rules.h"

#define N(array) (sizeof(array) / sizeof((array)[0]))

/* Types of LTTng's fields: U and S are numbers, H is printed in hexadecimal; the digits are bits. */
#define U(bits)             .type = EVENT_UNSIGNED, .bytes = (bits) / 8
#define S(bits)             .type = EVENT_SIGNED, .bytes = (bits) / 8
#define H(bits)             .type = EVENT_HEX, .bytes = (bits) / 8
#define STRING              .type = EVENT_TEXT, .bytes = 0
#define COMM                .type = EVENT_TEXT, .bytes = 16 /* characters */
#define SAME(n, t)          {.as = {.name = #n, t}, .from = #n},
#define FROM(n, t, field)   {.as = {.name = #n, t}, .from = #field},
#define NUMBER(n, t, value) {.as = {.name = #n, t}, .origin = LTTNG_NUMBER, .number = (value)},
#define THREAD(n)           {.as = {.name = #n, S(32)}, .origin = LTTNG_THREAD},
#define NAME(n)             {.as = {.name = #n, COMM}, .origin = LTTNG_NAME},
#define FAULT(n)            {.as = {.name = #n, H(8)}, .origin = LTTNG_FAULT},
#define FIELDS(...)         static const struct lttng_field __VA_ARGS__
#define HAS(list)           .fields = list, .n_fields = N(list)

/* ---- the libc wrapper ---- */

FIELDS(malloc_fields[]) = {SAME(size, U(64)) SAME(ptr, H(64))};
FIELDS(free_fields[]) = {SAME(ptr, H(64))};
/* Allium knows the size of all elements together. */
FIELDS(calloc_fields[]) = {NUMBER(nmemb, U(64), 1) SAME(size, U(64)) SAME(ptr, H(64))};
FIELDS(realloc_fields[]) = {SAME(in_ptr, H(64)) SAME(size, U(64)) SAME(ptr, H(64))};
FIELDS(memalign_fields[]) = {SAME(alignment, U(64)) SAME(size, U(64)) SAME(ptr, H(64))};
FIELDS(posix_memalign_fields[]) = {SAME(out_ptr, H(64)) SAME(alignment, U(64)) SAME(size, U(64))
                                       SAME(result, S(32))};

#define LIBC(name) "lttng_ust_libc:" #name

/* Trace Compass confuses the two addresses of a realloc, so a realloc is written as a free and a malloc. If the realloc
 * failed, the old block is still there: the free is then changed into a free of NULL. */
static const struct lttng_rule ust_rules[] = {
    {.ours = "allium:malloc", .theirs = LIBC(malloc), HAS(malloc_fields)},
    {.ours = "allium:free", .theirs = LIBC(free), HAS(free_fields)},
    {.ours = "allium:calloc", .theirs = LIBC(calloc), HAS(calloc_fields)},
    {.theirs = LIBC(realloc), HAS(realloc_fields)},
    {.ours = "allium:memalign", .theirs = LIBC(memalign), HAS(memalign_fields)},
    {.theirs = LIBC(posix_memalign), HAS(posix_memalign_fields)},
    {.ours = "allium:realloc_begin", .theirs = LIBC(free), .waits = true, HAS(free_fields)},
    {.ours = "allium:realloc_end",
     .theirs = LIBC(malloc),
     .completes = LIBC(free),
     .if_failed = true,
     HAS(malloc_fields)},
};

/* ---- the kernel ---- */

FIELDS(switch_fields[]) = {FROM(prev_comm, COMM, comm) THREAD(prev_tid) FROM(prev_prio, S(32), prio)
                               FROM(prev_state, S(64), state) SAME(next_comm, COMM) SAME(next_tid, S(32))
                                   SAME(next_prio, S(32))};
FIELDS(wakeup_fields[]) = {FROM(comm, COMM, woken_comm) FROM(tid, S(32), woken_tid)
                               FROM(prio, S(32), woken_prio) SAME(target_cpu, S(32))};
FIELDS(fork_fields[]) = {NAME(parent_comm) THREAD(parent_tid) FROM(parent_pid, S(32), pid) NAME(child_comm)
                             FROM(child_tid, S(32), child_pid) SAME(child_pid, S(32))};
FIELDS(exec_fields[]) = {FROM(filename, STRING, comm) THREAD(tid)};
FIELDS(exit_fields[]) = {SAME(comm, COMM) THREAD(tid) SAME(prio, S(32))};
FIELDS(fault_fields[]) = {SAME(address, H(64)) SAME(ip, H(64)) FAULT(error_code)};
FIELDS(slab_alloc_fields[]) = {SAME(call_site, H(64)) SAME(ptr, H(64)) FROM(bytes_req, U(64), requested)
                                   FROM(bytes_alloc, U(64), allocated) FROM(gfp_flags, U(32), gfp)};
FIELDS(kfree_fields[]) = {SAME(call_site, H(64)) SAME(ptr, H(64))};
FIELDS(cache_free_fields[]) = {SAME(call_site, H(64)) SAME(ptr, H(64)) FROM(name, STRING, cache)};
FIELDS(page_alloc_fields[]) = {SAME(pfn, U(64)) SAME(order, U(32)) FROM(gfp_flags, U(32), gfp)
                                   SAME(migratetype, S(32))};
FIELDS(page_free_fields[]) = {SAME(pfn, U(64)) SAME(order, U(32))};
FIELDS(reclaim_begin_fields[]) = {SAME(order, S(32)) FROM(gfp_flags, U(32), gfp)};
FIELDS(reclaim_end_fields[]) = {FROM(nr_reclaimed, U(64), pages)};
FIELDS(brk_fields[]) = {FROM(brk, U(64), asked)};
FIELDS(mmap_fields[]) = {FROM(addr, H(64), address) FROM(len, U(64), length) SAME(prot, S(32))
                             SAME(flags, S(32)) SAME(fd, S(32)) SAME(offset, S(64))};
FIELDS(munmap_fields[]) = {FROM(addr, U(64), address) FROM(len, U(64), length)};
FIELDS(mremap_fields[]) = {FROM(addr, U(64), address) FROM(old_len, U(64), old_length)
                               FROM(new_len, U(64), length) SAME(flags, U(64)) FROM(new_addr, U(64), wanted)};
FIELDS(madvise_fields[]) = {FROM(start, U(64), address) FROM(len_in, U(64), length)
                                FROM(behavior, S(32), advice)};
FIELDS(mprotect_fields[]) = {FROM(start, U(64), address) FROM(len, U(64), length) SAME(prot, U(64))};
FIELDS(ret_fields[]) = {FROM(ret, S(64), result)};
FIELDS(address_fields[]) = {FROM(ret, H(64), result)};

/* The beginning of a system call is recorded without its arguments, which come with the result. */
#define CALL(number, name, result)                                                                           \
    {.ours = "kernel:map_begin",                                                                             \
     .when = "call",                                                                                         \
     .is = (number),                                                                                         \
     .theirs = "syscall_entry_" #name,                                                                       \
     .waits = true,                                                                                          \
     HAS(name##_fields)},                                                                                    \
    {                                                                                                        \
        .ours = "kernel:" #name, .theirs = "syscall_exit_" #name, .completes = "syscall_entry_" #name,       \
        HAS(result##_fields)                                                                                 \
    }

static const struct lttng_rule kernel_rules[] = {
    {.ours = "kernel:sched_switch", .theirs = "sched_switch", HAS(switch_fields)},
    {.ours = "kernel:sched_wakeup", .theirs = "sched_wakeup", HAS(wakeup_fields)},
    {.ours = "kernel:process_fork", .theirs = "sched_process_fork", HAS(fork_fields)},
    {.ours = "kernel:process_exec", .theirs = "sched_process_exec", HAS(exec_fields)},
    {.ours = "kernel:thread_exit", .theirs = "sched_process_exit", HAS(exit_fields)},
    {.ours = "kernel:page_fault_begin",
     .when = "mode",
     .is = 0,
     .theirs = "x86_exceptions_page_fault_user",
     HAS(fault_fields)},
    {.ours = "kernel:page_fault_begin",
     .when = "mode",
     .is = 1,
     .theirs = "x86_exceptions_page_fault_kernel",
     HAS(fault_fields)},
    {.ours = "kernel:kmalloc", .theirs = "kmem_kmalloc", HAS(slab_alloc_fields)},
    {.ours = "kernel:kfree", .theirs = "kmem_kfree", HAS(kfree_fields)},
    {.ours = "kernel:cache_alloc", .theirs = "kmem_cache_alloc", HAS(slab_alloc_fields)},
    {.ours = "kernel:cache_free", .theirs = "kmem_cache_free", HAS(cache_free_fields)},
    {.ours = "kernel:page_alloc", .theirs = "kmem_mm_page_alloc", HAS(page_alloc_fields)},
    {.ours = "kernel:page_free", .theirs = "kmem_mm_page_free", HAS(page_free_fields)},
    {.ours = "kernel:reclaim_begin",
     .when = "kind",
     .is = 0,
     .theirs = "mm_vmscan_direct_reclaim_begin",
     HAS(reclaim_begin_fields)},
    {.ours = "kernel:reclaim_begin",
     .when = "kind",
     .is = 1,
     .theirs = "mm_vmscan_memcg_reclaim_begin",
     HAS(reclaim_begin_fields)},
    {.ours = "kernel:reclaim_end",
     .when = "kind",
     .is = 0,
     .theirs = "mm_vmscan_direct_reclaim_end",
     HAS(reclaim_end_fields)},
    {.ours = "kernel:reclaim_end",
     .when = "kind",
     .is = 1,
     .theirs = "mm_vmscan_memcg_reclaim_end",
     HAS(reclaim_end_fields)},
    CALL(12, brk, ret),
    CALL(9, mmap, address),
    CALL(11, munmap, ret),
    CALL(25, mremap, ret),
    CALL(28, madvise, ret),
    CALL(10, mprotect, ret),
};

const struct lttng_rule *lttng_rules(bool kernel, uint32_t *n)
{
    *n = kernel ? N(kernel_rules) : N(ust_rules);
    return kernel ? kernel_rules : ust_rules;
}
