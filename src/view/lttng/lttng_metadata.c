/* SPDX-License-Identifier: BSD-2-Clause */
#include "view/lttng/lttng_metadata.h"

#include <inttypes.h>

#include "allium_version.h"

static const char head[] =
    "/* CTF 1.8 */\n\n"
    "typealias integer { size = 8; align = 8; signed = false; } := uint8_t;\n"
    "typealias integer { size = 16; align = 8; signed = false; } := uint16_t;\n"
    "typealias integer { size = 32; align = 8; signed = false; } := uint32_t;\n"
    "typealias integer { size = 64; align = 8; signed = false; } := uint64_t;\n"
    "typealias integer { size = 64; align = 8; signed = false; } := unsigned long;\n\n";

static const char stream[] =
    "typealias integer { size = 32; align = 8; signed = false; map = clock.monotonic.value; } := "
    "uint32_clock_monotonic_t;\n"
    "typealias integer { size = 64; align = 8; signed = false; map = clock.monotonic.value; } := "
    "uint64_clock_monotonic_t;\n\n"
    "struct packet_context {\n"
    "\tuint64_clock_monotonic_t timestamp_begin;\n\tuint64_clock_monotonic_t timestamp_end;\n"
    "\tuint64_t content_size;\n\tuint64_t packet_size;\n"
    "\tuint64_t packet_seq_num;\n\tunsigned long events_discarded;\n\tuint32_t cpu_id;\n};\n\n"
    "struct event_header_large {\n"
    "\tenum : uint16_t { compact = 0 ... 65534, extended = 65535 } id;\n"
    "\tvariant <id> {\n"
    "\t\tstruct {\n\t\t\tuint32_clock_monotonic_t timestamp;\n\t\t} compact;\n"
    "\t\tstruct {\n\t\t\tuint32_t id;\n\t\t\tuint64_clock_monotonic_t timestamp;\n\t\t} extended;\n"
    "\t} v;\n} align(8);\n\n"
    "stream {\n"
    "\tid = 0;\n\tevent.header := struct event_header_large;\n\tpacket.context := struct packet_context;\n";

#define NUMBER "integer { size = %u; align = 8; signed = %d; encoding = %s; base = %d; }"

static void add_number(struct buf *b, uint32_t bytes, bool is_signed, const char *encoding, int base)
{
    buf_printf(b, NUMBER, 8 * bytes, is_signed, encoding, base);
}

static void add_uuid(struct buf *b, const uint8_t uuid[16])
{
    for (int i = 0; i < 16; i++)
        buf_printf(b, "%02x%s", uuid[i], i == 3 || i == 5 || i == 7 || i == 9 ? "-" : "");
}

static void add_env(struct buf *b, const struct lttng_trace *t)
{
    buf_printf(b, "env {\n\tdomain = \"%s\";\n", t->kernel ? "kernel" : "ust");
    if (t->kernel)
        buf_addstr(b, "\tsysname = \"Linux\";\n");
    buf_printf(b, "\ttracer_name = \"%s\";\n\ttracer_major = 2;\n\ttracer_minor = 13;\n",
               t->kernel ? "lttng-modules" : "lttng-ust");
    if (t->kernel)
        buf_addstr(b, "\ttracer_buffering_scheme = \"global\";\n");
    else
        buf_printf(b,
                   "\ttracer_buffering_scheme = \"uid\";\n\ttracer_buffering_id = %u;\n"
                   "\tarchitecture_bit_width = 64;\n",
                   t->uid);
    buf_addstr(b, "\ttrace_name = \"");
    for (const char *c = t->name; *c; c++)
        buf_addch(b, *c == '"' || *c == '\\' || (unsigned char)*c < ' ' ? '_' : *c);
    buf_printf(b, "\";\n\tallium_version = \"%s\";\n};\n\n", ALLIUM_VERSION);
}

void lttng_metadata_begin(struct buf *b, const struct lttng_trace *t)
{
    buf_printf(b, "%strace {\n\tmajor = 1;\n\tminor = 8;\n\tuuid = \"", head);
    add_uuid(b, t->uuid);
    buf_addstr(b, "\";\n\tbyte_order = le;\n\tpacket.header := struct {\n\t\tuint32_t magic;\n"
                  "\t\tuint8_t  uuid[16];\n\t\tuint32_t stream_id;\n\t\tuint64_t stream_instance_id;\n"
                  "\t};\n};\n\n");
    add_env(b, t);
    buf_addstr(b, "clock {\n\tname = \"monotonic\";\n\tuuid = \"");
    add_uuid(b, t->clock_uuid);
    buf_printf(b,
               "\";\n\tdescription = \"Monotonic Clock\";\n\tfreq = 1000000000; /* Frequency, in Hz */\n"
               "\t/* clock value offset from Epoch is: offset * (1/freq) */\n\toffset = %" PRIu64
               ";\n};\n\n%s\tevent.context := struct {\n\t\t",
               t->offset_ns, stream);
    add_number(b, 4, true, "none", 10);
    buf_addstr(b, " _vpid;\n\t\t");
    add_number(b, 4, true, "none", 10);
    buf_addstr(b, " _vtid;\n\t\t");
    add_number(b, 1, true, "UTF8", 10);
    buf_printf(b, " _procname[%u];\n\t};\n};\n\n",
               LTTNG_CONTEXT_BYTES(t->kernel) - (uint32_t)(2 * sizeof(int32_t)));
}

static void add_field(struct buf *b, const struct event_field *f)
{
    switch (f->type) {
    case EVENT_TEXT:
        if (!f->bytes) {
            buf_printf(b, "string _%s", f->name);
            return;
        }
        add_number(b, 1, true, "UTF8", 10);
        buf_printf(b, " _%s[%u]", f->name, f->bytes);
        return;
    case EVENT_FLOAT:
        buf_printf(b, "floating_point { exp_dig = %d; mant_dig = %d; align = 8; }", f->bytes == 4 ? 8 : 11,
                   f->bytes == 4 ? 24 : 53);
        break;
    case EVENT_ENUM:
        buf_addstr(b, "enum : ");
        add_number(b, f->bytes, true, "none", 10);
        buf_addstr(b, " {\n");
        for (uint32_t i = 0; i < f->n_labels; i++)
            buf_printf(b, "\t\t\t\"%s\" = %" PRId64 ",\n", f->labels[i].name, f->labels[i].value);
        buf_addstr(b, "\t\t}");
        break;
    default:
        add_number(b, f->bytes, f->type == EVENT_SIGNED, "none", f->type == EVENT_HEX ? 16 : 10);
    }
    buf_printf(b, " _%s", f->name);
}

void lttng_metadata_class(struct buf *b, const struct lttng_trace *t, uint32_t id, const char *name,
                          const struct lttng_field *fields, uint32_t n_fields)
{
    buf_printf(b, "event {\n\tname = \"%s\";\n\tid = %u;\n\tstream_id = 0;\n%s\tfields := struct {\n", name,
               id, t->kernel ? "" : "\tloglevel = 13;\n");
    for (uint32_t i = 0; i < n_fields; i++) {
        buf_addstr(b, "\t\t");
        add_field(b, &fields[i].as);
        buf_addstr(b, ";\n");
    }
    buf_addstr(b, "\t};\n};\n\n");
}
