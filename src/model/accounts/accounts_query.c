/* SPDX-License-Identifier: BSD-2-Clause */
#include <math.h>

#include "base/sigsafe/clause.h"
#include "model/accounts/accounts.h"

enum field {
    CLASS,
    NAME,
    FUNC,
    PATH,
    DIR,
    LINE,
    MODULE,
    COMM,
    PID,
    LIVE,
    OBJECTS,
    PEAK,
    ALLOCATED,
    COUNT,
    FREED,
    FREES,
    FAILED,
    AVERAGE,
    ACCURATE
};

static const struct query_field fields[] = {
    [CLASS] = {"class", QUERY_TEXT, "as the program calls it"},
    [NAME] = {"name", QUERY_TEXT, "as the program calls it"},
    [FUNC] = {"func", QUERY_TEXT, "the function"},
    [PATH] = {"file", QUERY_PATH, "the source file"},
    [DIR] = {"dir", QUERY_PATH, "its directory, and each directory above"},
    [LINE] = {"line", QUERY_NUMBER, "the line of the file"},
    [MODULE] = {"module", QUERY_MODULE, "the executable or library"},
    [COMM] = {"comm", QUERY_TEXT, "name of the process"},
    [PID] = {"pid", QUERY_NUMBER, "process id"},
    [LIVE] = {"live", QUERY_SIZE, "bytes that are live"},
    [OBJECTS] = {"objects", QUERY_NUMBER, "objects that are live"},
    [PEAK] = {"peak", QUERY_SIZE, "lower bound of the peak of live bytes; tags only"},
    [ALLOCATED] = {"allocated", QUERY_SIZE, "total of requested bytes"},
    [COUNT] = {"count", QUERY_NUMBER, "total number of allocations"},
    [FREED] = {"freed", QUERY_SIZE, "total of freed bytes"},
    [FREES] = {"frees", QUERY_NUMBER, "total number of frees"},
    [FAILED] = {"failed", QUERY_NUMBER, "requests that failed"},
    [AVERAGE] = {"average", QUERY_SIZE, "bytes of an allocation"},
    [ACCURATE] = {"accurate", QUERY_TEXT, "yes or no"},
};

/* The query fields of the kernel's accounts. kernel_field_is[] has the enum field from which each takes its value. */
static const struct query_field kernel_fields[] = {
    {"func", QUERY_TEXT, "the function"},
    {"file", QUERY_PATH, "the source file"},
    {"dir", QUERY_PATH, "its directory, and each directory above"},
    {"module", QUERY_TEXT, "the kernel module; code that is built into the kernel has none"},
    {"line", QUERY_NUMBER, "the line of the file"},
    {"size", QUERY_SIZE, "bytes held"},
    {"calls", QUERY_NUMBER, "calls whose memory is held"},
    {"average", QUERY_SIZE, "bytes of one call"},
    {"accurate", QUERY_TEXT, "yes or no"},
};
static const enum field kernel_field_is[] = {FUNC, PATH, DIR, MODULE, LINE, LIVE, COUNT, AVERAGE, ACCURATE};

struct subject {
    const struct account_row *row;
    const struct alloc_texts *texts;
};

int account_query_parse(struct query **q, const char *text, struct error *e)
{
    return query_parse(q, text, fields, sizeof(fields) / sizeof(*fields), e, NULL);
}

int account_query_parse_kernel(struct query **q, const char *text, struct error *e)
{
    return query_parse(q, text, kernel_fields, sizeof(kernel_fields) / sizeof(*kernel_fields), e, NULL);
}

bool account_query_needs_processes(const struct query *q)
{
    return query_uses(q, COMM) || query_uses(q, PID);
}

bool account_query_needs_figures(const struct query *q)
{
    for (size_t field = LIVE; field <= ACCURATE; field++)
        if (query_uses(q, field))
            return true;
    return false;
}

static void offer_count(struct query_probe *probe, uint64_t value)
{
    query_offer_number(probe, value > INT64_MAX ? INT64_MAX : (int64_t)value);
}

static void look_up_text(const struct subject *s, enum field field, struct query_probe *probe)
{
    const struct account_key *key = &s->row->key;
    const uint32_t texts[] = {[CLASS] = key->class, [NAME] = key->name,     [FUNC] = key->function,
                              [PATH] = key->file,   [MODULE] = key->module, [COMM] = key->comm};
    query_offer_text(probe, alloc_texts_get(s->texts, texts[field]));
}

