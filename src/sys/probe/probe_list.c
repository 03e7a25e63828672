/* SPDX-License-Identifier: BSD-2-Clause */
#include "sys/probe/probe_list.h"

#include <errno.h>
#include <inttypes.h>
#include <string.h>

#include "base/buf.h"
#include "sys/probe/probe_find.h"
#include "bpf/probe.h"

struct probe_list {
    struct VEC(struct probe) probes;
    struct VEC(struct event_class) classes;
    struct VEC(char *) names; /* of the classes */
};

#define HEX(field)                                                                                           \
    {                                                                                                        \
        .name = field, .type = EVENT_HEX, .bytes = 8                                                         \
    }
#define PID                                                                                                  \
    {                                                                                                        \
        .name = "pid", .type = EVENT_UNSIGNED, .bytes = 4                                                    \
    }

static const struct event_field entry_fields[] = {
    PID, HEX("arg1"), HEX("arg2"), HEX("arg3"), HEX("arg4"), HEX("arg5"), HEX("arg6"),
};
_Static_assert(sizeof(entry_fields) / sizeof(*entry_fields) == 1 + PROBE_FUNCTION_ARGUMENTS,
               "those of probe.bpf.h");
static const struct event_field return_fields[] = {PID, HEX("result")};

static const char *const argument_names[] = {"arg1", "arg2", "arg3", "arg4",  "arg5",  "arg6",
                                             "arg7", "arg8", "arg9", "arg10", "arg11", "arg12"};
_Static_assert(sizeof(argument_names) / sizeof(*argument_names) == PROBE_STATIC_ARGUMENTS, "all have names");

struct probe_list *probe_list_new(void)
{
    return mem_alloc(sizeof(struct probe_list));
}

static void release_probe(struct probe *p)
{
    vec_each (struct probe_site, site, &p->sites)
        free(site->file);
    vec_release(&p->sites);
    free(p->name);
}

static bool is_static_class(const struct event_class *c)
{
    return c->fields != entry_fields && c->fields != return_fields;
}

void probe_list_free(struct probe_list *l)
{
    if (!l)
        return;
    vec_each (struct probe, p, &l->probes)
        release_probe(p);
    vec_each (struct event_class, c, &l->classes)
        if (is_static_class(c))
            free((void *)(uintptr_t)c->fields);
    vec_each (char *, name, &l->names)
        free(*name);
    vec_release(&l->probes);
    vec_release(&l->classes);
    vec_release(&l->names);
    free(l);
}

static void add_class(struct probe_list *l, const struct probe *p, const char *step,
                      const struct event_field *fields, size_t n)
{
    struct buf name = BUF_INIT;
    buf_printf(&name, "%s%s%s", p->is_static ? "" : "function:", p->name, step);
    *vec_push(&l->names) = buf_detach(&name);
    *vec_push(&l->classes) = (struct event_class){.name = l->names.at[l->names.len - 1],
                                                  .id = (uint16_t)(p->id + (fields == return_fields)),
                                                  .n_fields = (uint16_t)n,
                                                  .fields = fields};
}

/*
 * The values of a probe are described alike at all its places. If not, a value is signed only if all say so, and is
 * read without its sign at the others, too.
 */
static void add_static_class(struct probe_list *l, struct probe *p)
{
    const unsigned n = p->sites.at[0].n;
    struct event_field *fields = mem_array(1 + n, sizeof(*fields));
    fields[0] = (struct event_field)PID;
    for (unsigned i = 0; i < n; i++) {
        bool is_signed = true, is_large = false;
        vec_each (struct probe_site, site, &p->sites) {
            is_signed = is_signed && site->operands[i].is_signed;
            is_large = is_large || site->operands[i].bytes == 8;
        }
        vec_each (struct probe_site, site, &p->sites)
            site->operands[i].is_signed = is_signed;
        fields[1 + i] = (struct event_field){.name = argument_names[i],
                                             .type = is_signed  ? EVENT_SIGNED
                                                     : is_large ? EVENT_HEX
                                                                : EVENT_UNSIGNED,
                                             .bytes = 8};
    }
    add_class(l, p, "", fields, 1 + n);
}

static bool is_printable(const char *text)
{
    for (; *text; text++)
        if ((unsigned char)*text <= ' ' || *text == '"' || *text == '\\' || *text == 0x7f)
            return false;
    return true;
}

static int check(const struct probe_list *l, const struct probe *p, const char *text, struct error *e)
{
    if (l->probes.len == PROBE_EVENTS_MAX)
        return error_set(e, EINVAL, "--function is given more than %u times", PROBE_EVENTS_MAX);
    vec_each (const struct probe, other, &l->probes)
        if (!strcmp(other->name, p->name))
            return error_set(e, EINVAL, "--function %s: %s is given twice, and events are named by it", text,
                             p->name);
    vec_each (const struct probe_site, site, &p->sites)
        if (site->n != p->sites.at[0].n)
            return error_set(
                e, EINVAL,
                "--function %s: %s has different numbers of values at its places: name one library by "
                "usdt:LIB:PROVIDER:NAME",
                text, p->name);
    return 0;
}

int probe_list_add(struct probe_list *l, const char *text, const struct probe_target *target, struct error *e)
{
    struct probe p = {.id = (uint16_t)(PROBE_EVENT_ID + 2 * l->probes.len)};
    int bad = is_printable(text) ? probe_find(&p, text, target, e)
                                 : error_set(e, EINVAL, "--function: a name has no blanks or quotes");
    bad = bad ? bad : check(l, &p, text, e);
    if (bad) {
        release_probe(&p);
        return bad;
    }
    if (p.is_static) {
        add_static_class(l, &p);
    } else {
        add_class(l, &p, "_begin", entry_fields, 1 + PROBE_FUNCTION_ARGUMENTS);
        add_class(l, &p, "_end", return_fields, 2);
    }
    *vec_push(&l->probes) = p;
    return 0;
}

const struct probe *probe_list_all(const struct probe_list *l, size_t *n)
{
    *n = l ? l->probes.len : 0;
    return l ? l->probes.at : NULL;
}

const struct event_class *probe_list_classes(const struct probe_list *l, uint32_t *n)
{
    *n = l ? (uint32_t)l->classes.len : 0;
    return l ? l->classes.at : NULL;
}
