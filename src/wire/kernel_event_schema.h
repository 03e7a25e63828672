/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef WIRE_KERNEL_EVENT_SCHEMA_H
#define WIRE_KERNEL_EVENT_SCHEMA_H

/*
 * The events of a trace that the kernel writes: for each a number, a group (--kernel), a name and its fields, in this
 * order, laid out as in a structure of C. The BPF programs, the metadata of CTF and all that reads a trace are made
 * from this list. The numbers differ from those of the program's events, which lie in a folder of their own.
 *
 * Runs in: kernel, tool. Macros only: the kernel's side has its own names for integers.
 */

/*
 * E(number, group, name, fields); of the fields, F(name, type): U32, S32, HEX32, U64, S64, HEX64 or BYTES64; L(name,
 * list): one of the labels in KERNEL_LABELS_list; T(name, bytes): a text.
 *
 * pid: the process, of the thread that the event's head names. ip, call_site: addresses of code. map_call: numbers of
 * system calls. prio: 20 and the nice value; below 0: of a real-time thread.
 */
#define KERNEL_EVENT_SCHEMA(E, F, L, T)                                                                      \
    E(32769, faults, page_fault_begin,                                                                       \
      F(pid, U32) L(mode, mode) F(address, HEX64) F(ip, HEX64) L(access, access) L(class, memory))           \
    E(32770, faults, page_fault_end, F(pid, U32) L(kind, fault) F(address, HEX64) L(mode, mode))             \
    E(32771, sched, sched_switch,                                                                            \
      F(pid, U32) L(state, state) F(next_tid, U32) F(next_pid, U32) F(prio, S32) F(next_prio, S32)           \
          T(comm, 16) T(next_comm, 16))                                                                      \
    E(32772, sched, sched_wakeup,                                                                            \
      F(pid, U32) F(woken_tid, U32) F(woken_pid, U32) F(target_cpu, U32) F(woken_prio, S32)                  \
          T(woken_comm, 16))                                                                                 \
    E(32773, sched, process_fork, F(pid, U32) F(child_pid, U32))                                             \
    E(32774, sched, process_exec, F(pid, U32) T(comm, 16))                                                   \
    E(32775, sched, thread_exit, F(pid, U32) F(prio, S32) T(comm, 16))                                       \
    E(32776, kmem, kmalloc,                                                                                  \
      F(pid, U32) F(gfp, HEX32) F(ptr, HEX64) F(call_site, HEX64) F(requested, BYTES64)                      \
          F(allocated, BYTES64))                                                                             \
    E(32777, kmem, kfree, F(pid, U32) F(ptr, HEX64) F(call_site, HEX64))                                     \
    E(32778, kmem, cache_alloc,                                                                              \
      F(pid, U32) F(gfp, HEX32) F(ptr, HEX64) F(call_site, HEX64) F(requested, BYTES64)                      \
          F(allocated, BYTES64) T(cache, 32))                                                                \
    E(32779, kmem, cache_free, F(pid, U32) F(ptr, HEX64) F(call_site, HEX64) T(cache, 32))                   \
    E(32780, pages, page_alloc, F(pid, U32) F(order, U32) F(pfn, U64) F(gfp, HEX32) F(migratetype, U32))     \
    E(32781, pages, page_free, F(pid, U32) F(order, U32) F(pfn, U64))                                        \
    E(32782, maps, map_begin, F(pid, U32) L(call, map_call))                                                 \
    E(32783, maps, brk, F(pid, U32) F(asked, HEX64) F(result, HEX64))                                        \
    E(32784, maps, mmap,                                                                                     \
      F(pid, U32) F(prot, HEX32) F(address, HEX64) F(length, BYTES64) F(flags, HEX32) F(fd, S32)             \
          F(offset, U64) F(result, S64))                                                                     \
    E(32785, maps, munmap, F(pid, U32) F(address, HEX64) F(length, BYTES64) F(result, S64))                  \
    E(32786, maps, mremap,                                                                                   \
      F(pid, U32) F(flags, HEX32) F(address, HEX64) F(old_length, BYTES64) F(length, BYTES64)                \
          F(wanted, HEX64) F(result, S64))                                                                   \
    E(32787, maps, madvise, F(pid, U32) F(advice, U32) F(address, HEX64) F(length, BYTES64) F(result, S64))  \
    E(32788, maps, mprotect, F(pid, U32) F(prot, HEX32) F(address, HEX64) F(length, BYTES64) F(result, S64)) \
    E(32789, rss, rss, F(pid, U32) L(kind, rss) F(bytes, BYTES64) F(own, U32))                               \
    E(32790, reclaim, reclaim_begin, F(pid, U32) L(kind, reclaim) F(order, U32) F(gfp, HEX32))               \
    E(32791, reclaim, reclaim_end, F(pid, U32) L(kind, reclaim) F(pages, U64))                               \
    E(32792, oom, oom_victim, F(pid, U32) F(victim_pid, U32) T(victim_comm, 16))

#define KERNEL_LABELS_mode(X)   X(0, user) X(1, kernel)
#define KERNEL_LABELS_access(X) X(0, read) X(1, write) X(2, execute)
#define KERNEL_LABELS_fault(X)  X(0, minor) X(1, major)
#define KERNEL_LABELS_memory(X)                                                                              \
    X(0, heap) X(1, stack) X(2, anonymous) X(3, file) X(4, shared) X(5, hugetlb) X(6, other) X(7, unknown)
#define KERNEL_LABELS_map_call(X)                                                                            \
    X(12, brk) X(9, mmap) X(11, munmap) X(25, mremap) X(28, madvise) X(10, mprotect)
#define KERNEL_LABELS_rss(X)     X(0, file) X(1, anonymous) X(2, swapped) X(3, shared)
#define KERNEL_LABELS_reclaim(X) X(0, direct) X(1, cgroup)
/* Why a thread leaves the CPU. runnable: it was preempted. Of several states it is the highest, as in the kernel's own
 * trace events. */
#define KERNEL_LABELS_state(X)                                                                               \
    X(0, runnable)                                                                                           \
    X(1, sleeping)                                                                                           \
    X(2, waiting) X(4, stopped) X(8, traced) X(16, dead) X(32, zombie) X(64, parked) X(128, idle)

/* G(name, what it has): the groups, in the order of their bits. */
#define KERNEL_EVENT_GROUPS(G)                                                                               \
    G(kmem, "objects of the slab allocator: allocated and freed")                                            \
    G(pages, "pages: allocated and freed")                                                                   \
    G(faults, "page faults: address, class of memory, minor or major")                                       \
    G(maps, "brk, mmap, munmap, mremap, madvise, mprotect, with their results")                              \
    G(rss, "changes of resident memory")                                                                     \
    G(sched, "threads that take and leave a CPU, and are woken; processes that begin and end")               \
    G(reclaim, "direct reclaim")                                                                             \
    G(oom, "victims of the OOM killer")

enum kernel_event_group {
#define G(name, doc) KERNEL_GROUP_BIT_##name,
    KERNEL_EVENT_GROUPS(G)
#undef G
        KERNEL_GROUPS
};
enum kernel_event_group_bit {
#define G(name, doc) KERNEL_GROUP_##name = 1u << KERNEL_GROUP_BIT_##name,
    KERNEL_EVENT_GROUPS(G)
#undef G
};

#endif
