/* SPDX-License-Identifier: BSD-2-Clause */
/* src/collect/trace/ctf_metadata: what is written is read again, and nothing else is. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <stdlib.h>
#include <string.h>
#include <errno.h>

#include "collect/trace/ctf_metadata.h"

static const struct event_label kinds[] = {{"LEAST", INT32_MIN}, {"ZERO", 0}, {"MOST", INT32_MAX}};
static const struct event_field all[] = {
    {"u8", EVENT_UNSIGNED, 1},         {"u64", EVENT_UNSIGNED, 8},
    {"i16", EVENT_SIGNED, 2},          {"hex", EVENT_HEX, 4},
    {"size", EVENT_BYTES, 8},          {"f32", EVENT_FLOAT, 4},
    {"kind", EVENT_ENUM, 4, 3, kinds}, {"text", EVENT_TEXT, 24},
    {"f64", EVENT_FLOAT, 8},
};
/* A keyword of CTF is a name as others are. */
static const struct event_field keyword[] = {{"struct", EVENT_SIGNED, 1}};
static const struct event_class classes[] = {
    {"shop:all", 64, 9, all}, {"shop:event", 65, 1, keyword}, {"shop:empty", UINT16_MAX, 0, NULL}};

static char *text(void)
{
    struct buf b = BUF_INIT;
    struct ctf_trace t = {.uuid = {1, 2, 0xff}, .domain = "ust", .offset_ns = UINT64_C(1795831683932292606)};
    ctf_metadata_begin(&b, &t);
    for (size_t i = 0; i < 2; i++)
        ctf_metadata_class(&b, &classes[i]);
    ctf_metadata_clocks(&b, &(struct ctf_clocks){1, UINT64_MAX, 2});
    ctf_metadata_class(&b, &classes[2]);
    ctf_metadata_clocks(&b, &(struct ctf_clocks){3, 4, UINT64_MAX});
    return buf_detach(&b);
}

static void read_again(void **state)
{
    (void)state;
    struct ctf_trace t;
    struct error e = {""};
    char *written = text();
    assert_int_equal(ctf_metadata_read(&t, written, &e), 0);
    assert_int_equal(t.uuid[2], 0xff);
    assert_string_equal(t.domain, "ust");
    assert_int_equal(t.offset_ns, UINT64_C(1795831683932292606));
    assert_int_equal(t.classes.len, 3);
    assert_int_equal(t.clocks.len, 2);
    assert_int_equal(t.clocks.at[0].time_ns, 1);
    assert_int_equal(t.clocks.at[0].offset_ns, UINT64_MAX);
    assert_int_equal(t.clocks.at[1].residual_ns, UINT64_MAX);
    for (size_t i = 0; i < 3; i++) {
        const struct event_class *have = &t.classes.at[i], *want = &classes[i];
        assert_string_equal(have->name, want->name);
        assert_int_equal(have->id, want->id);
        assert_int_equal(have->n_fields, want->n_fields);
        assert_int_equal(event_class_bytes(have), event_class_bytes(want));
        for (uint32_t k = 0; k < want->n_fields; k++) {
            assert_string_equal(have->fields[k].name, want->fields[k].name);
            assert_int_equal(have->fields[k].type, want->fields[k].type);
            assert_int_equal(have->fields[k].bytes, want->fields[k].bytes);
            assert_int_equal(have->fields[k].n_labels, want->fields[k].n_labels);
        }
    }
    assert_int_equal(t.classes.at[0].fields[6].labels[0].value, INT32_MIN);
    assert_string_equal(t.classes.at[0].fields[6].labels[2].name, "MOST");
    /* as a compiler lays them out: the text lies where the field before it ends */
    struct layout {
        uint8_t u8;
        uint64_t u64;
        int16_t i16;
        uint32_t hex;
        uint64_t size;
        float f32;
        int32_t kind;
        char text[24];
        double f64;
    };
    assert_int_equal(event_class_bytes(&t.classes.at[0]), sizeof(struct layout));
    ctf_trace_release(&t);
    free(written);
}

/* Whatever is left out at the end, or is another character, is an error or is read; under sanitizers. */
static void damaged(void **state)
{
    (void)state;
    struct error e = {""};
    struct ctf_trace t;
    char *written = text();
    const size_t n = strlen(written), events = (size_t)(strstr(written, "event {") - written);
    for (size_t cut = 0; cut < n; cut++) {
        char *copy = strndup(written, cut);
        const int bad = ctf_metadata_read(&t, copy, &e);
        /* whole up to an event, or to what the clocks did */
        const char *rest = written + cut;
        const bool is_whole =
            (!strncmp(rest, "event {", 7) || !strncmp(rest, "/* clocks", 9)) && cut >= events;
        assert_int_equal(bad, is_whole ? 0 : -EINVAL);
        ctf_trace_release(&t);
        free(copy);
    }
    for (size_t at = events; at < n; at++) {
        const char before = written[at];
        written[at] = '#';
        ctf_metadata_read(&t, written, &e);
        ctf_trace_release(&t);
        written[at] = before;
    }
    free(written);
    assert_int_equal(ctf_metadata_read(&t, "", &e), -EINVAL);
    assert_string_equal(e.text, "not a trace of allium");
    ctf_trace_release(&t);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(read_again), cmocka_unit_test(damaged)};
    return cmocka_run_group_tests_name("ctf_metadata", tests, NULL, NULL);
}
