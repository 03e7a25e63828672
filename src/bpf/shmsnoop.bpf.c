// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* `allium sys shmsnoop`: who creates, attaches and removes shared memory. */
#include "bpf/call.bpf.h"
#include "bpf/mapped.bpf.h"
#include "bpf/path.bpf.h"
#include "bpf/sys.bpf.h"

#include "bpf/shm_segment.bpf.h"
#include "bpf/shmsnoop.h"

/* The file system at /dev/shm, as the kernel numbers devices; 0: there is none. */
const volatile __u32 shm_device = 0;
/* ... and that of the files of memfd_create(). */
const volatile __u32 memfd_device = 0;

enum { MAP_SHARED_BIT = 0x1, MAP_ANONYMOUS_BIT = 0x20, AT_FDCWD = -100 };
enum { IPC_RMID = 0, IPC_INFO = 3, SHM_STAT = 13, SHM_INFO = 14, SHM_STAT_ANY = 15 };
enum { O_CREAT_WRONLY_TRUNC = 01101 };
#define SHM_HEAD 0x6d68732f7665642full /* "/dev/shm", on little-endian machines */

#define NUMBER(name, number) NR_##name = number,
enum { SHMSNOOP_CALLS(NUMBER) };

/* Returns the call of a number of the kernel's; SHMSNOOP_KINDS: it is none of ours. */
static __always_inline __u32 kind_of_number(__s64 number)
{
    switch (number) {
#define CASE(name, nr)                                                                                       \
    case nr:                                                                                                 \
        return SHMSNOOP_##name;
        SHMSNOOP_CALLS(CASE)
    default:
        return SHMSNOOP_KINDS;
    }
}

/* Of 32-bit programs: ipc() with shmat, shmdt, shmget or shmctl, the calls of these names, and memfd_create(). */
static __attribute__((noinline)) int exits_of_32_bits(__s64 number, __u32 first_argument)
{
    enum { IPC_SHMAT = 21, IPC_SHMCTL = 24 };
    const __u32 ipc = first_argument & 0xffff;
    if ((number == 117 && ipc >= IPC_SHMAT && ipc <= IPC_SHMCTL) || (number >= 395 && number <= 398) ||
        number == 356)
        if (wanted())
            count(CALL_OF_32_BITS);
    return 0;
}

/* ---- which calls are about shared memory ---- */

/*
 * Calls with a path or a descriptor. Most are about ordinary files, which are to cost little: nothing is kept of these
 * calls at their entry.
 */
static __always_inline bool is_of_files(__u32 which)
{
    return which == SHMSNOOP_open || which == SHMSNOOP_openat || which == SHMSNOOP_openat2 ||
           which == SHMSNOOP_creat || which == SHMSNOOP_unlink || which == SHMSNOOP_unlinkat ||
           which == SHMSNOOP_ftruncate;
}

static __always_inline bool has_directory(__u32 which)
{
    return which == SHMSNOOP_openat || which == SHMSNOOP_openat2 || which == SHMSNOOP_unlinkat;
}

static __always_inline __u64 path_of_call(const struct call *call, __u32 which)
{
    return has_directory(which) ? call->arg[1] : call->arg[0];
}

static __always_inline bool is_shm_directory(const struct call *call, __u32 which)
{
    const __s32 fd = has_directory(which) ? (__s32)call->arg[0] : AT_FDCWD;
    const struct task_struct *task = (const void *)bpf_get_current_task();
    const struct file *file = fd == AT_FDCWD ? NULL : call_file(fd);
    const __u32 device = fd == AT_FDCWD ? BPF_CORE_READ(task, fs, pwd.dentry, d_sb, s_dev)
                         : file         ? BPF_CORE_READ(file, f_inode, i_sb, s_dev)
                                        : 0;
    return device == shm_device;
}

/* Returns whether the path that a call was given is one below /dev/shm. */
static __always_inline bool is_shm_path(const struct call *call, __u32 which)
{
    union {
        char text[16];
        __u64 head;
    } path = {.text = ""};
    if (bpf_probe_read_user_str(path.text, 10, (const void *)path_of_call(call, which)) <= 0)
        return false;
    if (path.text[0] == '/')
        return path.head == SHM_HEAD && path.text[8] == '/';
    return shm_device && !(path.text[0] == '.' && path.text[1] == '.') && is_shm_directory(call, which);
}

/*
 * Functions of files that are not kept in memory, or are no regular files: one look at them tells that most opens are
 * about no shared memory. Files in memory have functions that no others have.
 */
__u64 ordinary_files[8] = {0};

