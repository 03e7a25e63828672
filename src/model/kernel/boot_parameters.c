/* SPDX-License-Identifier: BSD-2-Clause */
#include "model/kernel/boot_parameters.h"

#include <fnmatch.h>
#include <string.h>

#define NAME_MAX_BYTES 128u
#define PARAMETER      "trace_event="
#define MIB            (UINT64_C(1) << 20)
#define MIB_LEAST      32u
#define MIB_MOST       1024u

/* "kmem:kfree", "kmem", "kfree", "kmem:*" */
static bool asks(const char *word, size_t len, const char *system, const char *event)
{
    char pattern[NAME_MAX_BYTES];
    if (!len || len >= sizeof(pattern))
        return false;
    memcpy(pattern, word, len);
    pattern[len] = '\0';
    char *colon = strchr(pattern, ':');
    if (!colon)
        return !fnmatch(pattern, system, 0) || !fnmatch(pattern, event, 0);
    *colon = '\0';
    return (!*pattern || !fnmatch(pattern, system, 0)) && (!colon[1] || !fnmatch(colon + 1, event, 0));
}

bool boot_parameters_trace(const char *command_line, const char *system, const char *event)
{
    for (const char *word = command_line; *word; word += strcspn(word, " \t\n")) {
        word += strspn(word, " \t\n");
        if (strncmp(word, PARAMETER, strlen(PARAMETER)) != 0)
            continue;
        const char *at = word + strlen(PARAMETER);
        for (;; at++) {
            const size_t len = strcspn(at, ", \t\n");
            if (asks(at, len, system, event))
                return true;
            at += len;
            if (*at != ',')
                break;
        }
    }
    return false;
}

uint32_t boot_parameters_buffer_mib(const struct boot_machine *m)
{
    const uint64_t cpus = m->cpus ? m->cpus : 1, room = m->memory_bytes / BOOT_PARAMETERS_SHARE / cpus;
    const uint64_t wanted = m->objects * BOOT_PARAMETERS_EVENTS * BOOT_PARAMETERS_EVENT_BYTES;
    uint32_t mib = MIB_LEAST;
    while (mib < MIB_MOST && mib * MIB < wanted)
        mib *= 2;
    while (mib > 1 && mib * MIB > room)
        mib /= 2;
    return mib;
}
