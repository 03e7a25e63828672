/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * hog MIB: writes to so much new memory, page by page, as the one whom the kernel shall kill first. Ends with 0 if it
 * got all of it. Runs in a guest of tests/kernels only: where memory is not limited it takes what there is.
 */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

static void volunteer(void)
{
    int fd = open("/proc/self/oom_score_adj", O_WRONLY);
    if (fd < 0 || write(fd, "1000", 4) != 4) {
        perror("hog: oom_score_adj");
        exit(2);
    }
    close(fd);
}

int main(int argc, char **argv)
{
    size_t bytes = argc == 2 ? strtoul(argv[1], NULL, 10) << 20 : 0;
    if (bytes == 0) {
        fprintf(stderr, "usage: hog MIB\n");
        return 2;
    }
    volunteer();
    /* no reserve: the refusal shall come with the page, not here */
    char *memory =
        mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (memory == MAP_FAILED) {
        perror("hog: mmap");
        return 2;
    }
    for (size_t at = 0; at < bytes; at += 4096)
        memory[at] = 1;
    return 0;
}
