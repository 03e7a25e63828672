/* SPDX-License-Identifier: BSD-2-Clause */
#include "agent/tracer/tracer_options.h"

#include "agent/exec/preload_env.h"
#include "base/sigsafe/str.h"

struct tracer_options tracer_options;

/* Reads the ranges behind `option`. */
static void read_ranges(const char *text, const char *option, struct tracer_ranges *out)
{
    const char *at = text_find(text, option);
    for (at = at ? at + text_length(option) : NULL; at && out->n < TRACER_RANGES_MAX;) {
        const char *dash = text_find(at, "-"), *more = text_find(at, "+"), *end = text_find(at, ",");
        if (!dash)
            return;
        out->at[out->n].low = text_number(at);
        out->at[out->n++].high = text_number(dash + 1);
        at = more && (!end || more < end) ? more + 1 : NULL;
    }
}

void tracer_options_read(void)
{
    struct tracer_options *o = &tracer_options;
    for (unsigned k = 0; k < PRELOAD_ENV_SETTINGS_MAX && preload_env_settings[k]; k++) {
        static const char buffer[] = ",buffer=", every[] = ",clock=every:";
        const char *text = preload_env_settings[k];
        if (!text_starts(text, "ALLIUM_SITES="))
            continue;
        const char *found = text_find(text, buffer), *nth = text_find(text, every);
        const uint64_t n = nth ? text_number(nth + sizeof(every) - 1) : 0;
        *o = (struct tracer_options){.buffer_bytes = found ? text_size(found + sizeof(buffer) - 1) : 0,
                                     .wants_mono = text_find(text, ",clock=mono") != NULL,
                                     .counts = text_find(text, ",clock=counter") != NULL,
                                     .untimed = text_find(text, ",clock=none") != NULL,
                                     .every = n & (n - 1) || n > TRACER_EVERY_MOST ? 0 : n,
                                     .begins = text_find(text, ",begin") != NULL};
        if (text_find(text, ",stacks=none"))
            o->stacks = TRACER_STACKS_NONE;
        if (text_find(text, ",stacks=full"))
            o->stacks = TRACER_STACKS_FULL;
        read_ranges(text, ",sizes=", &o->sizes);
        read_ranges(text, ",threads=", &o->threads);
    }
}
