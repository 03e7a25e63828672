/* SPDX-License-Identifier: BSD-2-Clause */
#include "cli/diff_sides.h"

#include <stdlib.h>

#include "base/mem.h"
#include "cli/option_values.h"

static const struct word units[] = {
    {"boot", DIFF_PER_BOOT}, {"event", DIFF_PER_EVENT}, {"s", DIFF_PER_SECOND}, {NULL, 0}};

int diff_sides_parse(struct diff_sides *s, const struct command *c, const struct arguments *a)
{
    struct error e = {""};
    int per = DIFF_PER_NOTHING;
    if (a->n_rest > PROFILE_PAIR_SIDES)
        return command_misuse(c, "too many sources: leave out %s, or write A1,A2 B1,B2 for several on a side",
                              a->rest[2]);
    if (a->n_rest < PROFILE_PAIR_SIDES)
        return command_misuse(c,
                              a->n_rest ? "missing second source: %s, and the source to compare it with"
                                        : "missing sources: give two%s",
                              a->n_rest ? a->rest[0] : "");
    for (int side = 0; side < PROFILE_PAIR_SIDES; side++) {
        s->text[side] = a->rest[side];
        if (source_list_split(&s->of[side], s->text[side], &e))
            return command_misuse(c, "%s", e.text);
    }
    int code = option_values_parse(c, "per", command_value(c, a, "per"), units, &per);
    s->per = (enum diff_per)per;
    return code;
}

/* The number of a capture, those before first. */
static const char *label_of(const struct diff_sides *s, uint32_t capture)
{
    uint32_t before = s->side[PROFILE_PAIR_BEFORE].n;
    return capture < before ? s->of[PROFILE_PAIR_BEFORE].sources[capture].label
                            : s->of[PROFILE_PAIR_AFTER].sources[capture - before].label;
}

/* Each capture must be of runs of its own: the moments of one run are not independent. */
static int check_shared(const struct diff_sides *s, const struct command *c)
{
    uint32_t one, other;
    bool several = s->side[PROFILE_PAIR_BEFORE].n > 1 || s->side[PROFILE_PAIR_AFTER].n > 1;
    if ((!several && s->per <= DIFF_PER_BOOT) || !diff_shared_image(s->side, &one, &other))
        return -1;
    return command_misuse(
        c,
        several ? "%s and %s are of one run: several captures of a side must be of different runs"
                : "%s and %s are of one run: --per compares different runs",
        label_of(s, one), label_of(s, other));
}

/* The number of allocations divides by an amount that is itself uncertain, if they were sampled. The spread of several
 * captures has that uncertainty. */
static int check_per(const struct diff_sides *s, const struct command *c, int side, uint32_t capture)
{
    const struct profile *p = s->of[side].profiles[capture];
    const char *label = s->of[side].sources[capture].label;
    if (s->per == DIFF_PER_BOOT && !diff_per_of_kernel(p))
        return command_misuse(c, "--per boot: %s is not a recording of the kernel: use event or s", label);
    if (s->per == DIFF_PER_EVENT && s->side[side].n < 2 && !diff_per_exact(p))
        return command_misuse(
            c,
            "--per event: %s was sampled, so the number of its allocations is an estimate: record "
            "with --period 1, or give several captures of each side",
            label);
    return -1;
}

static int set_divisors(struct diff_sides *s, const struct command *c, int side)
{
    uint32_t n = s->side[side].n;
    double *divisors = s->divisors[side] = mem_array(n, sizeof(*divisors));
    for (uint32_t i = 0; i < n; i++) {
        int code = check_per(s, c, side, i);
        if (code >= 0)
            return code;
        divisors[i] = diff_per_divisor(s->of[side].profiles[i], s->per);
        if (!(divisors[i] > 0))
            return command_fail(
                EXIT_FAILED,
                s->per == DIFF_PER_EVENT
                    ? "--per event: %s has no allocation"
                    : "--per s: the length of %s in seconds is not known: compare without --per",
                s->of[side].sources[i].label);
    }
    /* of a boot, the figures are as they are */
    s->side[side].divisors = s->per > DIFF_PER_BOOT ? divisors : NULL;
    return -1;
}

int diff_sides_open(struct diff_sides *s, const struct command *c)
{
    struct error e = {""};
    int code = -1;
    for (int side = 0; side < PROFILE_PAIR_SIDES; side++) {
        int bad = source_list_open(&s->of[side], &e);
        if (bad)
            return source_fail(bad, &e);
        s->side[side] =
            (struct diff_side){.captures = s->of[side].profiles, .n = (uint32_t)s->of[side].texts.len};
    }
    for (int side = 0; side < PROFILE_PAIR_SIDES && code < 0 && s->per; side++)
        code = set_divisors(s, c, side);
    return code < 0 ? check_shared(s, c) : code;
}

const char **diff_sides_labels(const struct diff_sides *s)
{
    uint32_t n = s->side[PROFILE_PAIR_BEFORE].n + s->side[PROFILE_PAIR_AFTER].n;
    const char **labels = mem_array(n, sizeof(*labels));
    for (uint32_t i = 0; i < n; i++)
        labels[i] = label_of(s, i);
    return labels;
}

void diff_sides_release(struct diff_sides *s)
{
    for (int side = 0; side < PROFILE_PAIR_SIDES; side++) {
        source_list_release(&s->of[side]);
        free(s->divisors[side]);
    }
}
