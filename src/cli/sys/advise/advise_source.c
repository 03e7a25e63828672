/* SPDX-License-Identifier: BSD-2-Clause */
#include "cli/sys/advise/advise_source.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/sigsafe/clock_ns.h"
#include "cli/sys/kernel_store.h"
#include "cli/sys/sys_losses.h"
#include "collect/kernel/state/advice_read.h"
#include "collect/kernel/state/kernel_makefiles.h"
#include "store/profile_load.h"
#include "symbol/kernel_source.h"
#include "sys/record/kernel_capture.h"

#define LOG_SHIFT_MOST 25u /* of CONFIG_LOG_BUF_SHIFT */

/* ---- the state ---- */

static const char *newest_text(void *arg, const char *path)
{
    const struct advise_source *s = arg;
    return s->states.moments.len ? state_rows_text(&s->states, s->states.moments.len - 1, path) : NULL;
}

/* Tables must have room for the most that was ever in them, so that all moments count. */
static void read_states(struct advise_source *s)
{
    const char *release = newest_text(s, KERNEL_STATE_RELEASE);
    vec_each (const struct state_moment, m, &s->states.moments) {
        const char *dentries = kernel_state_text(&m->state, KERNEL_STATE_DENTRIES);
        const char *inodes = kernel_state_text(&m->state, KERNEL_STATE_INODES);
        if (dentries)
            dentry_state_parse(&s->input, dentries);
        if (inodes)
            inode_nr_parse(&s->input, inodes);
        s->taken_ns = m->taken_ns;
    }
    advice_read(&s->input, newest_text, s, s->states.page_bytes);
    if (release)
        s->release = mem_strndup(release, strcspn(release, "\n"));
}

int advise_source_read(struct advise_source *s, const char *root, struct error *e)
{
    *s = (struct advise_source){.states = {.page_bytes = (uint64_t)sysconf(_SC_PAGESIZE)}};
    struct state_moment *now = vec_push(&s->states.moments);
    kernel_state_read(&now->state, root, KERNEL_STATE_MEMORY | KERNEL_STATE_KERNEL);
    now->taken_ns = clock_ns(CLOCK_REALTIME);
    read_states(s);
    const struct advice_input *in = &s->input;
    if (in->caches.len || in->has_log || in->has_modules)
        return 0;
    return error_set(
        e, EACCES, "neither the slab caches, nor the kernel log, nor the modules can be read: it needs root");
}

/* ---- rows of a capture ---- */

enum call_column { CALL, SOURCE_FILE, LIVE, LIVE_OBJECTS, CALL_COLUMNS };

static const struct table_column call_columns[CALL_COLUMNS] = {
    [CALL] = {"call_site", TABLE_PLAIN, TABLE_TEXT},
    [SOURCE_FILE] = {"file", TABLE_PLAIN, TABLE_TEXT},
    [LIVE] = {"live", TABLE_BYTES, TABLE_WHOLE},
    [LIVE_OBJECTS] = {"live_objects", TABLE_COUNT, TABLE_WHOLE},
};

#define OWN_CALLS "allium itself" /* what the recorder allocated */

struct load {
    struct advise_source *source;
    struct table *rows;
};

static const char *text_at(const struct table *t, uint32_t row, uint32_t column)
{
    const struct table_value *v = table_at(t, row, column);
    return v->known ? v->text : NULL;
}

static uint64_t whole_at(const struct table *t, uint32_t row, uint32_t column)
{
    const struct table_value *v = table_at(t, row, column);
    return v->known && v->whole <= MEMORY_VALUE_MAX ? v->whole : 0;
}

/* "[unknown] function" is no file; "fs/pipe.c ~" is fs/pipe.c. The caller frees the result; NULL: there is none. */
static char *file_at(const struct table *t, uint32_t row, uint32_t column)
{
    const char *file = text_at(t, row, column);
    const char *mark = file ? strstr(file, KERNEL_SOURCE_BY_NAME) : NULL;
    return file && *file != '[' ? mem_strndup(file, mark ? (size_t)(mark - file) : strlen(file)) : NULL;
}

static size_t take_call(struct advice_input *in, const char *name, char *file)
{
    const size_t call = advice_take_call(in, name, file);
    free(file);
    return call;
}

