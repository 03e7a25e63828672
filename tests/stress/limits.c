/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What a program may still have of its limits.
 *
 *     limits data                    prints VmData and VmSize of /proc/self/status, in KiB, after some requests
 *     limits as|data-limit BYTES     limits itself to what it uses and 64 MiB, then asks for blocks of BYTES until
 *                                    there are no more; prints how many KiB it got
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

#define MORE_KIB (64ul << 10)

static unsigned long status_kib(const char *name)
{
    char line[256];
    unsigned long kib = 0;
    FILE *f = fopen("/proc/self/status", "r");
    while (f && fgets(line, sizeof(line), f))
        if (!strncmp(line, name, strlen(name)))
            kib = strtoul(line + strlen(name), NULL, 10);
    if (f)
        fclose(f);
    return kib;
}

static void ask_a_little(void)
{
    static void *kept[200];
    for (int round = 0; round < 20; round++)
        for (int i = 0; i < 200; i++) {
            free(kept[i]);
            kept[i] = malloc(16 + (size_t)(i * round));
        }
    void *volatile large = malloc(8 << 20);
    free(large);
}

static void fill(int resource, const char *name, size_t bytes)
{
    struct rlimit limit;
    unsigned long got = 0;
    getrlimit(resource, &limit);
    limit.rlim_cur = (status_kib(name) + MORE_KIB) << 10;
    if (setrlimit(resource, &limit))
        exit(1);
    char *volatile p;
    while ((p = malloc(bytes)) && got < 2 * MORE_KIB << 10) {
        *p = 1;
        got += bytes;
    }
    printf("%lu\n", got >> 10);
}

int main(int argc, char **argv)
{
    ask_a_little();
    if (argc > 2)
        fill(!strcmp(argv[1], "as") ? RLIMIT_AS : RLIMIT_DATA,
             !strcmp(argv[1], "as") ? "VmSize:" : "VmData:", strtoul(argv[2], NULL, 10));
    else
        printf("%lu %lu\n", status_kib("VmData:"), status_kib("VmSize:"));
    return 0;
}
