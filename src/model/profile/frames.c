/* SPDX-License-Identifier: BSD-2-Clause */
#include "model/profile/frames.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#define AGENT        "liballium-agent" /* .so, -full.so */
#define HOOKS        "allium/malloc_hooks.h"
#define NAMELESS_MAX 2 /* functions without a name that may be between a wrapper and malloc */

static bool is_agent(const struct profile *p, uint32_t location)
{
    return !strncmp(frame_basename(frame_module(p, &(struct frame){.location = location})), AGENT,
                    strlen(AGENT));
}

static void add_location(struct frames *out, const struct profile *p, uint32_t location)
{
    const struct profile_location *l = &p->locations.at[location];
    for (uint32_t k = 0; k < l->n_lines; k++)
        *vec_push(out) = (struct frame){.location = location, .line = l->first_line + k};
    if (!l->n_lines)
        *vec_push(out) = (struct frame){.location = location, .line = PROFILE_NONE};
}

/* Returns whether the frame is a function of <allium/malloc_hooks.h>, inlined where the program calls malloc(). */
static bool is_hook(const struct profile *p, const struct frame *f)
{
    const char *file = frame_inlined(p, f) ? frame_file(p, f) : "";
    size_t len = strlen(file);
    return len >= strlen(HOOKS) && !strcmp(file + len - strlen(HOOKS), HOOKS);
}

static void drop_hooks(struct frames *out, const struct profile *p)
{
    size_t n = 0;
    while (n + 1 < out->len && is_hook(p, &out->at[n]))
        n++;
    out->len -= n;
    memmove(out->at, out->at + n, out->len * sizeof(*out->at));
}

void frames_at(struct frames *out, const struct profile *p, uint32_t location)
{
    out->len = 0;
    add_location(out, p, location);
    drop_hooks(out, p);
}

void frames_of(struct frames *out, const struct profile *p, uint32_t stack)
{
    const struct profile_stack *s = &p->stacks.at[stack];
    const uint32_t *at = s->depth ? &p->stack_locations.at[s->first] : NULL;
    uint32_t i = 0;
    bool known_unknown = false; /* the outermost frame already reads "[JIT or unknown code]" */
    out->len = 0;
    while (i < s->depth && is_agent(p, at[i]))
        i++;
    for (; i < s->depth; i++) {
        const struct profile_location *l = &p->locations.at[at[i]];
        add_location(out, p, at[i]);
        known_unknown = !l->n_lines && l->module == PROFILE_NONE && s->end == PROFILE_STACK_NO_CODE;
    }
    if (out->len)
        drop_hooks(out, p);
    if (!out->len || (s->end != PROFILE_STACK_WHOLE && !known_unknown))
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

/* Returns whether the frame is code between a program and its allocator: libc, the loader, the C++ library, an
 * allocator library, Allium. */
static bool is_runtime(const struct profile *p, const struct frame *f)
{
    static const char *const begin[] = {
        "libc.so", "libc-2.",    "libc.musl", "ld-linux",    "ld-musl",     "ld-2.",       "libstdc++.",
        "libc++.", "libc++abi.", "libgcc_s.", "libjemalloc", "libtcmalloc", "libmimalloc", "liballium"};
    char scratch[FRAME_NAME_BYTES];
    const char *module = frame_basename(frame_module(p, f));
    for (size_t i = 0; i < sizeof(begin) / sizeof(*begin); i++)
        if (!strncmp(module, begin[i], strlen(begin[i])))
            return true;
    return !strncmp(frame_function(p, f, scratch), "operator new", strlen("operator new"));
}

static bool is_wrapper(const struct profile *p, const struct frame *f)
{
    return f->line != PROFILE_NONE && p->lines.at[f->line].wrapper;
}

static bool is_nameless(const struct profile *p, const struct frame *f)
{
    return f->line != PROFILE_NONE && p->lines.at[f->line].nameless;
}

static uint32_t module_of(const struct profile *p, const struct frame *f)
{
    return p->locations.at[f->location].module;
}

size_t frames_passed_over(const struct profile *p, const struct frames *frames)
{
    size_t n = 0, real = frames->len;
    if (real && frames->at[real - 1].location == PROFILE_NONE)
        real--;
    for (size_t i = 0; i < real; i++) {
        const struct frame *f = &frames->at[i];
        if (is_nameless(p, f) && i - n < NAMELESS_MAX)
            continue;
        if (!is_wrapper(p, f))
            break;
        size_t same = n; /* the frames without a name that this wrapper called */
        while (same < i && module_of(p, &frames->at[same]) == module_of(p, f))
            same++;
        if (same < i)
            break;
        n = i + 1;
    }
    return n && n == real ? n - 1 : n;
}

const struct frame *frames_asker(const struct profile *p, const struct frames *frames)
{
    return frames->at + frames_passed_over(p, frames);
}

/* Returns whether the frame is a function of a header that was inlined: such a function helps many others. A function
 * of a source file that the compiler inlined is one of the program's own. */
static bool is_inlined_helper(const struct profile *p, const struct frame *f)
{
    static const char *const sources[] = {".c", ".cc", ".cpp", ".cxx", ".c++", ".C"};
    const char *end = frame_inlined(p, f) ? strrchr(frame_basename(frame_file(p, f)), '.') : NULL;
    for (size_t i = 0; end && i < sizeof(sources) / sizeof(*sources); i++)
        if (!strcmp(end, sources[i]))
            return false;
    return frame_inlined(p, f);
}

const struct frame *frames_owner(const struct profile *p, const struct frames *frames)
{
    const struct frame *asker = frames_asker(p, frames);
    for (const struct frame *f = asker; f < frames->at + frames->len; f++)
        if (f->location != PROFILE_NONE && !is_inlined_helper(p, f) && !is_runtime(p, f))
            return f;
    return asker;
}

const struct frame *frames_site(const struct profile *p, const struct frames *frames)
{
    const struct frame *f = frames_asker(p, frames);
    while (f + 1 < frames->at + frames->len && is_inlined_helper(p, f))
        f++;
    return f;
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
