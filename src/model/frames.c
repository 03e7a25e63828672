/* SPDX-License-Identifier: BSD-2-Clause */
#include "model/frames.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#define AGENT "liballium-agent.so"

static bool is_agent(const struct profile *p, uint32_t location)
{
    return !strcmp(frame_basename(frame_module(p, &(struct frame){.location = location})), AGENT);
}

void frames_of(struct frames *out, const struct profile *p, uint32_t stack)
{
    const struct profile_stack *s = &p->stacks.at[stack];
    const uint32_t *at = s->depth ? &p->stack_locations.at[s->first] : NULL;
    uint32_t i = 0;
    bool told = false; /* the outermost frame itself says that the code is unknown */
    out->len = 0;
    while (i < s->depth && is_agent(p, at[i]))
        i++;
    for (; i < s->depth; i++) {
        const struct profile_location *l = &p->locations.at[at[i]];
        for (uint32_t k = 0; k < l->n_lines; k++)
            *vec_push(out) = (struct frame){.location = at[i], .line = l->first_line + k};
        if (!l->n_lines)
            *vec_push(out) = (struct frame){.location = at[i], .line = PROFILE_NONE};
        told = !l->n_lines && l->module == PROFILE_NONE && s->end == PROFILE_STACK_NO_CODE;
    }
    if (!out->len || (s->end != PROFILE_STACK_WHOLE && !told))
        *vec_push(out) = (struct frame){.location = PROFILE_NONE, .line = PROFILE_NONE, .end = s->end};
}

static const char *const ends[] = {
    [PROFILE_STACK_WHOLE] = "[no stack]",
    [PROFILE_STACK_CUT] = "[cut]",
    [PROFILE_STACK_NO_CODE] = "[JIT or unknown code]",
    [PROFILE_STACK_NO_RULE] = "[no unwind rules]",
    [PROFILE_STACK_BROKEN] = "[broken stack]",
};

const char *frame_function(const struct profile *p, const struct frame *f,
                           char scratch[static FRAME_NAME_BYTES])
{
    if (f->location == PROFILE_NONE)
        return ends[f->end];
    if (f->line != PROFILE_NONE)
        return profile_text(p, p->lines.at[f->line].function);
    const char *module = frame_basename(frame_module(p, f));
    if (!*module)
        return ends[PROFILE_STACK_NO_CODE];
    snprintf(scratch, FRAME_NAME_BYTES, "%.255s+0x%" PRIx64, module, p->locations.at[f->location].address);
    return scratch;
}

uint32_t *frames_same_locations(const struct profile *p)
{
    uint32_t *same = mem_array(p->locations.len, sizeof(*same));
    struct map seen = {0};
    for (uint32_t i = 0; i < p->locations.len; i++) {
        const struct profile_location *l = &p->locations.at[i];
        uint64_t key[4] = {UINT64_MAX, 0, l->address, l->exact};
        if (l->module != PROFILE_NONE) {
            key[0] = p->modules.at[l->module].path;
            key[1] = p->modules.at[l->module].build_id;
        }
        same[i] = (uint32_t)map_put(&seen, key, sizeof(key), i, NULL);
    }
    map_release(&seen);
    return same;
}
