/* SPDX-License-Identifier: BSD-2-Clause */
#include "store/recording_writer.h"

#include <errno.h>
#include <inttypes.h>

static struct writer_image *known_image(struct recording *r, uint64_t id, int *rc, struct error *e)
{
    struct writer_image *image = writer_image(r, id);
    *rc = writer_failure(r, e);
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
        row_moment_key(s, NULL, &it);
        row_moment_sums(s, NULL, &it);
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

static uint64_t lived_ns(const struct writer_image *image)
{
    return image->points.at[image->points.len - 1].time_ns - image->points.at[0].time_ns;
}

/*
 * How far apart two of `n` moments stay, at least, so that they reach over all of a life, however long: evenly, and
 * closer near its beginning, which later moments are compared with. The latter takes some 60, whatever the life.
 */
static uint64_t moment_stride_ns(const struct writer_image *image, uint64_t since_ns, size_t n)
{
    uint64_t lived = lived_ns(image), even = lived / (n * 3 / 8 + 1), near = since_ns / 4 + (lived >> 16);
    return near < even ? near : even;
}

static const struct writer_point *moment_after(const struct writer_image *image, const struct writer_point *q)
{
    const struct writer_point *end = image->points.at + image->points.len;
    for (q++; q < end; q++)
        if (q->moment != ROW_NO_MOMENT)
            return q;
    return NULL;
}

/*
 * Moments that follow too soon go into the next one that stays, unless that left a gap; the first and the last stay.
 * That the gap is looked at matters: strides grow, and a moment before a wide gap would go each time.
 */
static void thin_moments(struct recording *r, struct writer_image *image)
{
    size_t n = count_moments(image);
    const struct writer_point *kept = NULL, *next;
    struct writer_point *going = NULL;
    vec_each (struct writer_point, q, &image->points) {
        if (q->moment == ROW_NO_MOMENT)
            continue;
        if (going) {
            merge_moment(r, going->moment, q->moment);
            change_point(r, WRITER_NO_MOMENT, image, going);
            going->moment = ROW_NO_MOMENT;
            going = NULL;
        }
        uint64_t stride = moment_stride_ns(image, q->time_ns - image->points.at[0].time_ns, n);
        next = moment_after(image, q);
        if (kept && next && q->time_ns - kept->time_ns <= stride &&
            next->time_ns - kept->time_ns <= 2 * stride)
            going = q;
        else
            kept = q;
    }
}

/* The same for points, evenly: they make a curve. Those with a moment stay. */
static void thin_points(struct recording *r, struct writer_image *image)
{
    size_t kept = 0, n = image->points.len;
    struct writer_point *points = image->points.at;
    uint64_t stride = n ? lived_ns(image) / (n / 2 + 1) : 0;
    for (size_t i = 0; i < n; i++) {
        uint64_t before = kept ? points[kept - 1].time_ns : 0;
        if (i == 0 || i == n - 1 || points[i].moment != ROW_NO_MOMENT ||
            points[i].time_ns - before > stride || points[i + 1].time_ns - before > 2 * stride)
            points[kept++] = points[i];
        else
            change_point(r, WRITER_DELETE_POINT, image, &points[i]);
    }
    image->points.len = kept;
}

int recording_thin_points(struct recording *r, uint64_t image_id, struct error *e)
{
    int rc;
    struct writer_image *image = known_image(r, image_id, &rc, e);
    if (!image)
        return rc;
    rc = writer_result(r, e); /* points that wait cannot be deleted */
    if (image->points.len)
        thin_moments(r, image);
    thin_points(r, image);
    return rc ? rc : writer_result(r, e);
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
    row_point(s, NULL, &it);
    writer_run(r, s);
}

static int put_point(struct recording *r, uint64_t image_id, const struct profile_point *point,
                     bool is_moment, bool *thinned, struct error *e)
{
    int rc;
    struct writer_image *image = known_image(r, image_id, &rc, e);
    if (thinned)
        *thinned = false;
    if (!image)
        return rc;
    size_t moments = count_moments(image);
    if (image->points.len >= RECORDING_POINTS_MAX || (is_moment && moments >= RECORDING_MOMENTS_MAX)) {
        writer_result(r, e); /* points that wait cannot be deleted */
        if (moments > RECORDING_MOMENTS_MAX / 2)
            thin_moments(r, image);
        thin_points(r, image);
        if (thinned)
            *thinned = true;
    }
    add_point(r, image, point, is_moment ? put_moment(r, image) : ROW_NO_MOMENT);
    return is_moment ? writer_result(r, e) : writer_failure(r, e);
}

int recording_put_point(struct recording *r, uint64_t image_id, const struct profile_point *point,
                        const struct profile *moment, bool *thinned, struct error *e)
{
    int rc = moment ? writer_put_image(r, moment, false, e) : 0;
    return rc ? rc : put_point(r, image_id, point, moment != NULL, thinned, e);
}

int recording_put_same_moment(struct recording *r, uint64_t image_id, const struct profile_point *point,
                              bool *thinned, struct error *e)
{
    return put_point(r, image_id, point, true, thinned, e);
}
