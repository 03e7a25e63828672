/* SPDX-License-Identifier: BSD-2-Clause */
#include "collect/trace/ctf_metadata.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "allium_version.h"
#include "model/trace/clock_kind.h"

static const char aliases[] =
    "typealias integer { size = 8; align = 8; signed = false; encoding = UTF8; } := char8_t;\n"
    "typealias integer { size = 8; align = 8; signed = false; } := uint8_t;\n"
    "typealias integer { size = 16; align = 16; signed = false; } := uint16_t;\n"
    "typealias integer { size = 32; align = 32; signed = false; } := uint32_t;\n"
    "typealias integer { size = 64; align = 64; signed = false; } := uint64_t;\n"
    "typealias integer { size = 8; align = 8; signed = true; } := int8_t;\n"
    "typealias integer { size = 16; align = 16; signed = true; } := int16_t;\n"
    "typealias integer { size = 32; align = 32; signed = true; } := int32_t;\n"
    "typealias integer { size = 64; align = 64; signed = true; } := int64_t;\n"
    "typealias integer { size = 8; align = 8; signed = false; base = 16; } := hex8_t;\n"
    "typealias integer { size = 16; align = 16; signed = false; base = 16; } := hex16_t;\n"
    "typealias integer { size = 32; align = 32; signed = false; base = 16; } := hex32_t;\n"
    "typealias integer { size = 64; align = 64; signed = false; base = 16; } := hex64_t;\n"
    "typealias integer { size = 8; align = 8; signed = false; } := bytes8_t;\n"
    "typealias integer { size = 16; align = 16; signed = false; } := bytes16_t;\n"
    "typealias integer { size = 32; align = 32; signed = false; } := bytes32_t;\n"
    "typealias integer { size = 64; align = 64; signed = false; } := bytes64_t;\n"
    "typealias floating_point { exp_dig = 8; mant_dig = 24; align = 32; } := float32_t;\n"
    "typealias floating_point { exp_dig = 11; mant_dig = 53; align = 64; } := float64_t;\n";

static const char stream[] =
    "typealias integer { size = 16; align = 8; signed = false; } := packed16_t;\n"
    "typealias integer { size = 32; align = 8; signed = false; } := packed32_t;\n"
    "typealias integer { size = 64; align = 64; signed = false; map = clock.monotonic.value; } := time_t;\n\n"
    "stream {\n"
    "\tid = 0;\n"
    "\tpacket.context := struct {\n"
    "\t\ttime_t timestamp_begin;\n\t\ttime_t timestamp_end;\n"
    "\t\tuint64_t content_size;\n\t\tuint64_t packet_size;\n"
    "\t\tuint64_t packet_seq_num;\n\t\tuint64_t events_discarded;\n"
    "\t\tuint32_t cpu_id;\n\t\tuint32_t vpid;\n\t\thex64_t image_id;\n\t};\n"
    "\tevent.header := struct { time_t timestamp; uint16_t id; };\n"
    "\tevent.context := struct { packed16_t flags; packed32_t _vtid; };\n"
    "};\n\n";

static const char *const type_names[EVENT_TYPES] = {
    [EVENT_UNSIGNED] = "uint", [EVENT_SIGNED] = "int", [EVENT_HEX] = "hex",   [EVENT_BYTES] = "bytes",
    [EVENT_FLOAT] = "float",   [EVENT_ENUM] = "enum",  [EVENT_TEXT] = "char",
};

/* As a text of C: a query has no control characters but blanks. */
static void add_where(struct buf *b, const char *where)
{
    buf_addstr(b, "\tallium_where = \"");
    for (const char *p = where; *p; p++) {
        if (*p == '"' || *p == '\\')
            buf_addch(b, '\\');
        buf_addch(b, (unsigned char)*p < ' ' ? ' ' : *p);
    }
    buf_addstr(b, "\";\n");
}

void ctf_metadata_begin(struct buf *b, const struct ctf_trace *t)
{
    buf_printf(b, "/* CTF 1.8 */\n\n%s\ntrace {\n\tmajor = 1;\n\tminor = 8;\n\tuuid = \"", aliases);
    for (int i = 0; i < 16; i++)
        buf_printf(b, "%02x%s", t->uuid[i], i == 3 || i == 5 || i == 7 || i == 9 ? "-" : "");
    buf_printf(b,
               "\";\n\tbyte_order = le;\n\tpacket.header := struct {\n\t\tuint32_t magic;\n"
               "\t\tuint8_t uuid[16];\n\t\tuint32_t stream_id;\n\t};\n};\n\n"
               "env {\n\tdomain = \"%s\";\n\ttracer_name = \"allium\";\n\tallium_version = \"%s\";\n",
               t->domain, ALLIUM_VERSION);
    if (t->where)
        add_where(b, t->where);
    if (t->clock)
        buf_printf(b, "\tallium_clock = \"%s\";\n", t->clock);
    buf_printf(b,
               "};\n\n"
               "clock {\n\tname = \"monotonic\";\n\tdescription = \"%s\";\n"
               "\tfreq = 1000000000;\n\toffset = %" PRIu64 ";\n};\n\n%s",
               clock_kind_has_numbers(t->clock)    ? "numbers of events, not times"
               : clock_kind_interpolates(t->clock) ? "CLOCK_MONOTONIC, between some events interpolated"
                                                   : "CLOCK_MONOTONIC",
               t->offset_ns, stream);
}

void ctf_metadata_clocks(struct buf *b, const struct ctf_clocks *c)
{
    buf_printf(b, "/* clocks: at %" PRIu64 ", offset %" PRIu64 ", residual %" PRIu64 " */\n\n", c->time_ns,
               c->offset_ns, c->residual_ns);
}

static void add_labels(struct buf *b, const struct event_field *f)
{
    buf_printf(b, "enum : int%u_t {", 8 * f->bytes);
    for (uint32_t i = 0; i < f->n_labels; i++)
        buf_printf(b, "%s \"%s\" = %" PRId64, i ? "," : "", f->labels[i].name, f->labels[i].value);
    buf_addstr(b, " }");
}

void ctf_metadata_class(struct buf *b, const struct event_class *c)
{
    buf_printf(b, "event {\n\tname = \"%s\";\n\tid = %u;\n\tstream_id = 0;\n\tfields := struct {\n", c->name,
               c->id);
    for (uint32_t i = 0; i < c->n_fields; i++) {
        const struct event_field *f = &c->fields[i];
        buf_addstr(b, "\t\t");
        if (f->type == EVENT_ENUM)
            add_labels(b, f);
        else
            buf_printf(b, "%s%u_t", type_names[f->type], f->type == EVENT_TEXT ? 8 : 8 * f->bytes);
        buf_printf(b, f->type == EVENT_TEXT ? " _%s[%u];\n" : " _%s;\n", f->name, f->bytes);
    }
    buf_addstr(b, "\t};\n};\n\n");
}
