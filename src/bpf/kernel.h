/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef BPF_KERNEL_H
#define BPF_KERNEL_H

/*
 * The kernel's types, as far as they are used: names and members are looked up in the BTF of the kernel that runs, so
 * neither order nor offsets here mean anything. What changed between kernels stands here and nowhere else.
 *
 * Runs in: the kernel. Written for 5.15 and later.
 */

typedef unsigned char __u8;
typedef signed char __s8;
typedef unsigned short __u16;
typedef signed short __s16;
typedef unsigned int __u32;
typedef signed int __s32;
typedef unsigned long long __u64;
typedef signed long long __s64;
typedef __u16 __be16;
typedef __u32 __be32;
typedef __u32 __wsum;
typedef _Bool bool;

enum { false, true };

/* Numbers of the BPF interface, which never change. */
enum bpf_map_type {
    BPF_MAP_TYPE_HASH = 1,
    BPF_MAP_TYPE_ARRAY = 2,
    BPF_MAP_TYPE_PERCPU_HASH = 5,
    BPF_MAP_TYPE_PERCPU_ARRAY = 6,
    BPF_MAP_TYPE_STACK_TRACE = 7,
    BPF_MAP_TYPE_LRU_HASH = 9,
    BPF_MAP_TYPE_RINGBUF = 27,
    BPF_MAP_TYPE_TASK_STORAGE = 29,
};
enum { BPF_ANY, BPF_NOEXIST, BPF_EXIST };
enum {
    BPF_F_NO_PREALLOC = 1u << 0,
    BPF_F_USER_STACK = 1u << 8,
    BPF_F_FAST_STACK_CMP = 1u << 9,
    BPF_F_MMAPABLE = 1u << 10
};
enum { BPF_RB_NO_WAKEUP = 1u << 0, BPF_RB_FORCE_WAKEUP = 1u << 1 };
enum { BPF_RB_AVAIL_DATA, BPF_RB_RING_SIZE, BPF_RB_CONS_POS, BPF_RB_PROD_POS };
enum { KERNEL_ENOENT = 2, KERNEL_ENOMEM = 12, KERNEL_EFAULT = 14, KERNEL_EEXIST = 17, KERNEL_ENOSPC = 28 };
/* task_struct.flags: the BTF has no macros; so since 2.6 */
enum { KERNEL_PF_KSWAPD = 0x20000, KERNEL_PF_KTHREAD = 0x200000 };
enum { KERNEL_RECLAIM_WB_FILE = 1u << 1 }; /* reclaim_flags of mm_vmscan_* */
enum { PID_NAMESPACES_MAX = 33 };          /* 32 below the initial one */
#define NULL ((void *)0)

/* What programs of perf events get, on x86: registers by their numbers in the system's interface, read as whole
 * words only. */
struct perf_context {
    __u64 before_ip[16];
    volatile __u64 ip, cs;
    __u64 after_cs[3];
    __u64 period;
    volatile __u64 address;
};

#pragma clang attribute push(__attribute__((preserve_access_index)), apply_to = record)

typedef struct {
    int counter;
} atomic_t;

typedef struct {
    long counter;
} atomic_long_t;

struct list_head {
    struct list_head *next;
};

/* Registers by the kernel's names for them, which libbpf takes when it finds this defined. */
#define __VMLINUX_H__
#if defined(__TARGET_ARCH_arm64)
struct user_pt_regs {
    unsigned long regs[31], sp, pc;
};
struct pt_regs {
    unsigned long syscallno;
};
#else
struct pt_regs {
    unsigned long r15, r14, r13, r12, bp, bx, r11, r10, r9, r8, ax, cx, dx, si, di, orig_ax, ip, cs, sp;
};
#endif

/* Whether the kernel has a helper: bpf_core_enum_value_exists(). */
enum bpf_func_id {
    BPF_FUNC_loop = 181, /* since 5.17 */
};

struct bpf_array {
    void *pptrs[0];
};

struct kernfs_node {
    const char *name;
    struct kernfs_node *__parent; /* since 6.15 */
    __u64 id;
};

struct kernfs_node___before_6_15 {
    struct kernfs_node *parent;
};

struct cgroup_root {
    int hierarchy_id; /* 0: version 2 */
};

struct cgroup {
    struct kernfs_node *kn;
    struct cgroup_root *root;
    int level;
    struct cgroup *ancestors[0]; /* since 6.1 */
};

struct cgroup___before_6_1 {
    __u64 ancestor_ids[0];
};

struct cgroup_subsys_state {
    struct cgroup *cgroup;
    struct cgroup_subsys_state *parent;
};

struct page_counter {
    atomic_long_t usage;
    unsigned long max;
    struct page_counter *parent;
};

