/* SPDX-License-Identifier: BSD-2-Clause */
#include <errno.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "collect/trace/ctf_metadata.h"

#define LABELS_MAX 4096u

struct cursor {
    const char *at;
    bool bad;
};

/* Skips these characters, which must be there. */
static void skip(struct cursor *c, const char *text)
{
    const size_t n = strlen(text);
    if (!c->bad && !strncmp(c->at, text, n))
        c->at += n;
    else
        c->bad = true;
}

/* Skips the characters if they are there. */
static bool skip_if(struct cursor *c, const char *text)
{
    const size_t n = strlen(text);
    const bool is_there = !c->bad && !strncmp(c->at, text, n);
    c->at += is_there ? n : 0;
    return is_there;
}

/* Moves behind the next such characters. */
static void find(struct cursor *c, const char *text)
{
    const char *at = c->bad ? NULL : strstr(c->at, text);
    c->bad = !at;
    c->at = at ? at + strlen(text) : c->at;
}

static uint64_t number(struct cursor *c, int base)
{
    char *end = (char *)c->at;
    const bool is_digit = *c->at >= '0' && *c->at <= '9';
    errno = 0;
    const uint64_t value = is_digit ? strtoull(c->at, &end, base) : 0;
    c->bad |= !is_digit || errno;
    c->at = end;
    return value;
}

static int64_t signed_number(struct cursor *c)
{
    const bool negative = skip_if(c, "-");
    const uint64_t value = number(c, 10);
    c->bad |= value > (uint64_t)INT64_MAX + negative;
    return negative ? (int64_t)-value : (int64_t)value;
}

/* Returns a copy of the characters up to the next of `ends`, which `t` owns; they are on this line. */
static const char *word(struct cursor *c, struct ctf_trace *t, const char *ends)
{
    const size_t n = c->bad ? 0 : strcspn(c->at, ends);
    c->bad |= !n || !c->at[n] || memchr(c->at, '\n', n);
    char *copy = c->bad ? NULL : mem_strndup(c->at, n);
    if (copy)
        *vec_push(&t->owned) = copy;
    c->at += c->bad ? 0 : n;
    return copy ? copy : "";
}

static void read_labels(struct cursor *c, struct ctf_trace *t, struct event_field *f)
{
    struct VEC(struct event_label) labels = {0};
    skip(c, " {");
    while (!c->bad && labels.len < LABELS_MAX && skip_if(c, labels.len ? ", \"" : " \"")) {
        struct event_label l = {.name = word(c, t, "\"")};
        skip(c, "\" = ");
        l.value = signed_number(c);
        *vec_push(&labels) = l;
    }
    skip(c, " }");
    f->labels = labels.at;
    f->n_labels = (uint32_t)labels.len;
    if (labels.at)
        *vec_push(&t->owned) = labels.at;
}

static const struct {
    const char *word;
    enum event_type type;
} types[] = {{"uint", EVENT_UNSIGNED}, {"int", EVENT_SIGNED},  {"hex", EVENT_HEX},
             {"bytes", EVENT_BYTES},   {"float", EVENT_FLOAT}, {"enum : int", EVENT_ENUM},
             {"char", EVENT_TEXT}};

/* One line: "TYPE _NAME;", and for a text "TYPE _NAME[BYTES];". */
static void read_field(struct cursor *c, struct ctf_trace *t, struct event_field *f)
{
    bool known = false;
    skip(c, "\t\t");
    for (size_t k = 0; k < sizeof(types) / sizeof(types[0]) && !known; k++) {
        known = skip_if(c, types[k].word);
        f->type = types[k].type;
    }
    const uint64_t bits = known ? number(c, 10) : 0;
    skip(c, "_t");
    f->bytes = (uint32_t)bits / 8;
    c->bad |= bits != 8 && bits != 16 && bits != 32 && bits != 64;
    c->bad |= f->type == EVENT_FLOAT && bits < 32;
    c->bad |= f->type == EVENT_TEXT && bits != 8;
    if (f->type == EVENT_ENUM)
        read_labels(c, t, f);
    skip(c, " _");
    f->name = word(c, t, "[;");
    if (f->type == EVENT_TEXT) {
        skip(c, "[");
        const uint64_t bytes = number(c, 10);
        skip(c, "]");
        c->bad |= !bytes || bytes > EVENT_BYTES_MAX;
        f->bytes = (uint32_t)bytes;
    }
    skip(c, ";\n");
}

