/* SPDX-License-Identifier: BSD-2-Clause */
#include "collect/trace/kernel_event_classes.h"

#include <string.h>

#include "base/mem.h"

#define N(array)           (sizeof(array) / sizeof((array)[0]))
#define LABELS(list)       KERNEL_LABELS_##list(VALUE)
#define VALUE(value, name) {#name, value},
#define LIST(list)         static const struct event_label list##_labels[] = {LABELS(list)}
LIST(mode);
LIST(access);
LIST(fault);
LIST(memory);
LIST(state);
LIST(map_call);
LIST(rss);
LIST(reclaim);

#define TYPE_U32     .type = EVENT_UNSIGNED, .bytes = 4
#define TYPE_S32     .type = EVENT_SIGNED, .bytes = 4
#define TYPE_HEX32   .type = EVENT_HEX, .bytes = 4
#define TYPE_U64     .type = EVENT_UNSIGNED, .bytes = 8
#define TYPE_S64     .type = EVENT_SIGNED, .bytes = 8
#define TYPE_HEX64   .type = EVENT_HEX, .bytes = 8
#define TYPE_BYTES64 .type = EVENT_BYTES, .bytes = 8

#define FIELD(field, kind)                  {.name = #field, TYPE_##kind},
#define LABEL(field, list)                  {#field, EVENT_ENUM, 4, N(list##_labels), list##_labels},
#define TEXT(field, bytes)                  {.name = #field, EVENT_TEXT, bytes},
#define EVENT(number, group, event, fields) static const struct event_field fields_of_##event[] = {fields};
KERNEL_EVENT_SCHEMA(EVENT, FIELD, LABEL, TEXT)
#undef EVENT

#define NONE(name, type)
static const struct event_class classes[] = {
#define EVENT(number, group, event, fields)                                                                  \
    {"kernel:" #event, number, N(fields_of_##event), fields_of_##event},
    KERNEL_EVENT_SCHEMA(EVENT, NONE, NONE, NONE)
#undef EVENT
};

/* The group of each class. */
static const enum kernel_event_group group_of[] = {
#define EVENT(number, group, event, fields) KERNEL_GROUP_BIT_##group,
    KERNEL_EVENT_SCHEMA(EVENT, NONE, NONE, NONE)
#undef EVENT
};

struct event_class *kernel_event_classes_of(uint32_t wanted, uint32_t *n)
{
    struct event_class *found = mem_array(N(classes), sizeof(*found));
    *n = 0;
    for (uint32_t i = 0; i < N(classes); i++)
        if (wanted & 1u << group_of[i])
            found[(*n)++] = classes[i];
    return found;
}

const struct event_class *kernel_event_class(const char *name, uint32_t *group)
{
    for (uint32_t i = 0; i < N(classes); i++)
        if (!strcmp(classes[i].name, name)) {
            *group = 1u << group_of[i];
            return &classes[i];
        }
    return NULL;
}

static const char *const groups[] = {
#define G(name, doc) #name,
    KERNEL_EVENT_GROUPS(G)
#undef G
};

const char *kernel_event_group_name(uint32_t group)
{
    return group < N(groups) ? groups[group] : NULL;
}

uint32_t kernel_event_groups(const char *list, const char **bad)
{
    uint32_t found = 0;
    for (const char *at = list;; at++) {
        const size_t n = strcspn(at, ",");
        uint32_t group = 0;
        while (group < N(groups) && (strlen(groups[group]) != n || strncmp(groups[group], at, n)))
            group++;
        *bad = at;
        if (group == N(groups))
            return 0;
        found |= 1u << group;
        at += n;
        if (!*at)
            return found;
    }
}
