/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Fuzz target of what a program says of its own events: whatever a description says, either a class comes out, whose
 * metadata can be written and read again as the same class, or nothing. An event is on only if a list names
 * events of programs.
 */
#include "require.h"

#include "collect/trace/ctf_metadata.h"
#include "collect/trace/event_description.h"
#include "wire/event_list.h"

#include <stdint.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check_same(const struct event_class *a, const struct event_class *b)
{
    require(!strcmp(a->name, b->name) && a->id == b->id && a->n_fields == b->n_fields, "not the same class");
    require(event_class_bytes(a) == event_class_bytes(b), "not the same size");
    for (uint32_t i = 0; i < a->n_fields; i++) {
        const struct event_field *x = &a->fields[i], *y = &b->fields[i];
        require(!strcmp(x->name, y->name) && x->type == y->type && x->bytes == y->bytes,
                "not the same field");
        require(x->n_labels == y->n_labels, "not the same labels");
        for (uint32_t k = 0; k < x->n_labels; k++)
            require(!strcmp(x->labels[k].name, y->labels[k].name) && x->labels[k].value == y->labels[k].value,
                    "not the same label");
    }
}

static void check_metadata(const struct event_class *c)
{
    struct ctf_trace trace = {.domain = "ust"}, again;
    struct buf text = BUF_INIT;
    struct error e = {""};
    ctf_metadata_begin(&text, &trace);
    ctf_metadata_class(&text, c);
    require(!ctf_metadata_read(&again, buf_str(&text), &e), "metadata that cannot be read: %s", e.text);
    require(again.classes.len == 1, "not one class");
    check_same(c, &again.classes.at[0]);
    ctf_trace_release(&again);
    buf_release(&text);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct event_class c;
    char *text = mem_strndup((const char *)data, size);
    if (!event_description_read(&c, (const char *)data, size)) {
        check_metadata(&c);
        require(strncmp(c.name, "allium:", 7) != 0 || !strcmp(c.name, "allium:snapshot"),
                "an event of the agent");
        event_description_release(&c);
    }
    require(!event_list_has(text, "shop:order") || event_list_has_user(text),
            "an event that no one asked for");
    free(text);
    return 0;
}
