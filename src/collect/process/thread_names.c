/* SPDX-License-Identifier: BSD-2-Clause */
#include "collect/process/thread_names.h"

#include <string.h>
#include <time.h>

#include "base/sigsafe/clock_ns.h"
#include "collect/process/proc.h"

#define AGE_NS   1000000000u
#define SLACK_NS 100000000u /* /proc has start times in steps of 10 ms, and CLOCK_REALTIME may be adjusted */

static void set_name(struct profile *p, size_t thread, const char *text)
{
    uint32_t name = profile_string(p, text);
    p->threads.at[thread].name = name;
}

void thread_names_read(struct thread_names *seen, struct profile *p, pid_t pid)
{
    struct map last = {0}; /* tid -> its last row; earlier rows of the tid are of threads that have ended */
    uint64_t boot_ns = clock_ns(CLOCK_REALTIME) - clock_ns(CLOCK_BOOTTIME), now = clock_ns(CLOCK_MONOTONIC);
    if (p->images.at[0].pid != pid)
        return;
    if (seen && seen->of.len >= p->threads.len && now - seen->read_ns < AGE_NS) {
        thread_names_recall(seen, p);
        return;
    }
    for (size_t i = p->threads.len; i-- > 0;)
        map_put_u64(&last, (uint64_t)p->threads.at[i].tid, i, NULL);
    for (size_t i = 0; i < p->threads.len; i++) {
        const struct profile_thread *t = &p->threads.at[i];
        struct thread_name name;
        uint64_t began_ns;
        while (seen && seen->of.len <= i)
            vec_push(&seen->of);
        if (t->tid <= 0 || map_get_u64(&last, (uint64_t)t->tid) != i ||
            !proc_thread(pid, t->tid, name.text, sizeof(name.text), &began_ns))
            continue;
        if (boot_ns + began_ns > t->first_ns + SLACK_NS)
            continue;
        set_name(p, i, name.text);
        if (seen)
            seen->of.at[i] = name;
    }
    map_release(&last);
    if (!seen)
        return;
    seen->read_ns = now;
    thread_names_recall(seen, p); /* for threads that have ended since their names were read */
}

void thread_names_recall(const struct thread_names *seen, struct profile *p)
{
    for (size_t i = 0; i < seen->of.len && i < p->threads.len; i++)
        if (seen->of.at[i].text[0])
            set_name(p, i, seen->of.at[i].text);
}

void thread_names_release(struct thread_names *seen)
{
    vec_release(&seen->of);
}
