/* SPDX-License-Identifier: BSD-2-Clause */
#include "collect/kernel/trace/trace_saved.h"

#include <errno.h>
#include <string.h>
#include <sys/utsname.h>
#include <unistd.h>

#include "collect/kernel/trace/packed_input.h"

int trace_saved_check_machine(const char *path, const char *machine, struct error *e)
{
    struct utsname own;
    if (uname(&own) || !strcmp(own.machine, machine))
        return 0;
    return error_set(e, ENOTSUP, "%s: is of a machine of %s: import it on one", path, machine);
}

void trace_saved_release(struct trace_saved *s)
{
    tracing_data_release(&s->formats);
    buf_release(&s->tasks);
    vec_each (int, fd, &s->fds)
        close(*fd);
    vec_release(&s->fds);
    vec_release(&s->cpus);
}

int trace_saved_temporary(struct trace_saved *s, struct error *e)
{
    int fd = packed_input_temporary(e);
    if (fd < 0)
        return fd;
    *vec_push(&s->fds) = fd;
    return 0;
}