static void read_class(struct cursor *c, struct ctf_trace *t, struct event_class *class)
{
    struct event_field *fields = mem_array(EVENT_FIELDS_MAX, sizeof(*fields));
    *vec_push(&t->owned) = fields;
    class->fields = fields;
    skip(c, "\tname = \"");
    class->name = word(c, t, "\"");
    skip(c, "\";\n\tid = ");
    const uint64_t id = number(c, 10);
    class->id = (uint16_t)id;
    c->bad |= id > UINT16_MAX;
    skip(c, ";\n\tstream_id = 0;\n\tfields := struct {\n");
    while (!c->bad && !skip_if(c, "\t};\n};\n")) {
        if (class->n_fields == EVENT_FIELDS_MAX)
            c->bad = true;
        else
            read_field(c, t, &fields[class->n_fields++]);
    }
    c->bad |= event_class_bytes(class) > EVENT_BYTES_MAX;
    vec_each (const struct event_class, other, &t->classes)
        c->bad |= other->id == class->id;
}

static void read_clocks(struct cursor *c, struct ctf_trace *t)
{
    struct ctf_clocks clocks = {.time_ns = number(c, 10)};
    skip(c, ", offset ");
    clocks.offset_ns = number(c, 10);
    skip(c, ", residual ");
    clocks.residual_ns = number(c, 10);
    skip(c, " */\n\n");
    if (!c->bad)
        *vec_push(&t->clocks) = clocks;
}

/* Reads the query behind its opening quote. */
static void read_where(struct cursor *c, struct ctf_trace *t)
{
    struct buf text = BUF_INIT;
    for (; *c->at && *c->at != '"' && *c->at != '\n'; c->at++) {
        if (*c->at == '\\' && (c->at[1] == '"' || c->at[1] == '\\'))
            c->at++;
        buf_addch(&text, *c->at);
    }
    skip(c, "\";\n");
    buf_addstr(&text, "");
    char *copy = buf_detach(&text);
    *vec_push(&t->owned) = copy;
    t->where = copy;
}

static void read_head(struct cursor *c, struct ctf_trace *t)
{
    skip(c, "/* CTF 1.8 */\n");
    find(c, "\n\tuuid = \"");
    for (int i = 0; i < 16 && !c->bad; i++) {
        const char digits[3] = {c->at[0], c->at[0] ? c->at[1] : '\0', '\0'};
        c->bad = strspn(digits, "0123456789abcdef") != 2;
        t->uuid[i] = (uint8_t)strtoul(digits, NULL, 16);
        c->at += c->bad ? 0 : 2;
        if (i == 3 || i == 5 || i == 7 || i == 9)
            skip(c, "-");
    }
    find(c, "\n\tdomain = \"");
    const char *domain = word(c, t, "\"");
    c->bad |= strlen(domain) >= sizeof(t->domain);
    if (!c->bad)
        memcpy(t->domain, domain, strlen(domain) + 1);
    skip(c, "\";\n\ttracer_name = \"allium\";\n");
    if (skip_if(c, "\tallium_version = \"")) {
        find(c, "\";\n");
        if (skip_if(c, "\tallium_where = \""))
            read_where(c, t);
        if (skip_if(c, "\tallium_clock = \"")) {
            t->clock = word(c, t, "\"");
            skip(c, "\";\n");
        }
    }
    find(c, "\n\toffset = ");
    t->offset_ns = number(c, 10);
    find(c, "\n};\n\n");
}

int ctf_metadata_read(struct ctf_trace *t, const char *text, struct error *e)
{
    struct cursor c = {.at = text};
    *t = (struct ctf_trace){.offset_ns = 0};
    read_head(&c, t);
    if (c.bad)
        return error_set(e, EINVAL, "not a trace of allium");
    find(&c, "\n};\n\n"); /* the stream */
    while (!c.bad && *c.at) {
        struct event_class class = {.name = ""};
        if (skip_if(&c, "/* clocks: at ")) {
            read_clocks(&c, t);
            continue;
        }
        skip(&c, "event {\n");
        read_class(&c, t, &class);
        skip(&c, "\n");
        if (!c.bad)
            *vec_push(&t->classes) = class;
    }
    if (!c.bad)
        return 0;
    return error_set(e, EINVAL, "its metadata are damaged behind %zu bytes", (size_t)(c.at - text));
}

void ctf_trace_release(struct ctf_trace *t)
{
    vec_each (void *, owned, &t->owned)
        free(*owned);
    vec_release(&t->owned);
    vec_release(&t->classes);
    vec_release(&t->clocks);
}
