/* SPDX-License-Identifier: BSD-2-Clause */
/* Code that need not be there: modules without users, and what an option of the configuration brings. */
#include "model/kernel/advice/advice_parts.h"

#include <inttypes.h>
#include <string.h>

#define ROWS_MOST 8

/* "foo+0x1/0x2 [name]" is a call in the module. Names of modules have _ where names of files have -. */
static bool is_in_module(const struct advice_call *c, const char *name)
{
    const char *open = strrchr(c->name, '[');
    const size_t len = strlen(name);
    return open && !strncmp(open + 1, name, len) && !strcmp(open + 1 + len, "]");
}

static void unused_module(struct advice *a, const struct advice_input *in, const struct advice_module *module)
{
    uint64_t live = 0;
    if (module->users || module->permanent)
        return;
    vec_each (const struct advice_call, c, &in->calls)
        if (is_in_module(c, module->name))
            live += c->live_bytes;
    struct advice_measure *m = advice_add(a, ADVICE_MODULE, module->bytes, module->bytes + live);
    if (!m)
        return;
    advice_change(m, "rmmod %s", module->name);
    advice_formula(
        m, "%" PRIu64 " B of code and data; high: and %" PRIu64 " B of live objects that it allocated%s",
        module->bytes, live, in->has_calls ? "" : " (not known without a recording)");
    advice_cost(m, "no other module uses it, but a device or a file system may: what it drives stops");
    advice_row(m, "%s: %" PRIu64 " B, 0 users", module->name, module->bytes);
    for (size_t i = 0; i < in->calls.len; i++)
        if (is_in_module(&in->calls.at[i], module->name))
            advice_claim_call(m, i);
}

/* ---- options ---- */

static bool brings(const struct advice_option *o, const struct advice_call *c)
{
    return c->file && advice_option_brings(o, c->file);
}

static void rows_of_option(struct advice_measure *m, const struct advice_input *in,
                           const struct advice_option *o)
{
    for (size_t i = 0; i < in->calls.len; i++) {
        const struct advice_call *c = &in->calls.at[i];
        if (!brings(o, c))
            continue;
        advice_claim_call(m, i);
        if (c->live_bytes && m->rows.len < ROWS_MOST)
            advice_row(m, "%s (%s): %" PRIu64 " B live in %" PRIu64 " objects", c->name, c->file,
                       c->live_bytes, c->live_objects);
    }
}

static void option(struct advice *a, const struct advice_input *in, const struct advice_option *o)
{
    uint64_t live = 0;
    vec_each (const struct advice_call, c, &in->calls)
        live += brings(o, c) ? c->live_bytes : 0;
    if (!live) /* its code alone is no reason: whether somebody needs it is not known */
        return;
    struct advice_measure *m = advice_add(a, ADVICE_CONFIG, in->lossy ? 0 : live, live + o->text_bytes);
    if (!m)
        return;
    advice_change(m, "build the kernel without %s", o->name);
    if (o->text_bytes)
        advice_formula(m, "%" PRIu64 " B of live objects (low); high: and %" PRIu64 " B of code and data",
                       live, o->text_bytes);
    else
        advice_formula(m, "%" PRIu64 " B of live objects; its code and data (not known) come on top%s", live,
                       in->lossy ? "; low: none, since events were lost" : "");
    advice_cost(m, "what the option is for is missing: %s%s%s", o->paths.at[0],
                o->paths.len > 1 ? " and more" : "", o->module ? " (a module)" : "");
    rows_of_option(m, in, o);
}

void advice_find_code(struct advice *a, const struct advice_input *in)
{
    bool files = false;
    if (!in->has_modules)
        advice_unknown(
            a, "Unused modules: /proc/modules could not be read (the kernel may have no modules), or the "
               "recording lacks it");
    vec_each (const struct advice_module, m, &in->modules)
        unused_module(a, in, m);
    vec_each (const struct advice_call, c, &in->calls)
        files = files || c->file;
    if (!in->has_source)
        advice_unknown(a, "Options of the configuration: give the kernel's source with --source DIR");
    else if (!in->has_config)
        advice_unknown(a, "Options of the configuration: it is not known; give it with --config FILE");
    else if (in->has_calls && !files)
        advice_unknown(
            a,
            "Options of the configuration: the recording does not tell the files of the source; record with "
            "--vmlinux FILE or --source PATH");
    vec_each (const struct advice_option, o, &in->options)
        option(a, in, o);
}
