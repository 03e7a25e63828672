/* SPDX-License-Identifier: BSD-2-Clause */
#include "cli/accounts/accounts_source.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "cli/source.h"
#include "cli/source_trace.h"
#include "collect/trace/event_folder.h"
#include "store/account_tables.h"

static int read_process(struct accounts_reading *r, const struct accounts_kind *kind, const char *text,
                        struct alloc_texts *texts, struct symbols *symbols, struct error *e)
{
    pid_t pid = source_pid(text);
    return pid ? kind->read(&r->accounts, texts, pid, NULL, symbols, e)
               : error_set(e, EINVAL, "invalid process id '%s': use the number of a process", text);
}

/* Sites of a trace are those of its events; other accounts are in its recording. `time` is NULL at the end. */
static int read_trace(struct accounts_reading *r, const struct accounts_kind *kind, const char *folder,
                      const char *time, struct alloc_texts *texts, struct error *e)
{
    struct buf path = BUF_INIT;
    uint64_t at_ns;
    int bad = 0;
    if (kind->sites)
        return source_trace_accounts(&r->accounts, texts, folder, time, e);
    buf_printf(&path, "%s/" SOURCE_TRACE_RECORDING, folder);
    bad = time ? source_when(buf_str(&path), time, &at_ns, e) : 0;
    bad = bad ? bad
              : recording_load_accounts(&r->accounts, texts, buf_str(&path), kind->schema,
                                        time ? &at_ns : NULL, e);
    buf_release(&path);
    return bad;
}

static int read_moment(struct accounts_reading *r, const struct accounts_kind *kind, const char *text,
                       struct alloc_texts *texts, struct error *e)
{
    char *path = NULL;
    const char *time;
    uint64_t at_ns;
    int bad = source_moment(text, &path, &time, e);
    if (!bad && path && event_folder_is(path)) {
        bad = read_trace(r, kind, path, time, texts, e);
    } else {
        bad = bad ? bad : source_when(path, time, &at_ns, e);
        bad = bad ? bad : recording_load_accounts(&r->accounts, texts, path, kind->schema, &at_ns, e);
    }
    struct buf label = BUF_INIT;
    buf_printf(&label, "%s@%s", path ? path : "", time);
    r->label = bad ? NULL : mem_strdup(buf_str(&label));
    buf_release(&label);
    free(path);
    return bad;
}

static int read_any(struct accounts_reading *r, const struct accounts_show *s, const char *text,
                    struct error *e)
{
    char *path;
    if (source_kind(text) == SOURCE_PROCESS)
        return read_process(r, s->kind, text, s->texts, s->symbols, e);
    if (source_kind(text) == SOURCE_MOMENT)
        return read_moment(r, s->kind, text, s->texts, e);
    if (text && event_folder_is(text)) {
        const int failed = read_trace(r, s->kind, text, NULL, s->texts, e);
        r->label = failed ? NULL : mem_strdup(text);
        return failed;
    }
    int bad = source_file(text, &path, e);
    bad = bad ? bad : recording_load_accounts(&r->accounts, s->texts, path, s->kind->schema, NULL, e);
    if (bad && path)
        source_suggest_pids(text, e);
    if (bad)
        free(path);
    else
        r->label = path;
    return bad;
}

int accounts_source_read(const struct accounts_show *s, struct accounts_reading *r, const char *source)
{
    struct error e = {""};
    *r = (struct accounts_reading){.label = NULL};
    int bad = read_any(r, s, source, &e);
    return bad ? source_fail(bad, &e) : -1;
}

void accounts_reading_release(struct accounts_reading *r)
{
    accounts_release(&r->accounts);
    free(r->label);
    r->label = NULL;
}
