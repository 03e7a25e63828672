/* SPDX-License-Identifier: BSD-2-Clause */
#include <stdio.h>
#include <stdlib.h>

#include "allium_version.h"
#include "base/buf.h"
#include "cli/command.h"
#include "cli/debuginfod.h"
#include "cli/source.h"
#include "store/recording.h"

static const struct option_doc options[] = {
    {"output", 'o', "FILE", "the recording (NAME.PID.snapshot.allium)"},
    {"force", 0, NULL, "replace FILE if it exists"},
    DEBUGINFOD_OPTION,
    {NULL, 0, NULL, NULL},
};

static const char *const examples[] = {
    "allium snapshot 4711 && allium report",
    "keep what process 4711 holds now, and look at it",
    NULL,
};

static int run(int argc, char **argv);

const struct command command_snapshot = {
    .name = "snapshot",
    .usage = "PID [-o FILE] [--force] [--debuginfod TIME]",
    .summary = "keep what the ledger of a process holds now, dead or alive, without touching it",
    .examples = examples,
    .options = options,
    .run = run,
};

static int store(const struct profile *p, const char *path, bool force, struct error *e)
{
    struct recording *r;
    const struct profile_image *i = &p->images.at[0];
    int bad = recording_create(&r, path, force, e);
    if (bad)
        return bad;
    bad = recording_set_text(r, RECORDING_COMMAND, profile_text(p, i->args), e);
    if (!bad)
        bad = recording_set_text(r, RECORDING_VERSION, ALLIUM_VERSION, e);
    if (!bad)
        bad = recording_set_number(r, RECORDING_STARTED, (int64_t)i->began_ns, e);
    if (!bad)
        bad = recording_put_image(r, p, true, e);
    if (!bad)
        bad = recording_set_number(r, RECORDING_ENDED, (int64_t)i->taken_ns, e);
    int closed = recording_close(r, bad ? NULL : e);
    return bad ? bad : closed;
}

static int run(int argc, char **argv)
{
    struct arguments a;
    struct error e = {""};
    struct profile *p = NULL;
    struct buf path = BUF_INIT;
    int code = command_parse(&command_snapshot, argc, argv, false, &a);
    if (code >= 0)
        return code;
    if (a.n_rest != 1)
        return command_misuse(&command_snapshot, "one process id, please");
    char *end;
    long pid = strtol(a.rest[0], &end, 10);
    if (*end || pid <= 0 || pid > INT32_MAX)
        return command_misuse(&command_snapshot, "%s is no process id", a.rest[0]);
    if (source_read_ledger(&p, (int)pid, &e))
        return command_fail(EXIT_FAILED, "%s", e.text);
    const char *output = command_value(&command_snapshot, &a, "output");
    if (output)
        buf_addstr(&path, output);
    else
        buf_printf(&path, "%s.%ld.snapshot.allium", profile_text(p, p->images.at[0].comm), pid);
    if (store(p, buf_str(&path), command_value(&command_snapshot, &a, "force") != NULL, &e))
        code = command_fail(EXIT_FAILED, "%s", e.text);
    else
        fprintf(stderr, "allium: wrote %s; look at it with: allium report %s\n", buf_str(&path),
                buf_str(&path));
    profile_free(p);
    buf_release(&path);
    return code < 0 ? EXIT_DONE : code;
}
