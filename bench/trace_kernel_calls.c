/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Calls madvise(2) in blocks, and prints the ns of a call in each block; with the BPF programs attached whose names
 * begin with PREFIX, which see this process alone. Records of a ring buffer are taken between the blocks; with
 * "meanwhile", by a thread that copies them each millisecond, as `allium trace` does.
 *
 *     trace_kernel_calls [OBJECT PREFIX [meanwhile]]
 */
#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "stats.h"

#define BLOCKS 41
#define CALLS  10000

static unsigned long taken, copied;
static char copy[256 << 10];
static atomic_bool stop;

static int take(void *context, void *record, size_t bytes)
{
    (void)context;
    if (copied + bytes > sizeof(copy))
        copied = 0;
    memcpy(copy + copied, record, bytes);
    copied += bytes;
    taken++;
    return 0;
}

static struct bpf_object *attach(const char *path, const char *prefix)
{
    struct bpf_program *p;
    struct bpf_object *o = bpf_object__open_file(path, NULL);
    struct bpf_map *traced = o ? bpf_object__find_map_by_name(o, ".bss.traced") : NULL;
    size_t bytes;
    unsigned long *bits = traced ? (unsigned long *)bpf_map__initial_value(traced, &bytes) : NULL;
    if (!bits)
        return NULL;
    bits[getpid() / 64] |= 1ul << (getpid() % 64);
    bpf_object__for_each_program(p, o)
        bpf_program__set_autoload(p, !strncmp(bpf_program__name(p), prefix, strlen(prefix)));
    if (bpf_object__load(o))
        return NULL;
    bpf_object__for_each_program(p, o) if (bpf_program__autoload(p) && !bpf_program__attach(p)) return NULL;
    return o;
}

/* On all CPUs but that of the calls, if there is another one. */
static void leave_cpu(void)
{
    cpu_set_t others;
    CPU_ZERO(&others);
    for (int cpu = 0; cpu < (int)sysconf(_SC_NPROCESSORS_CONF); cpu++)
        if (cpu != sched_getcpu())
            CPU_SET(cpu, &others);
    sched_setaffinity(0, sizeof(others), &others);
}

static void *read_meanwhile(void *records)
{
    leave_cpu();
    while (!atomic_load(&stop)) {
        ring_buffer__consume(records);
        nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
    }
    return NULL;
}

int main(int argc, char **argv)
{
    struct bpf_object *o = argc >= 3 ? attach(argv[1], argv[2]) : NULL;
    if (argc >= 3 && !o)
        return 1;
    struct ring_buffer *records =
        o ? ring_buffer__new(bpf_object__find_map_fd_by_name(o, "records"), take, NULL, NULL) : NULL;
    char *page = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    pthread_t reader;
    const int meanwhile = argc == 4 && !pthread_create(&reader, NULL, read_meanwhile, records);
    for (int block = 0; block < BLOCKS; block++) {
        const double began = stats_now_ns();
        for (int i = 0; i < CALLS; i++)
            madvise(page, 4096, MADV_NORMAL);
        printf("%.2f\n", (stats_now_ns() - began) / CALLS);
        if (records && !meanwhile)
            ring_buffer__consume(records);
    }
    atomic_store(&stop, true);
    if (meanwhile)
        pthread_join(reader, NULL);
    if (records)
        ring_buffer__consume(records);
    /* a thread that ends calls madvise(2), too */
    if (argc >= 3 && !strcmp(argv[2], "ring") && taken < 2ul * BLOCKS * CALLS)
        fprintf(stderr, "the ring buffer lost %lu records\n", 2ul * BLOCKS * CALLS - taken);
    return 0;
}