/* Only the last report of a tool that made several is the end. */
static void take_calls(void *arg, uint64_t time_ns)
{
    const struct load *l = arg;
    struct advice_input *in = &l->source->input;
    const struct table *t = l->rows;
    (void)time_ns;
    in->has_calls = !table_hides(t, CALL) && !table_hides(t, LIVE);
    vec_each (struct advice_call, c, &in->calls)
        c->live_bytes = c->live_objects = 0;
    for (uint32_t i = 0; in->has_calls && i < table_rows(t); i++) {
        const char *name = text_at(t, i, CALL);
        if (!name || !strcmp(name, OWN_CALLS))
            continue;
        const size_t call = take_call(in, name, file_at(t, i, SOURCE_FILE));
        struct advice_call *c = &in->calls.at[call];
        c->live_bytes += whole_at(t, i, LIVE);
        c->live_objects += whole_at(t, i, LIVE_OBJECTS);
    }
    table_clear(l->rows);
}

static void take_sizes(void *arg, uint64_t time_ns)
{
    const struct load *l = arg;
    struct advice_input *in = &l->source->input;
    const struct table *t = l->rows;
    (void)time_ns;
    in->has_sizes = true;
    in->sizes.len = 0;
    for (uint32_t i = 0; i < table_rows(t); i++) {
        const char *name = text_at(t, i, SIZE_CALL);
        const struct table_value *pages = table_at(t, i, SIZE_PAGES);
        if (!name || !strcmp(name, OWN_CALLS))
            continue;
        const size_t call = take_call(in, name, file_at(t, i, SIZE_FILE));
        *vec_push(&in->sizes) = (struct advice_size){.call = call,
                                                     .requested_bytes = whole_at(t, i, SIZE_REQUESTED),
                                                     .object_bytes = whole_at(t, i, SIZE_ALLOCATED),
                                                     .live_objects = whole_at(t, i, SIZE_OBJECTS),
                                                     .pages = pages->known && pages->flag};
    }
    table_clear(l->rows);
}

/* Rows may be missing: -ENODATA is no failure. */
static int load_rows(struct advise_source *s, const char *path, const char *name, struct table *rows,
                     void (*each)(void *arg, uint64_t time_ns), struct error *e)
{
    struct load l = {s, rows};
    int bad = recording_load_rows(path, name, rows, each, &l, e);
    table_free(rows);
    return bad == -ENODATA ? 0 : bad;
}

static int load_losses(struct advise_source *s, const char *path, struct error *e)
{
    struct recording_summary summary;
    uint64_t counted[SYS_COUNTS] = {0};
    int bad = recording_summarize(&summary, path, e);
    if (!bad)
        s->input.lossy =
            !sys_losses_recorded(sys_tool_find("kmem"), &summary, counted) || counted[SYS_RING_FULL];
    recording_summary_release(&summary);
    return bad;
}

int advise_source_load(struct advise_source *s, const char *path, struct error *e)
{
    *s = (struct advise_source){.release = NULL};
    int bad = state_rows_load(&s->states, path, e);
    bad = bad == -ENODATA ? 0 : bad;
    if (!bad)
        bad = load_rows(s, path, "sys_kmem", table_new("sys", 1, call_columns, CALL_COLUMNS), take_calls, e);
    if (!bad)
        bad = load_rows(s, path, KERNEL_STORE_SIZES, kernel_capture_sizes(), take_sizes, e);
    if (!bad)
        bad = load_losses(s, path, e);
    if (bad)
        return bad;
    if (!s->states.moments.len && !s->input.has_calls)
        return error_set(
            e, ENODATA,
            "%s has neither the kernel's state nor its live objects: record with allium sys record", path);
    read_states(s);
    return 0;
}

/* ---- options ---- */

int advise_source_options(struct advise_source *s, const char *config, const char *source, struct error *e)
{
    struct kernel_config c = {.log_buf_shift = 0};
    struct kernel_state given = {.texts = {0}};
    int bad = config ? kernel_state_add_config(&given, config) : 0;
    const char *text =
        config ? kernel_state_text(&given, KERNEL_STATE_CONFIG) : newest_text(s, KERNEL_STATE_CONFIG);
    if (bad)
        error_set(e, -bad, "cannot read %s: %s", config,
                  bad == -EBADMSG ? "it is empty or damaged" : strerror(-bad));
    if (text)
        kernel_config_parse(&c, text);
    if (!bad && config && !c.modules.len)
        bad = error_set(e, EBADMSG, "%s sets no option: give the kernel's .config", config);
    s->input.has_config = c.modules.len;
    if (!s->input.log_static.known && c.log_buf_shift && c.log_buf_shift <= LOG_SHIFT_MOST)
        s->input.log_static = (struct advice_figure){true, UINT64_C(1) << c.log_buf_shift};
    if (!bad && source)
        bad = kernel_makefiles_read(&s->input, &c, source, e);
    kernel_config_release(&c);
    kernel_state_release(&given);
    return bad;
}

void advise_source_release(struct advise_source *s)
{
    advice_input_release(&s->input);
    state_rows_release(&s->states);
    free(s->release);
}
