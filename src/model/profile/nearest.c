/* SPDX-License-Identifier: BSD-2-Clause */
#include "model/profile/nearest.h"

#include <ctype.h>
#include <string.h>

#include "base/sigsafe/pattern.h"

#define LETTERS_MAX 64 /* the rest of a longer name is not compared */

struct letters {
    char at[LETTERS_MAX + 1];
    size_t n;
};

static void take_letters(struct letters *l, const char *text)
{
    l->n = 0;
    for (; *text && l->n < LETTERS_MAX; text++)
        if (!strchr("*?\\", *text))
            l->at[l->n++] = (char)tolower((unsigned char)*text);
    l->at[l->n] = '\0';
}

/* Returns how many letters must be changed, added or removed to make one name of the other. Source: Wagner and
 * Fischer 1974. */
static size_t distance(const struct letters *a, const struct letters *b)
{
    size_t row[LETTERS_MAX + 1];
    for (size_t k = 0; k <= b->n; k++)
        row[k] = k;
    for (size_t i = 1; i <= a->n; i++) {
        size_t corner = row[0];
        row[0] = i;
        for (size_t k = 1; k <= b->n; k++) {
            size_t least = corner + (a->at[i - 1] != b->at[k - 1]);
            corner = row[k];
            least = least < row[k] + 1 ? least : row[k] + 1;
            row[k] = least < row[k - 1] + 1 ? least : row[k - 1] + 1;
        }
    }
    return row[b->n];
}

/* Returns a smaller number for a more similar name, and SIZE_MAX for a name that is not similar. A name that contains
 * the wanted one counts like a name with one wrong letter, or a few more if it is long. */
static size_t unlikeness(const struct letters *wanted, const char *name)
{
    struct letters have;
    take_letters(&have, name);
    if (strstr(have.at, wanted->at))
        return 1 + (have.n - wanted->n) / 16;
    size_t apart = distance(wanted, &have);
    return apart <= 1 + wanted->n / 3 ? apart : SIZE_MAX;
}

size_t nearest_unlikeness(const char *wanted, const char *name)
{
    struct letters letters;
    take_letters(&letters, wanted);
    return letters.n ? unlikeness(&letters, name) : SIZE_MAX;
}

static unsigned char *function_names(const struct profile *p)
{
    unsigned char *is = mem_array(p->strings.len, 1);
    vec_each (const struct profile_line, line, &p->lines)
        is[line->function] = 1;
    return is;
}

bool nearest_fits_any(const struct profile *p, const char *pattern)
{
    unsigned char *is = function_names(p);
    bool fits = false;
    for (uint32_t i = 0; i < p->strings.len && !fits; i++)
        fits = is[i] && pattern_glob(pattern, profile_text(p, i), strlen(profile_text(p, i)));
    free(is);
    return fits;
}

size_t nearest_functions(const struct profile *p, const char *text, uint32_t nearest[static NEAREST_MAX])
{
    size_t n = 0, apart[NEAREST_MAX + 1];
    struct letters wanted;
    unsigned char *is = function_names(p);
    take_letters(&wanted, text);
    for (uint32_t i = 0; i < p->strings.len && wanted.n; i++) {
        size_t found = is[i] ? unlikeness(&wanted, profile_text(p, i)) : SIZE_MAX, at = n;
        if (found == SIZE_MAX || (n == NEAREST_MAX && found >= apart[n - 1]))
            continue;
        n += n < NEAREST_MAX;
        for (at = n - 1; at && apart[at - 1] > found; at--) {
            apart[at] = apart[at - 1];
            nearest[at] = nearest[at - 1];
        }
        apart[at] = found;
        nearest[at] = i;
    }
    free(is);
    return n;
}
