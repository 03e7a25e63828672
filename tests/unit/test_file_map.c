/* SPDX-License-Identifier: BSD-2-Clause */
/* src/base/file_map: files that are shortened while they are mapped. */
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/file_map.h"

#define PAGE  ((size_t)4096)
#define BYTES (8 * PAGE)

static int file_of(size_t bytes)
{
    const int fd = memfd_create("test", MFD_CLOEXEC);
    char page[4096];
    memset(page, 7, sizeof(page));
    for (size_t at = 0; at < bytes; at += PAGE)
        assert_int_equal(pwrite(fd, page, PAGE, (off_t)at), PAGE);
    return fd;
}

static void shortened(void **state)
{
    (void)state;
    for (int round = 0; round < 3; round++) {
        const int fd = file_of(BYTES);
        volatile char *map = file_map_open(fd, BYTES, PROT_READ | PROT_WRITE);
        assert_non_null(map);
        assert_int_equal(ftruncate(fd, 2 * PAGE), 0);
        assert_int_equal(map[0], 7);
        assert_int_equal(map[2 * PAGE - 1], 7);
        assert_int_equal(map[2 * PAGE], 0);
        map[BYTES - 1] = 9; /* goes nowhere */
        assert_int_equal(map[BYTES - 1], 9);
        assert_int_equal(ftruncate(fd, BYTES), 0);
        assert_int_equal(map[3 * PAGE], 0);
        file_map_close((void *)map, BYTES);
        close(fd);
    }
}

static _Atomic bool stop;

static void *shorten(void *arg)
{
    const int fd = *(int *)arg;
    while (!stop)
        if (ftruncate(fd, 0) || ftruncate(fd, BYTES))
            abort();
    return NULL;
}

/* Three threads map, read and unmap while another one shortens the file and makes it longer. */
static void *read_all(void *arg)
{
    const int fd = *(int *)arg;
    for (int round = 0; round < 300; round++) {
        volatile char *map = file_map_open(fd, BYTES, PROT_READ);
        for (size_t at = 0; map && at < BYTES; at += PAGE / 4) {
            const char now = map[at];
            if (now && now != 7)
                abort();
        }
        file_map_close((void *)map, BYTES);
    }
    return NULL;
}

static void amid_reading(void **state)
{
    int fd = file_of(BYTES);
    pthread_t shortener, readers[3];
    (void)state;
    assert_int_equal(pthread_create(&shortener, NULL, shorten, &fd), 0);
    for (int k = 0; k < 3; k++)
        assert_int_equal(pthread_create(&readers[k], NULL, read_all, &fd), 0);
    for (int k = 0; k < 3; k++)
        pthread_join(readers[k], NULL);
    stop = true;
    pthread_join(shortener, NULL);
    close(fd);
}

/* Returns how the child ends that reads a file of no bytes by a mapping of its own. */
static int end_of_child(bool raises)
{
    int status;
    const pid_t child = fork();
    if (!child) {
        setrlimit(RLIMIT_CORE, &(struct rlimit){0});
        signal(SIGBUS, SIG_DFL);
        const int fd = file_of(BYTES);
        file_map_open(fd, PAGE, PROT_READ);
        if (raises) { /* the signal that was sent ends the process, no access */
            raise(SIGBUS);
            _exit(2);
        }
        volatile char *map = mmap(NULL, BYTES, PROT_READ, MAP_SHARED, fd, 0);
        if (ftruncate(fd, 0))
            _exit(1);
        _exit(map[PAGE]);
    }
    assert_int_equal(waitpid(child, &status, 0), child);
    return status;
}

static void others(void **state)
{
    (void)state;
    for (int raises = 0; raises < 2; raises++) {
        const int status = end_of_child(raises);
        assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGBUS);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        {"another SIGBUS ends the process", others, NULL, NULL, NULL},
        {"what a file lacks reads as zeros", shortened, NULL, NULL, NULL},
        {"a file that is shortened while threads read it", amid_reading, NULL, NULL, NULL},
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
