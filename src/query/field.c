/* SPDX-License-Identifier: BSD-2-Clause */
#include "query/field.h"

#include <string.h>

#define NAME_MAX_BYTES 32 /* longer names are not compared for closeness */
/* limit of the list of fields: the whole message must fit struct error */
#define LISTED_MAX_BYTES 360

size_t query_field_find(const struct query_field *fields, size_t n_fields, const char *name, size_t len)
{
    for (size_t i = 0; i < n_fields; i++)
        if (strlen(fields[i].name) == len && !memcmp(fields[i].name, name, len))
            return i;
    return QUERY_NO_FIELD;
}

static size_t min3(size_t a, size_t b, size_t c)
{
    size_t ab = a < b ? a : b;
    return ab < c ? ab : c;
}

/*
 * Returns the number of insertions, deletions, replacements and swaps of neighbours that turn a into b (optimal
 * string alignment).
 */
static size_t edit_distance(const char *a, size_t a_len, const char *b, size_t b_len)
{
    /* the present row of the table and the two before it: row i is rows[i % 3] */
    size_t rows[3][NAME_MAX_BYTES + 1];
    for (size_t j = 0; j <= b_len; j++)
        rows[0][j] = j;
    for (size_t i = 1; i <= a_len; i++) {
        size_t *row = rows[i % 3], *above = rows[(i + 2) % 3], *above2 = rows[(i + 1) % 3];
        row[0] = i;
        for (size_t j = 1; j <= b_len; j++) {
            row[j] = min3(above[j] + 1, row[j - 1] + 1, above[j - 1] + (a[i - 1] != b[j - 1]));
            if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1] && above2[j - 2] + 1 < row[j])
                row[j] = above2[j - 2] + 1;
        }
    }
    return rows[a_len % 3][b_len];
}

/*
 * Returns 0 for a name that begins like the other ("mod", "function"), else the edit distance; SIZE_MAX: not
 * similar.
 */
static size_t closeness(const char *a, size_t a_len, const char *b, size_t b_len)
{
    size_t shorter = a_len < b_len ? a_len : b_len;
    if (!shorter || a_len > NAME_MAX_BYTES || b_len > NAME_MAX_BYTES)
        return SIZE_MAX;
    if (shorter >= 3 && !memcmp(a, b, shorter))
        return 0;
    size_t edits = edit_distance(a, a_len, b, b_len);
    size_t allowed = shorter < 3 ? 0 : shorter < 6 ? 1 : 2;
    return edits <= allowed ? edits : SIZE_MAX;
}

size_t query_field_closest(const struct query_field *fields, size_t n_fields, const char *name, size_t len)
{
    size_t best = SIZE_MAX, best_at = QUERY_NO_FIELD;
    for (size_t i = 0; i < n_fields; i++) {
        size_t c = closeness(name, len, fields[i].name, strlen(fields[i].name));
        if (c < best) {
            best = c;
            best_at = i;
        }
    }
    return best_at;
}

void query_field_suggest(const struct query_field *fields, size_t n_fields, const char *name, size_t len,
                         struct buf *out)
{
    size_t best_at = query_field_closest(fields, n_fields, name, len);
    if (best_at != QUERY_NO_FIELD)
        buf_printf(out, "did you mean \"%s\"? ", fields[best_at].name);
    buf_addstr(out, n_fields ? "fields are " : "there are no fields");
    for (size_t i = 0; i < n_fields; i++) {
        if (out->len + strlen(fields[i].name) > LISTED_MAX_BYTES) {
            buf_addstr(out, ", ...");
            break;
        }
        buf_printf(out, "%s%s", i ? ", " : "", fields[i].name);
    }
}