/* Returns whether an open file is a regular one in /dev/shm. */
static __always_inline bool is_shm_file(const struct file *file, const struct call *call, __u32 which)
{
    enum { TYPE_BITS = 0170000, TYPE_REGULAR = 0100000 };
    const __u64 functions = (__u64)BPF_CORE_READ(file, f_op);
    volatile __u64 *ordinary = &ordinary_files[functions >> 6 & 7];
    if (LIKELY(*ordinary == functions))
        return false;
    const struct inode *inode = KERNEL_READ(file, file, f_inode);
    if (BPF_CORE_READ(inode, i_sb, s_magic) != KERNEL_TMPFS_MAGIC ||
        (BPF_CORE_READ(inode, i_mode) & TYPE_BITS) != TYPE_REGULAR) {
        *ordinary = functions;
        return false;
    }
    /* Another mount namespace has another file system there. */
    return BPF_CORE_READ(inode, i_sb, s_dev) == shm_device || is_shm_path(call, which);
}

static __always_inline bool is_memory_file(const struct file *file)
{
    const __u64 magic = BPF_CORE_READ(file, f_inode, i_sb, s_magic);
    return magic == KERNEL_TMPFS_MAGIC || magic == KERNEL_HUGETLBFS_MAGIC;
}

/* Returns whether a file whose size changes is one in /dev/shm, or of memfd_create(), also with huge pages. */
static __always_inline bool is_sized_file(const struct file *file)
{
    const struct super_block *in = BPF_CORE_READ(file, f_inode, i_sb);
    const __u32 device = BPF_CORE_READ(in, s_dev);
    return (device && (device == shm_device || device == memfd_device)) ||
           BPF_CORE_READ(in, s_magic) == KERNEL_HUGETLBFS_MAGIC;
}

/* The file of a call that is about one, if it is shared memory. */
static __always_inline const struct file *shm_file_of(const struct call *call, __u32 which, __s64 result)
{
    const struct file *file = NULL;
    if (which == SHMSNOOP_mmap && !(call->arg[3] & MAP_ANONYMOUS_BIT)) {
        file = call_file((__s32)call->arg[4]);
        return file && is_memory_file(file) ? file : NULL;
    }
    if (which == SHMSNOOP_memfd_create && result >= 0)
        return call_file((__s32)result);
    if (which == SHMSNOOP_ftruncate) { /* also of memfd_create() */
        file = call_file((__s32)call->arg[0]);
        return file && is_sized_file(file) ? file : NULL;
    }
    if (!is_of_files(which) || which == SHMSNOOP_unlink || which == SHMSNOOP_unlinkat || result < 0)
        return NULL;
    file = call_file((__s32)result);
    return file && is_shm_file(file, call, which) ? file : NULL;
}

/* Returns whether a call without such a file is about shared memory nevertheless. */
static __always_inline bool is_about_shm(const struct call *call, __u32 which, __s64 result)
{
    if (which == SHMSNOOP_ftruncate)
        return false;
    if (which == SHMSNOOP_mmap)
        return call->arg[3] & MAP_ANONYMOUS_BIT;
    if (which == SHMSNOOP_unlink || which == SHMSNOOP_unlinkat || (is_of_files(which) && result < 0))
        return is_shm_path(call, which);
    return !is_of_files(which);
}

/* Returns which call it is, if it may be about shared memory; SHMSNOOP_KINDS: it is not. */
static __always_inline __u32 wanted_call(const struct call *call)
{
    const __u32 which = kind_of_number(call->number);
    return which == SHMSNOOP_mmap && !(call->arg[3] & MAP_SHARED_BIT) ? SHMSNOOP_KINDS : which;
}

/* The file that is mapped at an address of the current process: also segments and anonymous shared memory have one. */
static __always_inline const struct file *file_mapped_at(__u64 address)
{
    const struct vm_area_struct *v = (const void *)mapped_now(address);
    const struct file *file = NULL;
    if (v)
        bpf_core_read(&file, sizeof(file), &v->vm_file);
    return file;
}

/* ---- entries ---- */

/* What is gone when the call returns. */
static __always_inline void keep_segment(struct call_begun *c, const struct call *call, __u32 which)
{
    struct shmsnoop_segment s = {.id = -1};
    __s32 id = (__s32)call->arg[0];
    if (which == SHMSNOOP_shmdt) {
        const struct file *file = file_mapped_at(call->arg[0]);
        id = file ? (__s32)KERNEL_READ(file, file, f_inode, i_ino) : -1; /* the kernel numbers the files so */
    }
    /* Unless somebody has removed it, the segment that is detached can be read when the call returns. */
    if (which != SHMSNOOP_shmdt || segment_is_removed(id))
        segment_read(&s, id);
    else
        s.id = id;
    c->kept[0] = s.bytes;
    c->kept[1] = (__u64)(__u32)s.key << 32 | (__u32)s.id;
    c->kept[2] = (__u64)s.creator << 32 | s.mode;
    c->kept[3] = s.what & SHMSNOOP_SEGMENT;
}

