/* SPDX-License-Identifier: BSD-2-Clause */
#include "query/query_number.h"

#include "base/units.h"

#include <errno.h>
#include <inttypes.h>

struct scale {
    const char *unit;
    uint64_t factor;
};

static int read_plain(const char *text, uint64_t *value)
{
    uint64_t sum = 0;
    if (!*text)
        return -EINVAL;
    for (; *text; text++) {
        if (*text < '0' || *text > '9')
            return -EINVAL;
        if (__builtin_mul_overflow(sum, (uint64_t)10, &sum) ||
            __builtin_add_overflow(sum, (uint64_t)(*text - '0'), &sum))
            return -ERANGE;
    }
    *value = sum;
    return 0;
}

int query_number_read(enum query_type type, const char *text, int64_t *value)
{
    bool negative = *text == '-';
    uint64_t size = 0;
    text += negative;
    int rc = type == QUERY_SIZE       ? units_parse_size(text, &size)
             : type == QUERY_DURATION ? units_parse_duration(text, &size)
                                      : read_plain(text, &size);
    if (rc)
        return rc;
    if (size > INT64_MAX)
        return -ERANGE;
    *value = negative ? -(int64_t)size : (int64_t)size;
    return 0;
}

/* Returns the largest unit that divides the value: the list begins with the largest. */
static const struct scale *find_scale(enum query_type type, uint64_t size)
{
    static const struct scale sizes[] = {{"E", 1ULL << 60},
                                         {"P", 1ULL << 50},
                                         {"T", 1ULL << 40},
                                         {"G", 1ULL << 30},
                                         {"M", 1ULL << 20},
                                         {"k", 1ULL << 10},
                                         {"", 1}};
    static const struct scale durations[] = {
        {"d", 86400000000000}, {"h", 3600000000000}, {"m", 60000000000}, {"s", 1000000000},
        {"ms", 1000000},       {"us", 1000},         {"ns", 1}};
    static const struct scale zero_seconds = {"s", 1}, plain = {"", 1};
    if (type == QUERY_NUMBER || (type == QUERY_SIZE && !size))
        return &plain;
    if (!size)
        return &zero_seconds;
    const struct scale *s = type == QUERY_SIZE ? sizes : durations;
    while (size % s->factor)
        s++;
    return s;
}

void query_number_print(enum query_type type, int64_t value, struct buf *out)
{
    uint64_t size = value < 0 ? -(uint64_t)value : (uint64_t)value;
    const struct scale *s = find_scale(type, size);
    buf_printf(out, "%s%" PRIu64 "%s", value < 0 ? "-" : "", size / s->factor, s->unit);
}

const char *query_number_name(enum query_type type)
{
    return type == QUERY_SIZE ? "a size" : type == QUERY_DURATION ? "a duration" : "a whole number";
}

const char *query_number_example(enum query_type type)
{
    return type == QUERY_SIZE ? "512, 4k or 1.5MiB" : type == QUERY_DURATION ? "250ms, 5m or 1h30m" : "42";
}
