/* SPDX-License-Identifier: BSD-2-Clause */
#include "cli/launched.h"

#include <errno.h>
#include <sys/wait.h>

#include "cli/command.h"
#include "collect/process/program_check.h"

int launched_check(const char *cmd, bool quiet, bool *own_allocator, char **path)
{
    enum program_kind kind;
    struct error e = {""};
    int bad = program_check(cmd, path, &kind, &e);
    if (bad)
        return command_fail(bad == -ENOENT ? EXIT_NOT_FOUND : EXIT_CANNOT_RUN, "%s", e.text);
    if (kind == PROGRAM_REFUSED)
        return command_fail(EXIT_ALLIUM, "%s", e.text);
    *own_allocator = kind == PROGRAM_OWN_MALLOC;
    if (*own_allocator && !quiet)
        command_fail(0, "%s", e.text);
    return -1;
}

int launched_exit_code(const struct record_result *r)
{
    switch (r->stage) {
    case RECORD_NOT_FOUND:
        return EXIT_NOT_FOUND;
    case RECORD_NOT_EXECUTABLE:
        return EXIT_CANNOT_RUN;
    case RECORD_NOT_STARTED:
        return EXIT_ALLIUM;
    case RECORD_RAN:
        break;
    }
    return WIFSIGNALED(r->wait_status) ? 128 + WTERMSIG(r->wait_status) : WEXITSTATUS(r->wait_status);
}