static __always_inline int enters(const struct call *call, __u32 which)
{
    if (!wanted())
        return 0;
    struct call_begun *c = call_enter(call->number);
    if (c && (which == SHMSNOOP_shmdt || which == SHMSNOOP_shmctl))
        keep_segment(c, call, which);
    return 0;
}

/* ---- exits ---- */

static __always_inline bool failed(const struct shmsnoop_event *e)
{
    return e->result < 0 && e->result > -4096;
}

/* The segment after the call, or as it was before if it is gone. */
static __always_inline void put_kept(struct shmsnoop_event *e, const struct call_begun *begun)
{
    struct shmsnoop_segment *s = &e->segment;
    if (!begun->kept[3])
        return;
    const bool there = segment_read(s, (__s32)begun->kept[1]);
    s->what |= SHMSNOOP_SEGMENT;
    s->bytes = begun->kept[0];
    s->id = (__s32)begun->kept[1];
    s->key = (__s32)(begun->kept[1] >> 32);
    s->creator = begun->kept[2] >> 32;
    if (there)
        return;
    s->mode = (__u32)begun->kept[2];
    if (!failed(e))
        s->what |= SHMSNOOP_DESTROYED;
}

static __always_inline void put_shmctl(struct shmsnoop_event *e, const struct call *call,
                                       const struct call_begun *begun)
{
    e->id = (__s32)call->arg[0];
    e->command = (__u32)call->arg[1];
    switch (e->command & 0xff) {
    case IPC_INFO:
    case SHM_INFO:
        e->id = -1;
        break;
    case SHM_STAT: /* by its place in the table: it returns the identifier */
    case SHM_STAT_ANY:
        e->id = failed(e) ? -1 : (__s32)e->result;
        segment_read(&e->segment, e->id);
        break;
    default:
        put_kept(e, begun);
    }
}

static __always_inline void put_mmap(struct shmsnoop_event *e, const struct call *call)
{
    e->bytes = call->arg[1];
    e->prot = (__u32)call->arg[2];
    e->flags = (__u32)call->arg[3];
    e->fd = e->flags & MAP_ANONYMOUS_BIT ? -1 : (__s32)call->arg[4];
    e->address = failed(e) ? call->arg[0] : (__u64)e->result;
}

/* Flags and mode of the calls that open. */
static __always_inline void put_open(struct shmsnoop_event *e, const struct call *call)
{
    __u64 how[2] = {0, 0};
    switch (e->call) {
    case SHMSNOOP_open:
        e->flags = (__u32)call->arg[1];
        e->mode = (__u32)call->arg[2];
        break;
    case SHMSNOOP_creat:
        e->flags = O_CREAT_WRONLY_TRUNC;
        e->mode = (__u32)call->arg[1];
        break;
    case SHMSNOOP_openat:
        e->flags = (__u32)call->arg[2];
        e->mode = (__u32)call->arg[3];
        break;
    default: /* openat2() has them in memory */
        if (bpf_probe_read_user(how, sizeof(how), (const void *)call->arg[2]))
            count(SHMSNOOP_NAME_LOST);
        e->flags = (__u32)how[0];
        e->mode = (__u32)how[1];
    }
    e->fd = failed(e) ? -1 : (__s32)e->result;
}

static __always_inline void put_call(struct shmsnoop_event *e, const struct call *call,
                                     const struct call_begun *begun)
{
    switch (e->call) {
    case SHMSNOOP_shmget:
        e->key = (__s32)call->arg[0];
        e->bytes = call->arg[1];
        e->flags = (__u32)call->arg[2];
        e->id = failed(e) ? -1 : (__s32)e->result;
        segment_read(&e->segment, e->id);
        break;
    case SHMSNOOP_shmat:
        e->id = (__s32)call->arg[0];
        e->flags = (__u32)call->arg[2];
        e->address = failed(e) ? call->arg[1] : (__u64)e->result;
        segment_read(&e->segment, e->id);
        break;
    case SHMSNOOP_shmdt:
        e->address = call->arg[0];
        if (!failed(e)) {
            e->id = (__s32)begun->kept[1];
            if (begun->kept[3])
                put_kept(e, begun);
            else
                segment_read(&e->segment, e->id);
        }
        break;
    case SHMSNOOP_shmctl:
        put_shmctl(e, call, begun);
        break;
    case SHMSNOOP_mmap:
        put_mmap(e, call);
        break;
    case SHMSNOOP_memfd_create:
        e->flags = (__u32)call->arg[1];
        e->fd = failed(e) ? -1 : (__s32)e->result;
        break;
    case SHMSNOOP_ftruncate:
        e->fd = (__s32)call->arg[0];
        e->bytes = call->arg[1];
        break;
    case SHMSNOOP_unlink:
        break;
    case SHMSNOOP_unlinkat:
        e->flags = (__u32)call->arg[2];
        break;
    default:
        put_open(e, call);
    }
}

