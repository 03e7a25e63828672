/* SPDX-License-Identifier: BSD-2-Clause */
/* sys_floor OBJECT PREFIX: attaches the programs whose names begin so, prints "ready", and ends with stdin. */
#include <bpf/libbpf.h>
#include <linux/perf_event.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

/* To each minor page fault, on all CPUs. */
static bool attach_to_faults(struct bpf_program *p)
{
    struct perf_event_attr attr = {
        .type = PERF_TYPE_SOFTWARE,
        .size = sizeof(attr),
        .config = PERF_COUNT_SW_PAGE_FAULTS_MIN,
        .sample_period = 1,
    };
    bool attached = false;
    for (int cpu = 0; cpu < libbpf_num_possible_cpus(); cpu++) {
        int fd = (int)syscall(SYS_perf_event_open, &attr, -1, cpu, -1, PERF_FLAG_FD_CLOEXEC);
        attached = (fd >= 0 && bpf_program__attach_perf_event(p, fd)) || attached;
    }
    return attached;
}

static bool attach(struct bpf_program *p)
{
    return bpf_program__type(p) == BPF_PROG_TYPE_PERF_EVENT ? attach_to_faults(p)
                                                            : bpf_program__attach(p) != NULL;
}

int main(int argc, char **argv)
{
    char end;
    struct bpf_program *p;
    struct bpf_object *o = argc == 3 ? bpf_object__open_file(argv[1], NULL) : NULL;
    if (!o)
        return 2;
    bpf_object__for_each_program(p, o)
        bpf_program__set_autoload(p, !strncmp(bpf_program__name(p), argv[2], strlen(argv[2])));
    if (bpf_object__load(o))
        return 1;
    bpf_object__for_each_program(p, o) if (bpf_program__autoload(p) && !attach(p)) return 1;
    puts("ready");
    fflush(stdout);
    while (read(0, &end, 1) > 0)
        ;
    return 0;
}
