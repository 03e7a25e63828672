/* SPDX-License-Identifier: BSD-2-Clause */
#include "run/unobserved_count.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/vec.h"
#include "collect/ledger/ledger_dir.h"
#include "collect/process/program_check.h"

#define PROGRAMS_MAX 1000 /* programs that are listed by name; further ones are counted together */

/* Processes of one program. */
struct kind {
    enum preload_check_result why;
    char *program;
    uint64_t processes;
    bool changed; /* since the count was stored last */
};

struct unobserved_count {
    struct VEC(struct kind) kinds;
    struct VEC(uint64_t) marked; /* images whose marks were counted */
    uint64_t read_bytes;         /* how much of the file that agents write has been read */
};

struct unobserved_count *unobserved_count_new(void)
{
    return mem_alloc(sizeof(struct unobserved_count));
}

void unobserved_count_free(struct unobserved_count *u)
{
    vec_each (struct kind, k, &u->kinds)
        free(k->program);
    vec_release(&u->kinds);
    vec_release(&u->marked);
    free(u);
}

static void count(void *arg, enum preload_check_result why, const char *program, int by)
{
    struct unobserved_count *u = arg;
    struct kind *k = u->kinds.at;
    for (size_t i = 0; i < u->kinds.len; i++, k++)
        if (k->why == why && (!strcmp(k->program, program) || i + 1 == PROGRAMS_MAX))
            break;
    if (u->kinds.len == (size_t)(k - u->kinds.at)) {
        k = vec_push(&u->kinds);
        k->why = why;
        k->program = mem_strdup(u->kinds.len < PROGRAMS_MAX ? program : "");
    }
    if (by > 0 || k->processes)
        k->processes += (uint64_t)(int64_t)by;
    k->changed = true;
}

void unobserved_count_add(struct unobserved_count *u, enum preload_check_result why, const char *program)
{
    count(u, why, program, 1);
}

void unobserved_count_add_mark(struct unobserved_count *u, const struct ledger_mark *mark)
{
    vec_each (const uint64_t, id, &u->marked)
        if (*id == mark->id)
            return;
    *vec_push(&u->marked) = mark->id;
    count(u, (enum preload_check_result)abs(mark->why), mark->program, mark->why < 0 ? -1 : 1);
}

static void take_marks(void *u, const char *folder)
{
    unobserved_take_marks(folder, count, u);
}

int unobserved_count_store(struct unobserved_count *u, const char *dir, struct recording *recording,
                           struct error *e)
{
    int bad = 0;
    unobserved_read(dir, &u->read_bytes, count, u);
    ledger_run_each_folder(dir, take_marks, u);
    vec_each (struct kind, k, &u->kinds) {
        if (k->changed && !bad)
            bad = recording_put_unobserved(recording, k->program, program_check_reason(k->why), k->processes,
                                           e);
        k->changed = false;
    }
    return bad;
}
