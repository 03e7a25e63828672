/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * stuck FILE: maps a page of the file, says "ready", waits for a line, then writes to the page. Where the file system
 * is frozen by then the write waits for it in state D; as soon as it does, a second thread unmaps the page, and waits
 * with the memory map locked.
 */
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define PAGE 4096u

static volatile char *page;

static int first_thread_waits(void)
{
    char text[512] = {0}, path[64];
    snprintf(path, sizeof(path), "/proc/self/task/%d/stat", (int)getpid());
    int fd = open(path, O_RDONLY);
    ssize_t len = read(fd, text, sizeof(text) - 1);
    close(fd);
    const char *name_end = len > 0 ? strrchr(text, ')') : NULL;
    return name_end && name_end[2] == 'D';
}

/* The write may be done in the page, or be tried again when that is gone. */
static void end_well(int signal)
{
    (void)signal;
    _exit(0);
}

static void *unmap(void *unused)
{
    while (!first_thread_waits())
        usleep(10000);
    munmap((void *)page, PAGE);
    return unused;
}

int main(int argc, char **argv)
{
    pthread_t other;
    int fd = argc == 2 ? open(argv[1], O_RDWR) : -1;
    page = mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    if (page == MAP_FAILED || *page == 1) {
        perror("stuck: mmap");
        return 2;
    }
    if (pthread_create(&other, NULL, unmap, NULL) || puts("ready") < 0 || fflush(stdout) || getchar() != '\n')
        return 2;
    signal(SIGSEGV, end_well);
    *page = 1;
    return 0;
}
