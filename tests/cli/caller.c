/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A program whose calls of malloc and free are known: it does what its arguments say, one after the other, and nothing
 * else allocates memory.
 *
 *   make N SIZE    malloc(SIZE) and free of it, N times     hold N SIZE   malloc(SIZE), N times
 *   slow N SIZE    as make, 1 ms apart                      fork N        N children, one after the other; each makes
 *                                                                         10 blocks of 33,333 bytes
 *   keep N SIZE    as hold, 1,000 at most in all            drop          frees what keep has allocated
 *   leave MS       a child that lives for MS ms and then    wait          waits for a byte of its input
 *                  makes 7 blocks of 44,444 bytes
 *   say TEXT       writes TEXT and an end of line           fill FILE     writes into FILE until there is no space
 *   raise SIGNAL   by number                                exit CODE     by _exit
 *   exec           begins anew, with the arguments that are left
 */
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

static void *volatile kept;
static void *all[1000];
static int n_all;

__attribute__((noinline)) static void make(long n, size_t size)
{
    while (n-- > 0) {
        kept = malloc(size);
        free(kept);
    }
}

static void fill(const char *name)
{
    static char block[4096];
    int fd = open(name, O_WRONLY | O_CREAT, 0600);
    while (write(fd, block, sizeof(block)) > 0)
        ;
}

static void leave(long ms)
{
    if (fork())
        return;
    usleep((useconds_t)ms * 1000);
    make(7, 44444);
    _exit(0);
}

/* Returns how many arguments it has used. */
static int two(char **a)
{
    const long n = atol(a[1]);
    const size_t size = (size_t)atol(a[2]);
    if (!strcmp(a[0], "make"))
        make(n, size);
    else
        for (long i = 0; i < n; i++) {
            if (!strcmp(a[0], "hold"))
                kept = malloc(size);
            else if (!strcmp(a[0], "keep"))
                all[n_all++] = malloc(size);
            else if (!usleep(1000))
                make(1, size);
        }
    return 3;
}

static int one(char **a)
{
    if (!strcmp(a[0], "say"))
        return write(1, a[1], strlen(a[1])) < 0 || write(1, "\n", 1) < 0 ? 2 : 2;
    if (!strcmp(a[0], "fill"))
        fill(a[1]);
    if (!strcmp(a[0], "leave"))
        leave(atol(a[1]));
    if (!strcmp(a[0], "raise"))
        raise(atoi(a[1]));
    if (!strcmp(a[0], "exit"))
        _exit(atoi(a[1]));
    for (int i = 0; !strcmp(a[0], "fork") && i < atoi(a[1]); i++)
        if (!fork()) {
            make(10, 33333);
            _exit(0);
        } else {
            wait(NULL);
        }
    return 2;
}

int main(int argc, char **argv)
{
    char c;
    static char *rest[64];
    for (char **a = argv + 1; a < argv + argc;) {
        if (!strcmp(*a, "make") || !strcmp(*a, "hold") || !strcmp(*a, "slow") || !strcmp(*a, "keep")) {
            a += two(a);
        } else if (!strcmp(*a, "drop")) {
            while (n_all)
                free(all[--n_all]);
            a++;
        } else if (!strcmp(*a, "wait")) {
            if (read(0, &c, 1) < 0)
                return 1;
            a++;
        } else if (!strcmp(*a, "exec")) {
            rest[0] = argv[0];
            for (int i = 1; a[i]; i++)
                rest[i] = a[i];
            execv("/proc/self/exe", rest);
            return 1;
        } else {
            a += one(a);
        }
    }
    return 0;
}
