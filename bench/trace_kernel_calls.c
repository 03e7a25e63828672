/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Calls madvise(2) in blocks, and prints the ns of a call in each block; with the BPF programs attached whose names
 * begin with PREFIX, which see this process alone. Records of a ring buffer are taken between the blocks.
 *
 *     trace_kernel_calls [OBJECT PREFIX]
 */
#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "stats.h"

#define BLOCKS 41
#define CALLS  10000

static unsigned long taken;

static int take(void *context, void *record, size_t bytes)
{
    (void)context;
    (void)record;
    (void)bytes;
    taken++;
    return 0;
}

static struct bpf_object *attach(const char *path, const char *prefix)
{
    struct bpf_program *p;
    struct bpf_object *o = bpf_object__open_file(path, NULL);
    const __u32 one = 1, pid = (__u32)getpid();
    if (!o)
        return NULL;
    bpf_object__for_each_program(p, o)
        bpf_program__set_autoload(p, !strncmp(bpf_program__name(p), prefix, strlen(prefix)));
    if (bpf_object__load(o) ||
        bpf_map_update_elem(bpf_object__find_map_fd_by_name(o, "traced"), &pid, &one, BPF_ANY))
        return NULL;
    bpf_object__for_each_program(p, o) if (bpf_program__autoload(p) && !bpf_program__attach(p)) return NULL;
    return o;
}

int main(int argc, char **argv)
{
    struct bpf_object *o = argc == 3 ? attach(argv[1], argv[2]) : NULL;
    if (argc == 3 && !o)
        return 1;
    struct ring_buffer *records =
        o ? ring_buffer__new(bpf_object__find_map_fd_by_name(o, "records"), take, NULL, NULL) : NULL;
    char *page = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    for (int block = 0; block < BLOCKS; block++) {
        const double began = stats_now_ns();
        for (int i = 0; i < CALLS; i++)
            madvise(page, 4096, MADV_NORMAL);
        printf("%.2f\n", (stats_now_ns() - began) / CALLS);
        if (records)
            ring_buffer__consume(records);
    }
    if (argc == 3 && !strcmp(argv[2], "ring") && taken != 2ul * BLOCKS * CALLS)
        fprintf(stderr, "the ring buffer lost %lu records\n", 2ul * BLOCKS * CALLS - taken);
    return 0;
}
