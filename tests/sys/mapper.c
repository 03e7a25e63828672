/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Changes its address space in known ways.
 *
 * steps FOLDER: makes each kind of call, and prints each as a JSON line, as its results and /proc/self/maps tell it.
 * random N: makes N calls, and prints how many, how many failed, and by how many bytes the address space grew.
 * pairs N: makes N pairs of mmap() and munmap() on each CPU. old N: makes N calls as 32-bit programs do. denied N:
 * makes N calls that a seccomp filter denies. ends N: ends with N threads, after a vfork child. exec -: runs true.
 */
#include <errno.h>
#include <fcntl.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <pthread.h>
#include <sched.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/shm.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

#define PAGE 4096ul

/* Nothing here allocates between the marks: what is to be printed waits. */
static char said[1 << 16];
static size_t used;

static void say(const char *fmt, ...)
{
    va_list args;
    va_start(args, fmt);
    used += (size_t)vsnprintf(said + used, sizeof(said) - used, fmt, args);
    va_end(args);
}

static void mark(void)
{
    syscall(SYS_madvise, 0, 0, 4711);
}

/* The name of what is mapped there, as the kernel has it. */
static const char *mapped_at(uint64_t address)
{
    static char maps[1 << 16], name[4096];
    const int fd = open("/proc/self/maps", O_RDONLY);
    size_t n = 0;
    for (ssize_t r; (r = read(fd, maps + n, sizeof(maps) - 1 - n)) > 0;)
        n += (size_t)r;
    maps[n] = 0;
    close(fd);
    for (char *line = maps, *end; *line; line = end + 1) {
        uint64_t from, to;
        int at = 0;
        end = strchr(line, '\n');
        *end = 0;
        if (sscanf(line, "%lx-%lx %*s %*s %*s %*s %n", &from, &to, &at) >= 2 && address >= from &&
            address < to) {
            snprintf(name, sizeof(name), "%s", at && line[at] ? line + at : "[anonymous]");
            return name;
        }
    }
    return "";
}

/* One call that was made; result below 0: -errno. */
static void did(const char *call, long result, uint64_t address, uint64_t bytes, const char *mapped)
{
    say("{\"call\":\"%s\",\"error\":%s%s%s,\"address\":\"0x%lx\",\"size_bytes\":%lu,\"mapped\":%s%s%s", call,
        result < 0 ? "\"" : "", result < 0 ? strerrorname_np((int)-result) : "null", result < 0 ? "\"" : "",
        address, bytes, mapped ? "\"" : "", mapped ? mapped : "null", mapped ? "\"" : "");
}

