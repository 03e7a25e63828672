/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Shares memory in known ways when it reads a line, and prints each call as it knows it from the results of its own
 * calls and from shmctl(IPC_STAT), a JSON object a line; then it waits until its input ends.
 * `sharer steps NAME`: each way once, with the file /dev/shm/NAME; the file NAME.left stays behind.
 * `sharer random N`: shmget(), shmat(), shmdt(), shmctl() in any order, some of which fail, and how many of each.
 * `sharer opens N`: opens of files that are no shared memory. `sharer old N`: calls of 32 bits.
 */
#include <errno.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/shm.h>
#include <sys/syscall.h>
#include <unistd.h>

#define PAGE 4096ul

static char said[1 << 16];
static size_t used;

static void say(const char *fmt, ...)
{
    va_list args;
    va_start(args, fmt);
    used += (size_t)vsnprintf(said + used, sizeof(said) - used, fmt, args);
    va_end(args);
}

#define CALL(name, ...)                                                                                      \
    ({                                                                                                       \
        long result_ = syscall(SYS_##name, __VA_ARGS__);                                                     \
        result_ == -1 ? -(long)errno : result_;                                                              \
    })

/* Begins the line of a call, whose other columns follow. */
static long did(const char *call, long result)
{
    const char *error = result < 0 && result >= -4095 ? strerrorname_np((int)-result) : NULL;
    say("{\"call\":\"%s\",\"error\":%s%s%s", call, error ? "\"" : "", error ? error : "null",
        error ? "\"" : "");
    return result;
}

/* The segment as the kernel describes it. */
static void segment(int id, bool with_command)
{
    struct shmid_ds now;
    if (syscall(SYS_shmctl, id, IPC_STAT, &now))
        abort();
    say(",\"shmid\":%d,\"segment_bytes\":%zu,\"attached\":%lu,\"creator_pid\":%d,\"mode\":\"%04o\"}\n", id,
        now.shm_segsz, now.shm_nattch, now.shm_cpid, now.shm_perm.mode & 0777);
    if (with_command) /* this look at it is a call, too */
        did("shmctl", 0), say(",\"command\":\"IPC_STAT\",\"shmid\":%d}\n", id);
}

static long attach(int id, int flags, const char *words)
{
    const long at = did("shmat", CALL(shmat, id, 0, flags));
    say(",\"flags\":\"%s\",\"address\":\"0x%lx\"", words, at);
    segment(id, true);
    return at;
}

static void old_ways(key_t key)
{
    const int id = (int)did("shmget", CALL(shmget, key, 5 * PAGE + 1, IPC_CREAT | IPC_EXCL | 0640));
    say(",\"key\":\"0x%08x\",\"size_bytes\":%lu,\"flags\":\"IPC_CREAT|IPC_EXCL\",\"state\":\"created\"", key,
        5 * PAGE + 1);
    segment(id, true);
    did("shmget", CALL(shmget, key, PAGE, IPC_CREAT | IPC_EXCL | 0600));
    say(",\"key\":\"0x%08x\",\"mode\":\"0600\",\"shmid\":null,\"attached\":null}\n", key);
    did("shmget", CALL(shmget, key, PAGE, IPC_CREAT | 0600));
    say(",\"key\":\"0x%08x\",\"shmid\":%d,\"state\":null,\"segment_bytes\":%lu,\"size_bytes\":4096}\n", key,
        id, 5 * PAGE + 1);
    const long one = attach(id, 0, "0"), two = attach(id, SHM_RDONLY, "SHM_RDONLY");
    memset((void *)one, 1, 3 * PAGE);
    did("shmctl", CALL(shmctl, id, SHM_LOCK, 0));
    say(",\"command\":\"SHM_LOCK\",\"shmid\":%d,\"resident_bytes\":%lu,\"key\":\"0x%08x\"}\n", id, 3 * PAGE,
        key);
    did("shmctl", CALL(shmctl, id, SHM_UNLOCK, 0));
    say(",\"command\":\"SHM_UNLOCK\",\"shmid\":%d}\n", id);
    struct shmid_ds set = {.shm_perm = {.mode = 0604, .uid = getuid(), .gid = getgid()}};
    did("shmctl", CALL(shmctl, id, IPC_SET, &set));
    say(",\"command\":\"IPC_SET\",\"shmid\":%d,\"mode\":\"0604\"}\n", id);
    did("shmctl", CALL(shmctl, id, 77, 0));
    say(",\"command\":\"77\",\"shmid\":%d}\n", id);
    did("shmdt", CALL(shmdt, one));
    say(",\"address\":\"0x%lx\"", one);
    segment(id, true);
    did("shmdt", CALL(shmdt, one));
    say(",\"address\":\"0x%lx\",\"shmid\":null}\n", one);
    did("shmctl", CALL(shmctl, id, IPC_RMID, 0));
    say(",\"command\":\"IPC_RMID\",\"state\":\"removed\"");
    segment(id, true);
    did("shmdt", CALL(shmdt, two));
    say(",\"shmid\":%d,\"state\":\"destroyed\",\"attached\":0,\"segment_bytes\":%lu}\n", id, 5 * PAGE + 1);
    did("shmat", CALL(shmat, id, 0, 0));
    say(",\"shmid\":%d}\n", id);
    did("shmctl", CALL(shmctl, id, IPC_RMID, 0));
    say(",\"command\":\"IPC_RMID\",\"state\":null}\n");
    /* By a test of single bits this would be the size of 2 MiB, too. */
    const long huge = did("shmget", CALL(shmget, IPC_PRIVATE, PAGE, SHM_HUGETLB | 30 << 26 | 0600));
    say(",\"flags\":\"SHM_HUGETLB|SHM_HUGE_1GB\"}\n");
    if (huge >= 0)
        did("shmctl", CALL(shmctl, huge, IPC_RMID, 0)), say("}\n");
    const int alone = (int)did("shmget", CALL(shmget, IPC_PRIVATE, PAGE, 0600));
    say(",\"key\":\"IPC_PRIVATE\",\"state\":\"created\",\"flags\":\"0\",\"shmid\":%d}\n", alone);
    did("shmctl", CALL(shmctl, alone, IPC_RMID, 0));
    say(",\"command\":\"IPC_RMID\",\"state\":\"destroyed\",\"shmid\":%d,\"segment_bytes\":%lu}\n", alone,
        PAGE);
}

static void files(const char *name)
{
    struct open_how how = {.flags = O_RDWR | O_CREAT, .mode = 0640};
    char path[512];
    snprintf(path, sizeof(path), "/dev/shm/%s", name);
    const int fd =
        (int)did("openat", CALL(openat, AT_FDCWD, path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600));
    say(",\"name\":\"%s\",\"flags\":\"O_RDWR|O_CREAT|O_EXCL|O_CLOEXEC\",\"mode\":\"0600\",\"state\":"
        "\"created\",\"fd\":%d,"
        "\"creator_pid\":%d}\n",
        path, fd, getpid());
    did("openat", CALL(openat, AT_FDCWD, path, O_RDWR | O_CREAT | O_EXCL, 0600));
    say(",\"name\":\"%s\",\"fd\":null,\"state\":null}\n", path);
    did("open", CALL(open, path, O_RDONLY));
    say(",\"name\":\"%s\",\"flags\":\"O_RDONLY\",\"state\":null,\"creator_pid\":%d}\n", path, getpid());
    did("ftruncate", CALL(ftruncate, fd, 3 * PAGE));
    say(",\"name\":\"%s\",\"size_bytes\":%lu,\"segment_bytes\":%lu,\"resident_bytes\":0}\n", path, 3 * PAGE,
        3 * PAGE);
    const long at = did("mmap", CALL(mmap, 0, 3 * PAGE, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0));
    say(",\"name\":\"%s\",\"address\":\"0x%lx\",\"flags\":\"MAP_SHARED\",\"prot\":\"PROT_READ|PROT_WRITE\"}"
        "\n",
        path, at);
    memset((void *)at, 1, 2 * PAGE);
    did("ftruncate", CALL(ftruncate, fd, 2 * PAGE));
    say(",\"resident_bytes\":%lu,\"segment_bytes\":%lu}\n", 2 * PAGE, 2 * PAGE);
    if (chdir("/dev/shm"))
        abort();
    did("openat", CALL(openat, AT_FDCWD, "not there", O_RDONLY));
    say(",\"name\":\"not there\"}\n");
    did("unlink", CALL(unlink, path));
    say(",\"name\":\"%s\",\"state\":\"removed\"}\n", path);
    did("unlink", CALL(unlink, path));
    say(",\"name\":\"%s\",\"state\":null}\n", path);
    snprintf(path, sizeof(path), "/dev/shm/%s.left", name);
    const int left = (int)did("openat2", CALL(openat2, AT_FDCWD, path, &how, sizeof(how)));
    say(",\"name\":\"%s\",\"flags\":\"O_RDWR|O_CREAT\",\"mode\":\"0640\",\"state\":\"created\"}\n", path);
    close(left);
}

static void nameless(void)
{
    const int fd = (int)did("memfd_create", CALL(memfd_create, "a\001name", MFD_CLOEXEC | MFD_ALLOW_SEALING));
    say(",\"name\":\"/memfd:a\\\\001name "
        "(deleted)\",\"flags\":\"MFD_CLOEXEC|MFD_ALLOW_SEALING\",\"fd\":%d,\"state\":\"created\"}\n",
        fd);
    did("memfd_create", CALL(memfd_create, "wrong", 0x10000));
    say(",\"name\":\"/memfd:wrong\",\"flags\":\"0x10000\",\"fd\":null,\"state\":null}\n");
    did("ftruncate", CALL(ftruncate, fd, PAGE));
    say(",\"segment_bytes\":4096,\"size_bytes\":4096}\n");
    const int large = (int)did("memfd_create", CALL(memfd_create, "large", MFD_HUGETLB | 21 << 26));
    say(",\"flags\":\"MFD_HUGETLB|MFD_HUGE_2MB\",\"state\":%s}\n", large < 0 ? "null" : "\"created\"");
    if (large >= 0)
        did("ftruncate", CALL(ftruncate, large, 2 << 20)),
            say(",\"segment_bytes\":%d,\"resident_bytes\":null}\n", 2 << 20);
    did("mmap", CALL(mmap, 0, PAGE, PROT_READ, MAP_SHARED, fd, 0));
    say(",\"name\":\"/memfd:a\\\\001name (deleted)\"}\n");
    did("mmap", CALL(mmap, 0, 7 * PAGE, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0));
    say(",\"name\":\"/dev/zero "
        "(deleted)\",\"flags\":\"MAP_SHARED|MAP_ANONYMOUS\",\"segment_bytes\":%lu,\"state\":\"created\"}\n",
        7 * PAGE);
    did("mmap", CALL(mmap, 0, 0, PROT_READ, MAP_SHARED | MAP_ANONYMOUS, -1, 0));
    say(",\"name\":\"[anonymous]\",\"state\":null}\n");
}

/* None of these is shared memory. */
static void others(long n)
{
    char folder[] = "/var/tmp/sharer-XXXXXX", path[64];
    if (!mkdtemp(folder))
        abort();
    snprintf(path, sizeof(path), "%s/file", folder);
    for (long i = 0; i < n; i++) {
        const int fd = open(path, O_RDWR | O_CREAT, 0600);
        if (fd < 0 || ftruncate(fd, PAGE))
            abort();
        munmap(mmap(NULL, PAGE, PROT_READ, MAP_SHARED, fd, 0), PAGE);
        munmap(mmap(NULL, PAGE, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0), PAGE);
        close(open("/none/such", O_RDONLY));
        close(open("/dev/null", O_RDONLY));
        close(fd);
        unlink(path);
    }
    rmdir(folder);
}

static void many(long n)
{
    enum { SEGMENTS = 8 };
    long made[4] = {0}, failed = 0, at[SEGMENTS] = {0};
    int id[SEGMENTS];
    memset(id, -1, sizeof(id));
    for (long i = 0; i < n; i++) {
        const int which = rand() % SEGMENTS, what = rand() % 4;
        long r = 0;
        if (what == 0)
            r = id[which] >= 0 ? CALL(shmget, 0x7fff0000, PAGE, 0)
                               : (id[which] = (int)CALL(shmget, IPC_PRIVATE, PAGE, 0600));
        else if (what == 1)
            r = at[which] > 0 ? CALL(shmat, id[which], 1, 0) : (at[which] = CALL(shmat, id[which], 0, 0));
        else if (what == 2)
            r = CALL(shmdt, at[which]), at[which] = 0;
        else
            r = CALL(shmctl, id[which], IPC_RMID, 0), id[which] = -1;
        made[what]++;
        failed += r < 0 && r >= -4095;
    }
    say("{\"shmget\":%ld,\"shmat\":%ld,\"shmdt\":%ld,\"shmctl\":%ld,\"failed\":%ld}\n", made[0], made[1],
        made[2], made[3], failed);
    for (int i = 0; i < SEGMENTS; i++)
        syscall(SYS_shmctl, id[i], IPC_RMID, 0);
}

/* shmget(1, 0, 0) by ipc(), as 32-bit programs call it. */
static void old(long n)
{
    for (long i = 0; i < n; i++) {
        long result = 117;
        __asm__ volatile("int $0x80"
                         : "+a"(result)
                         : "b"(23), "c"(1), "d"(0), "S"(0)
                         : "memory", "r8", "r9", "r10", "r11");
    }
}

int main(int argc, char **argv)
{
    char line[8];
    if (argc != 3 || write(1, "\n", 1) != 1 || read(0, line, sizeof(line)) < 1)
        return 1;
    if (!strcmp(argv[1], "steps")) {
        old_ways(0x5eed0000 + getpid());
        files(argv[2]);
        nameless();
    } else if (!strcmp(argv[1], "random")) {
        many(atol(argv[2]));
    } else if (!strcmp(argv[1], "opens")) {
        others(atol(argv[2]));
    } else if (!strcmp(argv[1], "old")) {
        old(atol(argv[2]));
    }
    say("{}\n");
    if (write(1, said, used) != (ssize_t)used)
        abort();
    return read(0, line, sizeof(line)) < 0;
}
