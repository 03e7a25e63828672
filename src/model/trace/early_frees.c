/* SPDX-License-Identifier: BSD-2-Clause */
#include "model/trace/early_frees.h"

void early_frees_note(struct early_frees *e, const struct early_free *f)
{
    e->at[e->next++ % EARLY_FREES] = *f;
    e->last_ns = f->time_ns;
}

void early_frees_note_event(struct early_frees *e, const struct trace_event *end, uint64_t address,
                            bool reallocates)
{
    if (address)
        early_frees_note(e, &(struct early_free){.image = end->image_id,
                                                 .address = address,
                                                 .time_ns = end->time_ns,
                                                 .cpu = end->cpu,
                                                 .thread = end->thread,
                                                 .reallocates = reallocates});
}

void early_frees_take_back(struct early_frees *e, uint64_t image, uint32_t thread)
{
    for (unsigned k = 0; k < EARLY_FREES; k++)
        if (e->at[k].reallocates && e->at[k].image == image && e->at[k].thread == thread)
            e->at[k].address = 0;
}

bool early_frees_find(struct early_frees *e, uint64_t image, uint64_t address, uint32_t cpu, uint64_t now_ns,
                      struct early_free *out)
{
    for (unsigned k = 0; address && k < EARLY_FREES; k++) {
        struct early_free *f = &e->at[k];
        if (f->address != address || f->image != image || f->cpu == cpu ||
            now_ns - f->time_ns >= EARLY_FREES_NS)
            continue;
        *out = *f;
        f->address = 0;
        return true;
    }
    return false;
}