static void look_up_number(const struct account_sum *sum, enum field field, struct query_probe *probe)
{
    static const enum account_counter counters[] = {
        [PEAK] = ACCOUNT_PEAK_BYTES,       [ALLOCATED] = ACCOUNT_ALLOCATED_BYTES,
        [COUNT] = ACCOUNT_ALLOCATED_CALLS, [FREED] = ACCOUNT_RELEASED_BYTES,
        [FREES] = ACCOUNT_RELEASED_CALLS,  [FAILED] = ACCOUNT_FAILED};
    uint64_t calls = sum->of[ACCOUNT_ALLOCATED_CALLS];
    if (field == LIVE)
        query_offer_number(probe, account_live_bytes(sum));
    else if (field == OBJECTS)
        query_offer_number(probe, account_live_objects(sum));
    else if (field != AVERAGE)
        offer_count(probe, sum->of[counters[field]]);
    else if (calls)
        query_offer_number(probe, llrint((double)(int64_t)sum->of[ACCOUNT_ALLOCATED_BYTES] / (double)calls));
}

static void look_up(void *subject, size_t field, struct query_probe *probe)
{
    const struct subject *s = subject;
    const struct account_row *row = s->row;
    switch ((enum field)field) {
    case CLASS:
    case NAME:
    case FUNC:
    case PATH:
    case MODULE:
    case COMM:
        look_up_text(s, (enum field)field, probe);
        break;
    case DIR:
        alloc_offer_directories(alloc_texts_get(s->texts, row->key.file), probe);
        break;
    case LINE:
        if (row->key.line)
            query_offer_number(probe, row->key.line);
        break;
    case PID:
        query_offer_number(probe, row->key.pid);
        break;
    case ACCURATE:
        query_offer_text(probe,
                         row->of[ACCOUNT_BEFORE].inexact || row->of[ACCOUNT_AFTER].inexact ? "no" : "yes");
        break;
    default:
        look_up_number(&row->of[ACCOUNT_AFTER], (enum field)field, probe);
    }
}

bool account_query_needs_names(const struct query *q)
{
    return query_uses(q, FUNC) || query_uses(q, PATH) || query_uses(q, DIR) || query_uses(q, LINE);
}

bool account_row_fits(const struct account_row *row, const struct query *q, const struct alloc_texts *texts)
{
    struct subject s = {row, texts};
    return query_match(q, look_up, &s);
}

void account_rows_keep(struct account_rows *r, const struct query *q, const struct alloc_texts *texts)
{
    size_t kept = 0;
    vec_each (const struct account_row, row, r)
        if (account_row_fits(row, q, texts))
            r->at[kept++] = *row;
    r->len = kept;
}

static void look_up_kernel(void *subject, size_t field, struct query_probe *probe)
{
    look_up(subject, kernel_field_is[field], probe);
}

void account_rows_keep_kernel(struct account_rows *r, const struct query *q, const struct alloc_texts *texts)
{
    size_t kept = 0;
    vec_each (const struct account_row, row, r) {
        struct subject s = {row, texts};
        if (query_match(q, look_up_kernel, &s))
            r->at[kept++] = *row;
    }
    r->len = kept;
}

bool account_query_compile(const struct query *q, const struct account_row *row,
                           const struct alloc_texts *texts, struct buf *out)
{
    static const int ways[] = {
        [CLASS] = CLAUSE_CLASS,        [NAME] = CLAUSE_NAME,        [FUNC] = CLAUSE_FUNC,
        [PATH] = CLAUSE_FILE,          [DIR] = QUERY_NOT_KNOWN,     [LINE] = QUERY_NOT_KNOWN,
        [MODULE] = CLAUSE_MODULE,      [COMM] = QUERY_FIXED,        [PID] = QUERY_FIXED,
        [LIVE] = QUERY_NOT_KNOWN,      [OBJECTS] = QUERY_NOT_KNOWN, [PEAK] = QUERY_NOT_KNOWN,
        [ALLOCATED] = QUERY_NOT_KNOWN, [COUNT] = QUERY_NOT_KNOWN,   [FREED] = QUERY_NOT_KNOWN,
        [FREES] = QUERY_NOT_KNOWN,     [FAILED] = QUERY_NOT_KNOWN,  [AVERAGE] = QUERY_NOT_KNOWN,
        [ACCURATE] = QUERY_NOT_KNOWN,
    };
    struct subject s = {row, texts};
    return query_compile(q, ways, look_up, &s, out);
}
