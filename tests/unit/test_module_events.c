/* SPDX-License-Identifier: BSD-2-Clause */
/* Which module was at an address when an event happened there (run/sum/module_events.h). */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "collect/trace/agent_events.h"
#include "run/sum/module_events.h"

enum { LOADED = EVENT_module_loaded, UNLOADED = EVENT_module_unloaded };

static const struct event_class *class_of(uint16_t id)
{
    uint32_t n;
    const struct event_class *all = agent_events(&n);
    for (uint32_t i = 0; i < n; i++)
        if (all[i].id == id)
            return &all[i];
    return NULL;
}

/* A module has 0x1000 bytes. */
static void tell(struct module_events *m, uint16_t id, uint64_t image_id, uint64_t start, const char *path,
                 uint64_t time_ns)
{
    struct {
        uint64_t start, end;
        char path[EVENT_PATH_BYTES];
    } fields = {start, start + 0x1000, ""};
    strncpy(fields.path, path, sizeof(fields.path) - 1);
    module_events_add(m, (struct trace_event){.class = class_of(id),
                                              .time_ns = time_ns,
                                              .image_id = image_id,
                                              .fields = (const unsigned char *)&fields});
}

/* Returns the path of the module that an event's address is in; "": none is told. */
static const char *path_at(struct module_events *m, uint64_t image_id, uint64_t address, uint64_t time_ns)
{
    const unsigned char *path = NULL;
    const struct trace_event event = {.image_id = image_id, .time_ns = time_ns};
    const struct trace_event *told =
        module_events_told(m, image_id, address, module_events_before(m, &event, address));
    return told && trace_event_field(told, "path", &path) ? (const char *)path : "";
}

static void one_after_the_other(void **state)
{
    struct module_events *m = module_events_new();
    (void)state;
    assert_true(module_events_has(LOADED) && module_events_has(UNLOADED) && !module_events_has(EVENT_malloc));
    tell(m, LOADED, 1, 0x1000, "b", 500); /* another CPU's ring, which was read first */
    tell(m, LOADED, 1, 0x1000, "a", 100);
    tell(m, UNLOADED, 1, 0x1000, "a", 400);
    tell(m, LOADED, 1, 0x8000, "c", 50);
    for (int again = 0; again < 2; again++) {
        assert_string_equal(path_at(m, 1, 0x1000, 100), "a");
        assert_string_equal(path_at(m, 1, 0x1fff, 450), "a"); /* its last code, as it went */
        assert_string_equal(path_at(m, 1, 0x1000, 500), "b");
        assert_string_equal(path_at(m, 1, 0x1000, 9000), "b");
        assert_string_equal(path_at(m, 1, 0x8000, 9000), "c");
        assert_string_equal(path_at(m, 1, 0x2000, 9000), "");
        assert_string_equal(path_at(m, 2, 0x1000, 9000), ""); /* of another image */
    }
    tell(m, LOADED, 1, 0x1800, "d", 7000); /* over the end of b */
    assert_string_equal(path_at(m, 1, 0x1900, 9000), "d");
    assert_string_equal(path_at(m, 1, 0x1900, 6000), "b");
    assert_string_equal(path_at(m, 1, 0x1000, 9000), "b");
    module_events_free(m);
}

/* A module that came before the first event: its end tells about it. */
static void told_at_the_end(void **state)
{
    struct module_events *m = module_events_new();
    const struct trace_event early = {.image_id = 1, .time_ns = 10};
    (void)state;
    const uint32_t number = module_events_before(m, &early, 0x1000);
    assert_int_equal(number, 0);
    assert_null(module_events_told(m, 1, 0x1000, number));
    tell(m, UNLOADED, 1, 0x1000, "a", 400);
    tell(m, LOADED, 1, 0x1000, "b", 500);
    assert_string_equal(path_at(m, 1, 0x1000, 10), "a");
    assert_ptr_equal(module_events_told(m, 1, 0x1000, number)->class, class_of(UNLOADED));
    assert_string_equal(path_at(m, 1, 0x1000, 600), "b");
    tell(m, LOADED, 1, 0x4000, "c", 700); /* nobody knows what was there before */
    assert_string_equal(path_at(m, 1, 0x4000, 10), "");
    module_events_free(m);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(one_after_the_other),
        cmocka_unit_test(told_at_the_end),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