/* The multi-generational LRU, where it is built in: since 6.1. (Its struct had another name before 6.3, which does
 * not matter.) */
struct lru_gen_folio {
    bool enabled;
};

struct zone {
    atomic_long_t vm_stat[0]; /* by enum zone_stat_item */
};

enum zone_stat_item { NR_FREE_PAGES };

/* A node's memory. */
struct pglist_data {
    struct zone node_zones[0];
    int nr_zones;
};

struct lruvec {
    struct lru_gen_folio lrugen;
    struct pglist_data *pgdat;
};

struct mem_cgroup_per_node {
    struct lruvec lruvec;
};

struct mem_cgroup {
    struct cgroup_subsys_state css;
    struct page_counter memory, memsw;
    bool oom_lock; /* from 6.11 on only with the v1 hierarchy built in */
    struct mem_cgroup_per_node *nodeinfo[0];
};

struct css_set {
    struct cgroup_subsys_state *subsys[16];
    struct cgroup *dfl_cgrp;
};

enum cgroup_subsys_id { memory_cgrp_id_unused };
enum cgroup_subsys_id___memory { memory_cgrp_id = 4 };

struct ns_common {
    unsigned int inum;
};

struct pid_namespace {
    struct ns_common ns;
};

struct upid {
    int nr;
    struct pid_namespace *ns;
};

struct pid {
    unsigned int level;
    struct upid numbers[0];
};

typedef struct {
    unsigned int val;
} kuid_t;

struct cred {
    kuid_t uid;
};

struct percpu_counter {
    __s64 count;
    __s32 *counters;
};

struct maple_tree {
    void *ma_root;
};

struct seqcount {
    unsigned int sequence;
};

struct mm_struct {
    struct maple_tree mm_mt; /* since 6.1 */
    /* changes whenever its lock is taken for writing, and given back: odd meanwhile */
    struct seqcount mm_lock_seq;
    unsigned long mmap_base, start_brk, brk, start_stack;
    atomic_long_t pgtables_bytes;
    unsigned long total_vm;
    struct file *exe_file;
    struct task_struct *owner;         /* the process; NULL when it is ending. Only with memory cgroups */
    struct percpu_counter rss_stat[4]; /* since 6.2 */
};

struct mm_rss_stat {
    atomic_long_t count[4];
};

struct mm_struct___before_6_2 {
    struct mm_rss_stat rss_stat;
};

struct mm_struct___before_6_14 {
    int mm_lock_seq; /* since 6.4: changes whenever the lock is given back after writing */
};

/* Nobody can ask for their values: the kernel's enum has no name. They are so since 4.5. */
enum { MM_FILEPAGES, MM_ANONPAGES, MM_SWAPENTS, MM_SHMEMPAGES, NR_MM_COUNTERS };

struct signal_struct {
    atomic_t live; /* threads that have not ended */
    int nr_threads;
    struct list_head thread_head;
    short oom_score_adj;
    struct mm_struct *oom_mm;
};

struct thread_struct { /* x86 */
    unsigned long fsbase;
};

struct thread_info { /* x86 */
    __u32 status;
    __u32 cpu; /* since 5.16 */
};

struct task_delay_info;

struct task_struct {
    struct task_delay_info *delays;
    struct thread_info thread_info;
    int pid, tgid, prio, exit_state;
    unsigned int flags;
    char comm[16];
    struct css_set *cgroups;
    struct list_head tasks, thread_node;
    struct task_struct *group_leader;
    struct mm_struct *mm;
    struct signal_struct *signal;
    const struct cred *real_cred;
    struct fs_struct *fs;
    void *vfork_done; /* NULL: it is no vfork child, or has its own address space by now */
    struct files_struct *files;
    struct nsproxy *nsproxy;
    __u64 start_time, start_boottime;
    struct pid *thread_pid; /* NULL: it is ending */
    unsigned long sas_ss_sp, sas_ss_size;
    __u64 self_exec_id; /* how many programs it has executed */
    int pagefault_disabled;
    struct thread_struct thread;
};

/* Memory of a process: what is mapped where. */
struct maple_range_64 {
    unsigned long pivot[15];
    void *slot[16];
};

struct maple_arange_64 {
    unsigned long pivot[9];
    void *slot[10];
};

enum maple_type { maple_range_64 = 2, maple_arange_64 = 3 };

struct super_block {
    __u32 s_dev;
    unsigned long s_blocksize; /* of hugetlbfs: the size of its pages */
    unsigned long s_magic;
};

struct address_space {
    struct inode *host;
    unsigned long nrpages;
};

struct inode {
    unsigned short i_mode;
    unsigned long i_ino;
    struct super_block *i_sb;
    struct address_space *i_mapping;
    __s64 i_size;
};

struct qstr {
    __u64 hash_len;
    const unsigned char *name;
};

