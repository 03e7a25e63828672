/* SPDX-License-Identifier: BSD-2-Clause */
#include "view/profile/runtime_hint.h"

#include <string.h>

#include "model/profile/frames.h"

#define LEAST_RSS_BYTES (4u << 20)

const char runtime_hint_go[] =
    "The Go heap is mapped by Go's runtime and not seen, only the memory of C code: see allium-limits(7).";

const char *runtime_hint_of(const char *program)
{
    static const struct {
        const char *begin, *text;
    } hints[] = {
        {"python", "Python keeps small objects in arenas of its own, which are not seen unless it runs with "
                   "PYTHONMALLOC=malloc: see allium-limits(7)."},
        {"java",
         "The Java heap is mapped by the virtual machine and not seen, only the memory of native code: see "
         "allium-limits(7)."},
        {"node", "The JavaScript heap is mapped by V8 and not seen, only the memory of native code: see "
                 "allium-limits(7)."},
    };
    const char *name = frame_basename(program);
    for (size_t i = 0; i < sizeof(hints) / sizeof(*hints); i++) {
        size_t len = strlen(hints[i].begin);
        if (!strncmp(name, hints[i].begin, len) && !name[len + strspn(name + len, "0123456789.")])
            return hints[i].text;
    }
    return NULL;
}

const char *runtime_hint_of_image(const struct profile *p, uint32_t image)
{
    const struct profile_image *i = &p->images.at[image];
    return runtime_hint_of(profile_text(p, *profile_text(p, i->exe) ? i->exe : i->comm));
}

const char *runtime_hint_if_unread(const struct profile *p, uint32_t image)
{
    const struct profile_image *i = &p->images.at[image];
    bool was_read = i->rss_anon_bytes >= LEAST_RSS_BYTES && 2 * (double)i->rss_anon_bytes >= i->peak_bytes;
    return was_read ? NULL : runtime_hint_of_image(p, image);
}

uint32_t runtime_hint_unseen_image(const struct profile *p)
{
    uint32_t found = PROFILE_NONE;
    for (uint32_t i = 0; i < p->images.len; i++) {
        const struct profile_image *it = &p->images.at[i];
        if (it->past || it->rss_anon_bytes < LEAST_RSS_BYTES ||
            2 * it->peak_bytes >= (double)it->rss_anon_bytes)
            continue;
        if (found == PROFILE_NONE || it->rss_anon_bytes > p->images.at[found].rss_anon_bytes)
            found = i;
    }
    return found;
}