#define CALL(name, ...)                                                                                      \
    ({                                                                                                       \
        long result_ = syscall(SYS_##name, __VA_ARGS__);                                                     \
        result_ == -1 ? -(long)errno : result_;                                                              \
    })

static uint64_t map(int prot, int flags, uint64_t at, uint64_t bytes, int fd, uint64_t offset,
                    const char *words)
{
    const long r = CALL(mmap, at, bytes, prot, flags, fd, offset);
    did("mmap", r, r < 0 ? at : (uint64_t)r, bytes,
        r < 0 ? fd < 0 ? "[anonymous]" : NULL : mapped_at((uint64_t)r));
    say(",%s}\n", words);
    return (uint64_t)r;
}

#define RW "\"prot\":\"PROT_READ|PROT_WRITE\",\"flags\":\"MAP_PRIVATE|MAP_ANONYMOUS\""

static int file_of(const char *folder, const char *name)
{
    char path[512];
    snprintf(path, sizeof(path), "%s/%s", folder, name);
    const int fd = open(path, O_RDWR | O_CREAT, 0600);
    if (fd < 0 || ftruncate(fd, 8 * PAGE))
        abort();
    return fd;
}

static __attribute__((noinline)) void files(const char *folder)
{
    char path[512], other[512];
    const int fd = file_of(folder, "kept"), gone = file_of(folder, "gone"), moved = file_of(folder, "before"),
              memory = memfd_create("in memory", 0);
    if (ftruncate(memory, 2 * PAGE))
        abort();
    map(PROT_READ, MAP_PRIVATE, 0, 2 * PAGE, fd, PAGE,
        "\"prot\":\"PROT_READ\",\"flags\":\"MAP_PRIVATE\",\"offset_bytes\":4096,\"added_bytes\":8192");
    map(PROT_READ | PROT_WRITE, MAP_SHARED, 0, PAGE, fd, 0,
        "\"prot\":\"PROT_READ|PROT_WRITE\",\"flags\":\"MAP_SHARED\",\"offset_bytes\":0,\"added_bytes\":4096");
    snprintf(path, sizeof(path), "%s/gone", folder);
    unlink(path);
    map(PROT_READ, MAP_PRIVATE, 0, PAGE, gone, 0, "\"prot\":\"PROT_READ\",\"flags\":\"MAP_PRIVATE\"");
    snprintf(path, sizeof(path), "%s/before", folder);
    snprintf(other, sizeof(other), "%s/after\001", folder);
    map(PROT_READ, MAP_PRIVATE, 0, PAGE, moved, 0, "\"prot\":\"PROT_READ\",\"was\":\"before\"");
    rename(path, other);
    map(PROT_READ, MAP_PRIVATE, 0, PAGE, moved, 0, "\"prot\":\"PROT_READ\",\"was\":\"after\"");
    map(PROT_READ, MAP_SHARED, 0, PAGE, memory, 0, "\"prot\":\"PROT_READ\",\"flags\":\"MAP_SHARED\"");
    const long r = CALL(mmap, 0, PAGE, PROT_WRITE, MAP_SHARED, open("/proc/self/exe", O_RDONLY), 0);
    did("mmap", r, 0, PAGE, mapped_at((uint64_t)(uintptr_t)file_of));
    say(",\"prot\":\"PROT_WRITE\"}\n");
    char *shared = mmap(NULL, 4 * PAGE, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    did("mmap", 0, (uint64_t)shared, 4 * PAGE, mapped_at((uint64_t)shared));
    say("}\n");
    const long remapped = CALL(remap_file_pages, shared, PAGE, 0, 2, 0);
    did("remap_file_pages", remapped, (uint64_t)shared, PAGE, mapped_at((uint64_t)shared));
    say(",\"offset_bytes\":8192}\n");
}

static void ranges(uint64_t at)
{
    struct iovec all = {(void *)at, 2 * PAGE};
    const int self = (int)syscall(SYS_pidfd_open, getpid(), 0);
    long r = CALL(mprotect, at, PAGE, PROT_READ);
    did("mprotect", r, at, PAGE, "[anonymous]"), say(",\"prot\":\"PROT_READ\"}\n");
    r = CALL(pkey_mprotect, at, PAGE, PROT_NONE, -1);
    did("pkey_mprotect", r, at, PAGE, "[anonymous]"), say(",\"prot\":\"PROT_NONE\"}\n");
    r = CALL(madvise, at, PAGE, MADV_DONTNEED);
    did("madvise", r, at, PAGE, "[anonymous]"), say(",\"flags\":\"MADV_DONTNEED\"}\n");
    r = CALL(madvise, at + 1, PAGE, MADV_FREE);
    did("madvise", r, at + 1, PAGE, "[anonymous]"), say(",\"flags\":\"MADV_FREE\"}\n");
    r = CALL(process_madvise, self, &all, 1, MADV_COLD, 0);
    say("{\"call\":\"process_madvise\",\"error\":null,\"size_bytes\":%ld,\"flags\":\"MADV_COLD\",\"fd\":%d}"
        "\n",
        r, self);
    r = CALL(mlock, at + 2 * PAGE, PAGE);
    did("mlock", r, at + 2 * PAGE, PAGE, "[anonymous]"), say("}\n");
    r = CALL(munlock, at + 2 * PAGE, PAGE);
    did("munlock", r, at + 2 * PAGE, PAGE, "[anonymous]"), say("}\n");
    r = CALL(mlock2, at + 2 * PAGE, PAGE, 1);
    did("mlock2", r, at + 2 * PAGE, PAGE, "[anonymous]"), say(",\"flags\":\"MLOCK_ONFAULT\"}\n");
    CALL(mlockall, MCL_FUTURE | MCL_ONFAULT);
    say("{\"call\":\"mlockall\",\"error\":null,\"flags\":\"MCL_FUTURE|MCL_ONFAULT\"}\n");
    CALL(munlockall, 0);
    say("{\"call\":\"munlockall\",\"error\":null}\n");
}

static void segments(void)
{
    const int id = shmget(IPC_PRIVATE, 5 * PAGE, 0600);
    const long at = CALL(shmat, id, 0, SHM_RDONLY);
    did("shmat", at, (uint64_t)at, 5 * PAGE, mapped_at((uint64_t)at));
    say(",\"flags\":\"SHM_RDONLY\",\"shmid\":%d,\"added_bytes\":%lu}\n", id, 5 * PAGE);
    shmctl(id, IPC_RMID, NULL);
    const char *name = mapped_at((uint64_t)at);
    const long r = CALL(shmdt, at);
    say("{\"call\":\"shmdt\",\"error\":%s,\"address\":\"0x%lx\",\"mapped\":\"%s\",\"removed_bytes\":%lu}\n",
        r ? "\"?\"" : "null", (uint64_t)at, name, 5 * PAGE);
    const long none = CALL(shmat, 1 << 30, 0, 0);
    say("{\"call\":\"shmat\",\"error\":\"%s\"}\n", strerrorname_np((int)-none));
}

static void heap(void)
{
    const uint64_t now = (uint64_t)CALL(brk, 0), up = now + 3 * PAGE;
    say("{\"call\":\"brk\",\"error\":null,\"address\":\"0x0\",\"size_bytes\":0}\n");
    CALL(brk, up);
    did("brk", 0, up, 3 * PAGE, "[heap]");
    say(",\"old_address\":\"0x%lx\",\"added_bytes\":%lu}\n", now, 3 * PAGE);
    CALL(brk, now);
    did("brk", 0, now, 3 * PAGE, "[heap]");
    say(",\"old_address\":\"0x%lx\",\"removed_bytes\":%lu}\n", up, 3 * PAGE);
    CALL(brk, now + (1ul << 46));
    did("brk", -ENOMEM, now + (1ul << 46), 1ul << 46, "[heap]");
    say(",\"old_address\":\"0x%lx\"}\n", now);
}

static void steps(const char *folder)
{
    mark();
    const uint64_t a = map(3, MAP_PRIVATE | MAP_ANONYMOUS, 0, 10 * PAGE, -1, 0, RW ",\"added_bytes\":40960");
    map(3, MAP_PRIVATE | MAP_ANONYMOUS, 0, 0, -1, 0, RW);
    map(3, MAP_PRIVATE | MAP_ANONYMOUS, 0, PAGE + 1, -1, 0, RW ",\"added_bytes\":8192");
    map(3, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, a + 6 * PAGE, 4 * PAGE, -1, 0,
        "\"prot\":\"PROT_READ|PROT_WRITE\",\"flags\":\"MAP_PRIVATE|MAP_FIXED|MAP_ANONYMOUS\",\"added_bytes\":"
        "16384");
    ranges(a);
    long r = CALL(munmap, a + 4 * PAGE, PAGE);
    did("munmap", r, a + 4 * PAGE, PAGE, "[anonymous]"), say(",\"removed_bytes\":4096}\n");
    r = CALL(munmap, a + 4 * PAGE, 2 * PAGE); /* the first page is a hole */
    did("munmap", r, a + 4 * PAGE, 2 * PAGE, NULL), say(",\"removed_bytes\":4096}\n");
    r = CALL(munmap, a + 1, PAGE);
    did("munmap", r, a + 1, PAGE, "[anonymous]"), say("}\n");
    r = CALL(mremap, a + 6 * PAGE, 2 * PAGE, 200 * PAGE, MREMAP_MAYMOVE, 0);
    did("mremap", r, (uint64_t)r, 200 * PAGE, "[anonymous]");
    say(",\"old_address\":\"0x%lx\",\"old_size_bytes\":%lu,\"flags\":\"MREMAP_MAYMOVE\",\"added_bytes\":%lu}"
        "\n",
        a + 6 * PAGE, 2 * PAGE, 198 * PAGE);
    const uint64_t b = (uint64_t)r;
    r = CALL(mremap, b, 200 * PAGE, 50 * PAGE, 0, 0);
    did("mremap", r, b, 50 * PAGE, "[anonymous]"), say(",\"removed_bytes\":%lu}\n", 150 * PAGE);
    r = CALL(mremap, b, 50 * PAGE, 50 * PAGE, MREMAP_MAYMOVE | MREMAP_DONTUNMAP, 0);
    did("mremap", r, (uint64_t)r, 50 * PAGE, "[anonymous]");
    say(",\"flags\":\"MREMAP_MAYMOVE|MREMAP_DONTUNMAP\",\"added_bytes\":%lu}\n", 50 * PAGE);
    r = CALL(mremap, b, 50 * PAGE, 1ul << 46, 0, 0);
    did("mremap", r, b, 1ul << 46, "[anonymous]"), say("}\n");
    segments();
    heap();
    files(folder);
    mark();
    if (write(1, said, used) != (ssize_t)used)
        abort();
}

static long pages_now(void)
{
    static char text[256];
    const int fd = open("/proc/self/statm", O_RDONLY);
    const ssize_t n = read(fd, text, sizeof(text) - 1);
    close(fd);
    text[n > 0 ? n : 0] = 0;
    return atol(text);
}

/* Many changes, some of which fail, replace mappings or hit holes: calls, failures, growth. */
static void many(long n)
{
    const uint64_t room = (uint64_t)mmap(NULL, 1024 * PAGE, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    long calls = 0, failed = 0;
    const long before = pages_now();
    mark();
    for (long i = 0; i < n; i++) {
        const uint64_t at = room + PAGE * (uint64_t)(rand() % 1000), bytes = PAGE * (uint64_t)(rand() % 20);
        long r = 0;
        switch (rand() % 4) {
        case 0:
            r = CALL(mmap, at, bytes, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0);
            break;
        case 1:
            r = CALL(munmap, at, bytes);
            break;
        case 2:
            r = CALL(mmap, at, bytes, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0);
            break;
        case 3:
            r = CALL(mremap, at, bytes, bytes + PAGE, 0, 0);
            break;
        }
        calls++;
        failed += r < 0;
    }
    mark();
    printf("%ld %ld %ld\n", calls, failed, (pages_now() - before) * (long)PAGE);
}

static void pairs(long n)
{
    const int cpus = (int)sysconf(_SC_NPROCESSORS_ONLN);
    for (int cpu = 0; cpu < cpus; cpu++)
        if (!fork()) {
            cpu_set_t one;
            CPU_ZERO(&one);
            CPU_SET(cpu, &one);
            sched_setaffinity(0, sizeof(one), &one);
            for (long i = 0; i < n; i++)
                munmap(mmap(NULL, PAGE, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0), PAGE);
            _exit(0);
        }
    while (wait(NULL) > 0)
        ;
}

/* munmap(0, 0) as 32-bit programs call it. */
static void old(long n)
{
    for (long i = 0; i < n; i++) {
        long result = 91;
        __asm__ volatile("int $0x80" : "+a"(result) : "b"(0), "c"(0) : "memory", "r8", "r9", "r10", "r11");
    }
}

/* mlock() is denied by a filter. */
static void denied(long n)
{
    struct sock_filter filter[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_mlock, 0, 1),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
    };
    const struct sock_fprog program = {sizeof(filter) / sizeof(*filter), filter};
    if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) || prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program))
        abort();
    for (long i = 0; i < n; i++)
        CALL(mlock, said, PAGE);
}

static void *waits(void *none)
{
    pause();
    return none;
}

static __attribute__((noinline)) void share(void)
{
    if (!vfork())
        _exit(0);
    wait(NULL);
}

/* A child that shares our address space ends, and then we, with many threads at once. */
static void ends(long threads)
{
    share();
    for (pthread_t t; threads--;)
        if (pthread_create(&t, NULL, waits, NULL))
            abort();
    _exit(0);
}

int main(int argc, char **argv)
{
    if (argc != 3)
        return 2;
    if (!strcmp(argv[1], "steps"))
        steps(argv[2]);
    else if (!strcmp(argv[1], "random"))
        many(atol(argv[2]));
    else if (!strcmp(argv[1], "pairs"))
        pairs(atol(argv[2]));
    else if (!strcmp(argv[1], "old"))
        old(atol(argv[2]));
    else if (!strcmp(argv[1], "denied"))
        denied(atol(argv[2]));
    else if (!strcmp(argv[1], "ends"))
        ends(atol(argv[2]));
    else if (!strcmp(argv[1], "exec"))
        execl("/bin/true", "true", NULL);
    return 0;
}
