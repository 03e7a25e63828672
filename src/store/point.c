/* SPDX-License-Identifier: BSD-2-Clause */
#include "store/writer.h"

#include <errno.h>
#include <inttypes.h>

static struct writer_image *known_image(struct recording *r, uint64_t id, int *rc, struct error *e)
{
    struct writer_image *image = writer_image(r, id);
    *rc = writer_result(r, e);
    if (!*rc && !image)
        *rc = error_set(e, ENOENT,
                        "%s: image %016" PRIx64 " has no points before it is put, nor after its last",
                        r->shown, id);
    return *rc ? NULL : image;
}

static bool same_sums(const struct profile_sums *a, const struct profile_sums *b)
{
    return a->samples == b->samples && a->seen_bytes == b->seen_bytes && a->bytes == b->bytes &&
           a->count == b->count;
}

static int64_t put_moment(struct recording *r, struct writer_image *image)
{
    int64_t moment = r->n_moments++;
    vec_each (struct writer_cell, c, &image->cells) {
        if (same_sums(&c->allocated, &c->stored.allocated) && same_sums(&c->freed, &c->stored.freed))
            continue;
        c->allocated = c->stored.allocated;
        c->freed = c->stored.freed;
        struct row_moment_cell it = {moment, c->row, c->allocated, c->freed};
        struct sql *s = writer_statement(r, SCHEMA_MOMENT_CELL);
        row_put_moment_cell(s, &it);
        writer_run(r, s);
    }
    return moment;
}

static size_t count_moments(const struct writer_image *image)
{
    size_t n = 0;
    vec_each (const struct writer_point, q, &image->points)
        n += q->moment != ROW_NO_MOMENT;
    return n;
}

/* What changed up to the moment `from` and not between it and `into` is what `into` has to say about it now. */
static void merge_moment(struct recording *r, int64_t from, int64_t into)
{
    struct sql *s = writer_statement(r, WRITER_MERGE_MOMENT);
    sql_put_int(s, into);
    sql_put_int(s, from);
    writer_run(r, s);
    s = writer_statement(r, WRITER_DELETE_MOMENT);
    sql_put_int(s, from);
    writer_run(r, s);
}

static void change_point(struct recording *r, enum writer_statement how, const struct writer_image *image,
                         const struct writer_point *q)
{
    struct sql *s = writer_statement(r, how);
    sql_put_int(s, image->row);
    sql_put_count(s, q->time_ns);
    writer_run(r, s);
}

/* Every second moment goes into the next one that stays; the first and the last stay. */
static void thin_moments(struct recording *r, struct writer_image *image)
{
    size_t left = count_moments(image), number = 0;
    struct writer_point *going = NULL;
    vec_each (struct writer_point, q, &image->points) {
        if (q->moment == ROW_NO_MOMENT)
            continue;
        left--;
        if (going) {
            merge_moment(r, going->moment, q->moment);
            change_point(r, WRITER_NO_MOMENT, image, going);
            going->moment = ROW_NO_MOMENT;
            going = NULL;
        }
        if (number++ % 2 && left)
            going = q;
    }
}

static void thin_points(struct recording *r, struct writer_image *image)
{
    size_t kept = 0, n = image->points.len;
    for (size_t i = 0; i < n; i++) {
        struct writer_point *q = &image->points.at[i];
        if (i % 2 == 0 || i == n - 1 || q->moment != ROW_NO_MOMENT)
            image->points.at[kept++] = *q;
        else
            change_point(r, WRITER_DELETE_POINT, image, q);
    }
    image->points.len = kept;
}

int recording_thin_points(struct recording *r, uint64_t image_id, struct error *e)
{
    int rc;
    struct writer_image *image = known_image(r, image_id, &rc, e);
    if (!image)
        return rc;
    thin_moments(r, image);
    thin_points(r, image);
    return writer_result(r, e);
}

static void add_point(struct recording *r, struct writer_image *image, const struct profile_point *point,
                      int64_t moment)
{
    struct row_point it = {.point = *point, .moment = moment};
    const struct writer_point *before = image->points.len ? &image->points.at[image->points.len - 1] : NULL;
    it.point.image = image->row;
    if (it.point.time_ns > INT64_MAX)
        it.point.time_ns = INT64_MAX;
    if (before && it.point.time_ns <= before->time_ns)
        it.point.time_ns = before->time_ns + 1;
    *vec_push(&image->points) = (struct writer_point){it.point.time_ns, moment};
    struct sql *s = writer_statement(r, SCHEMA_POINT);
    row_put_point(s, &it);
    writer_run(r, s);
}

int recording_put_point(struct recording *r, uint64_t image_id, const struct profile_point *point,
                        const struct profile *moment, bool *thinned, struct error *e)
{
    int rc = moment ? writer_put_image(r, moment, false, e) : 0;
    struct writer_image *image = rc ? NULL : known_image(r, image_id, &rc, e);
    if (thinned)
        *thinned = false;
    if (!image)
        return rc;
    if (image->points.len >= RECORDING_POINTS_MAX ||
        (moment && count_moments(image) >= RECORDING_MOMENTS_MAX)) {
        thin_moments(r, image);
        thin_points(r, image);
        if (thinned)
            *thinned = true;
    }
    add_point(r, image, point, moment ? put_moment(r, image) : ROW_NO_MOMENT);
    return writer_result(r, e);
}
