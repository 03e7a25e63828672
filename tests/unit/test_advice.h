/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef TEST_ADVICE_H
#define TEST_ADVICE_H

/* What the tests of advice share: its input, planted by hand, and a look at the measures. */

#include "test_kernel.h"

#include "model/kernel/advice/advice.h"

#define PAGE 4096

struct planted {
    struct advice_input in;
    struct advice advice;
};

static inline void setup(struct planted *p)
{
    *p = (struct planted){.in = {.page_bytes = PAGE, .cpus = 2}};
}

static inline void judge(struct planted *p)
{
    advice_release(&p->advice);
    advice_find(&p->advice, &p->in);
}

static inline void drop(struct planted *p)
{
    advice_release(&p->advice);
    advice_input_release(&p->in);
}

/* The measure whose change has these words; NULL: there is none. */
static inline const struct advice_measure *find(const struct planted *p, const char *words)
{
    vec_each (const struct advice_measure, m, &p->advice.measures)
        if (strstr(m->change, words))
            return m;
    return NULL;
}

static inline void found(const struct planted *p, const char *words, int64_t low, uint64_t high)
{
    const struct advice_measure *m = find(p, words);
    assert_non_null(m);
    assert_int_equal(m->low_bytes, low);
    assert_int_equal(m->high_bytes, high);
    assert_true(*m->formula && *m->cost && m->rows.len);
}

static inline bool is_unknown(const struct planted *p, const char *words)
{
    vec_each (char *const, sentence, &p->advice.unknown)
        if (strstr(*sentence, words))
            return true;
    return false;
}

static inline void plant_file(struct planted *p, const char *call, const char *file, uint64_t live)
{
    const size_t i = advice_take_call(&p->in, call, file);
    p->in.has_calls = true;
    p->in.calls.at[i].live_bytes = live;
    p->in.calls.at[i].live_objects = 1;
}

#endif
