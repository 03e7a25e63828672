/* SPDX-License-Identifier: BSD-2-Clause */
#include "model/kernel/event_texts.h"

#include <stdlib.h>

void event_texts_init(struct event_texts *t)
{
    *t = (struct event_texts){.n_comms = 0};
    memset(t->recent, 0xff, sizeof(t->recent)); /* lengths that no text has */
    *vec_push(&t->stacks) = (struct event_stack){0, 0};
}

void event_texts_release(struct event_texts *t)
{
    vec_each (char *, text, &t->texts)
        free(*text);
    vec_release(&t->texts);
    vec_release(&t->stacks);
    vec_release(&t->callers);
    map_release(&t->text_index);
    map_release(&t->stack_index);
}

static struct event_text parts_of(const char *text)
{
    struct event_text t = {.len = (uint32_t)strlen(text)};
    if (t.len >= sizeof(t.head)) {
        memcpy(&t.head, text, sizeof(t.head));
        memcpy(&t.tail, text + t.len - sizeof(t.tail), sizeof(t.tail));
    } else {
        for (uint32_t i = 0; i < t.len; i++)
            t.head = t.head << 8 | (uint8_t)text[i];
    }
    return t;
}

uint32_t event_texts_number(struct event_texts *t, const char *text)
{
    bool added;
    struct event_text one = parts_of(text);
    struct event_text *recent =
        &t->recent[event_texts_slot(one.head, one.tail ^ one.len, EVENT_TEXTS_RECENT_BITS)];
    if (recent->head == one.head && recent->tail == one.tail && recent->len == one.len &&
        (one.len <= 2 * sizeof(one.head) || !strcmp(t->texts.at[recent->number], text)))
        return recent->number;
    one.number = (uint32_t)map_put(&t->text_index, text, one.len, t->texts.len, &added);
    if (added)
        *vec_push(&t->texts) = mem_strdup(text);
    *recent = one;
    return one.number;
}

uint32_t event_texts_comm(struct event_texts *t, const char *comm)
{
    const char *name = comm ? comm : "";
    const size_t before = t->texts.len;
    if (t->n_comms >= EVENT_TEXTS_COMMS_MAX && map_get(&t->text_index, name, strlen(name)) == MAP_NONE)
        name = EVENT_TEXTS_OTHERS;
    const uint32_t number = event_texts_number(t, name);
    t->n_comms += t->texts.len > before;
    return number;
}

uint32_t event_texts_add_stack(struct event_texts *t, const uint64_t *stack, uint32_t depth)
{
    bool added;
    size_t number = map_put(&t->stack_index, stack, depth * sizeof(*stack), t->stacks.len, &added);
    if (added) {
        *vec_push(&t->stacks) = (struct event_stack){t->callers.len, depth};
        for (uint32_t i = 0; i < depth; i++)
            *vec_push(&t->callers) = stack[i];
    }
    return (uint32_t)number;
}