static __always_inline bool has_name(__u32 which, const struct file *file)
{
    return which == SHMSNOOP_memfd_create || (is_of_files(which) && !file);
}

static __always_inline void fill(struct shmsnoop_event *e, void *ctx, const struct call *call,
                                 const struct call_begun *begun, const struct file *file)
{
    event_head(&e->head, ctx);
    e->duration_ns = begun->began_ns ? e->head.time_ns - begun->began_ns : 0;
    put_call(e, call, begun);
    if (!file && e->call == SHMSNOOP_mmap && !failed(e))
        file = file_mapped_at(e->address);
    if (!file)
        return;
    file_read(&e->segment, file);
    if (e->call == SHMSNOOP_mmap || e->call == SHMSNOOP_ftruncate)
        e->segment.what &= ~SHMSNOOP_CREATED; /* by the call that has opened it */
    if (e->call == SHMSNOOP_memfd_create)
        e->segment.what |= SHMSNOOP_CREATED;
    struct path_key key;
    path_of(&key, file);
    e->mapping.inode = key.inode;
    e->mapping.device = key.device;
    e->mapping.deleted = path_is_deleted(file);
}

static const struct shmsnoop_event no_event = {.id = -1, .fd = -1, .mapping = {.class = MAPPING_SHARED}};

static __always_inline int report(void *ctx, const struct call *call, __u32 which, __s64 result,
                                  const struct call_begun *begun, const struct file *file)
{
    struct shmsnoop_event *e = event_begin(sizeof(*e));
    if (!e)
        return 0;
    __builtin_memcpy(e, &no_event, __builtin_offsetof(struct shmsnoop_event, name));
    e->call = which;
    e->result = result;
    e->name[0] = '\0';
    if (has_name(which, file) &&
        bpf_probe_read_user_str(e->name, sizeof(e->name), (const void *)path_of_call(call, which)) < 0)
        count(SHMSNOOP_NAME_LOST);
    fill(e, ctx, call, begun, file);
    event_end(e);
    return 0;
}

static __always_inline int exits(void *ctx, const struct call *call, __u32 which, __s64 result)
{
    const struct file *file = shm_file_of(call, which, result);
    if ((!file && !is_about_shm(call, which, result)) || !wanted())
        return 0;
    struct call_begun none = {0}, *begun = &none;
    if (!is_of_files(which))
        begun = call_exit(call->number);
    if (!begun)
        return 0;
    if (!is_of_files(which) && !begun->began_ns && result >= 0) {
        count(CALL_BEGUN_BEFORE);
        return 0;
    }
    report(ctx, call, which, result, begun, file);
    call_done(begun);
    return 0;
}

#define PROGRAMS(way, section, registers, register_bx)                                                       \
    SEC(section "sys_enter") int BPF_PROG(way##_enter, struct pt_regs *regs, __s64 id)                       \
    {                                                                                                        \
        const __u32 kind = kind_of_number(id);                                                               \
        if (LIKELY(kind == SHMSNOOP_KINDS || is_of_files(kind)) || call_is_of_32_bits())                     \
            return 0;                                                                                        \
        const struct call call = registers(regs);                                                            \
        const __u32 which = wanted_call(&call);                                                              \
        return which == SHMSNOOP_KINDS ? 0 : enters(&call, which);                                           \
    }                                                                                                        \
    SEC(section "sys_exit") int BPF_PROG(way##_exit, struct pt_regs *regs, __s64 ret)                        \
    {                                                                                                        \
        const __s64 id = registers##_number(regs);                                                           \
        if (UNLIKELY(call_is_of_32_bits()))                                                                  \
            return exits_of_32_bits(id, (__u32)(register_bx));                                               \
        if (LIKELY(kind_of_number(id) == SHMSNOOP_KINDS))                                                    \
            return 0;                                                                                        \
        const struct call call = registers(regs);                                                            \
        const __u32 which = wanted_call(&call);                                                              \
        return which == SHMSNOOP_KINDS ? 0 : exits(ctx, &call, which, ret);                                  \
    }
PROGRAMS(btf, "tp_btf/", call_of, regs->bx)
PROGRAMS(raw, "raw_tp/", call_read, BPF_CORE_READ(regs, bx))