struct hlist_bl_node {
    void *pprev;
};

struct dentry {
    struct hlist_bl_node d_hash; /* no pprev: it is in no directory */
    struct qstr d_name;
    struct dentry *d_parent;
    struct inode *d_inode;
    struct super_block *d_sb;
};

struct vfsmount {
    struct dentry *mnt_root;
};

struct mount {
    struct mount *mnt_parent;
    struct dentry *mnt_mountpoint;
    struct vfsmount mnt;
};

struct path {
    struct vfsmount *mnt;
    struct dentry *dentry;
};

struct fs_struct {
    struct path root, pwd;
};

struct file {
    struct path f_path;
    struct inode *f_inode;
    const void *f_op;
    unsigned int f_mode;
    struct address_space *f_mapping;
};

/* The file of a layer of an overlay, which is mapped; since Linux 6.8. Its first part is a struct file. */
struct backing_file {
    struct path user_path;
};

struct fdtable {
    unsigned int max_fds;
    struct file **fd;
};

struct files_struct {
    struct fdtable *fdt;
};

struct vm_area_struct {
    unsigned long vm_start, vm_end, vm_flags;
    const void *vm_ops;
    struct file *vm_file;
    unsigned long vm_pgoff;
    struct mm_struct *vm_mm;
};

/* Flags of mappings, which no kernel since 5.15 has changed, and older ones do not have in their BTF. */
enum { KERNEL_VM_SHARED = 0x8, KERNEL_VM_GROWSDOWN = 0x100, KERNEL_VM_HUGETLB = 0x400000 };
enum { KERNEL_TMPFS_MAGIC = 0x01021994, KERNEL_HUGETLBFS_MAGIC = 0x958458f6 };
enum {                                               /* file.f_mode */
       KERNEL_FMODE_CREATED = 0x100000,              /* open() has made the file; since 4.19 */
       KERNEL_FMODE_BACKING = 0x1000000,             /* it is a struct backing_file; since 6.14 */
       KERNEL_FMODE_BACKING_BEFORE_6_14 = 0x2000000, /* since 6.5 */
};

/* Segments of shared memory, by their identifiers. */
struct xarray {
    void *xa_head;
};

struct xa_node {
    unsigned char shift;
    void *slots[64];
};

struct idr {
    struct xarray idr_rt;
};

struct ipc_ids {
    struct idr ipcs_idr;
};

struct ipc_namespace {
    struct ipc_ids ids[3]; /* of semaphores, messages, and shared memory */
    struct ns_common ns;
};

struct nsproxy {
    struct ipc_namespace *ipc_ns;
};

struct kern_ipc_perm {
    int id, key;
    unsigned short mode;
};

struct shmid_kernel {
    struct kern_ipc_perm shm_perm;
    struct file *shm_file;
    unsigned long shm_nattch, shm_segsz;
    struct pid *shm_cprid;
};

enum fault_flag { FAULT_FLAG_WRITE = 1, FAULT_FLAG_TRIED = 32, FAULT_FLAG_INSTRUCTION = 256 };
enum vm_fault_reason {
    VM_FAULT_OOM = 0x1,
    VM_FAULT_SIGBUS = 0x2,
    VM_FAULT_MAJOR = 0x4,
    VM_FAULT_HWPOISON = 0x10,
    VM_FAULT_HWPOISON_LARGE = 0x20,
    VM_FAULT_SIGSEGV = 0x40,
    VM_FAULT_RETRY = 0x400,
    VM_FAULT_FALLBACK = 0x800,
};
enum { X86_TS_COMPAT = 0x2 }; /* thread_info.status: a system call of a 32-bit program */
/* Bits of x86's error code of a page fault. */
enum { X86_FAULT_WRITE = 0x2, X86_FAULT_FETCH = 0x10 };

enum oom_constraint { CONSTRAINT_NONE, CONSTRAINT_CPUSET, CONSTRAINT_MEMORY_POLICY, CONSTRAINT_MEMCG };

struct oom_control {
    struct mem_cgroup *memcg;
    unsigned int gfp_mask;
    int order;
    unsigned long totalpages;
    struct task_struct *chosen;
    enum oom_constraint constraint;
};

struct kmem_cache {
    const char *name;
    unsigned int size, object_size;
};

struct shrinker {
    void *scan_objects;
};

struct reclaim_stat {
    unsigned int nr_dirty, nr_writeback, nr_immediate;
    unsigned int nr_activate[2];
};

enum lru_list___kernel { LRU_INACTIVE_ANON = 0, LRU_INACTIVE_FILE = 2 };

#pragma clang attribute pop

#include "bpf/kernel_pages.bpf.h"
#include "bpf/kernel_records.bpf.h"

#endif
