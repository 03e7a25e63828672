/* SPDX-License-Identifier: BSD-2-Clause */
#include "sys/perf_programs.h"

#include <errno.h>
#include <unistd.h>

#include "collect/perf/perf_open.h"

static int open_on_cpu(uint32_t software_event, int cpu)
{
    struct perf_event_attr attr = {
        .type = PERF_TYPE_SOFTWARE,
        .size = sizeof(attr),
        .config = software_event,
        .sample_period = 1, /* with it the kernel neither draws lots nor throttles */
    };
    return perf_open(&attr, -1, cpu);
}

int perf_attach(struct sys_session *s, struct bpf_program *p, uint32_t software_event)
{
    int cpus = libbpf_num_possible_cpus(), attached = 0;
    for (int cpu = 0; cpu < cpus; cpu++) {
        int fd = open_on_cpu(software_event, cpu);
        if (fd == -ENODEV) /* it is offline */
            continue;
        if (fd < 0)
            return fd;
        struct bpf_link *link = bpf_program__attach_perf_event(p, fd); /* the link owns fd from here */
        if (!link) {
            int error = -errno;
            close(fd);
            return error;
        }
        *vec_push(&s->links) = link;
        attached++;
    }
    return attached ? 0 : -ENODEV;
}
