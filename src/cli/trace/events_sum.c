/* SPDX-License-Identifier: BSD-2-Clause */
#include "cli/trace/events_sum.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "cli/trace/trace_sum.h"

#define TEXT_BYTES 4096u

struct events_sum {
    struct sum_spec spec;
    struct event_sums *sums;
    bool histogram;
    char texts[SUM_SPEC_BY_MAX][TEXT_BYTES];
};

int events_sum_new(struct events_sum **out, const struct command *command, const struct arguments *a)
{
    struct error e = {""};
    struct sum_spec spec;
    const char *text = command_value(command, a, "sum");
    const bool histogram = command_value(command, a, "histogram") != NULL;
    *out = NULL;
    if (!text)
        return histogram ? command_misuse(command, "--histogram needs --sum: --sum malloc.size,by=site") : -1;
    if (command_value(command, a, "by"))
        return command_misuse(command, "--sum and --by exclude each other: use --sum %s,by=FIELD", text);
    if (sum_spec_parse(&spec, text, &e))
        return command_misuse(command, "--sum: %s", e.text);
    struct events_sum *s = mem_alloc(sizeof(*s));
    s->spec = spec;
    s->sums = event_sums_new(&s->spec);
    s->histogram = histogram;
    *out = s;
    return -1;
}

void events_sum_free(struct events_sum *s)
{
    if (!s)
        return;
    event_sums_free(s->sums);
    sum_spec_release(&s->spec);
    free(s);
}

static struct event_sums_value name_of_site(uint64_t site, const struct event_place *p, char text[TEXT_BYTES])
{
    struct buf b = BUF_INIT;
    event_sums_add_site(&b, p->function, p->file, p->line, p->module, p->address);
    if (!b.len)
        buf_printf(&b, "0x%" PRIx64, site);
    const size_t n = b.len < TEXT_BYTES ? b.len : TEXT_BYTES - 1;
    memcpy(text, b.data, n);
    text[n] = '\0';
    buf_release(&b);
    return (struct event_sums_value){.kind = EVENT_SUMS_TEXT, .text = text};
}

void events_sum_add(struct events_sum *s, const struct trace_event *e, uint64_t site,
                    const struct event_place *place)
{
    struct event_sums_key key = {.others = false};
    struct sum_cells cells = {0};
    uint64_t bits;
    bool bytes;
    if (!sum_spec_has(&s->spec, trace_event_name(e->class)))
        return;
    for (unsigned i = 0; i < s->spec.n_by; i++)
        key.by[i] = site && !strcmp(s->spec.by[i], "site")
                        ? name_of_site(site, place, s->texts[i])
                        : event_sums_value_of(s->spec.by[i], e, s->texts[i], TEXT_BYTES);
    const enum sum_type type = event_sums_number_of(&s->spec, e, &bits, &bytes);
    sum_cells_add(&cells, type, bits);
    event_sums_add(s->sums, &key, &cells, type, bytes);
}

void events_sum_write(struct events_sum *s, uint64_t lost, uint32_t top, bool json, struct sink *out,
                      const struct text_style *style)
{
    event_sums_note_lost(s->sums, lost);
    const struct trace_sum_view view = {.top = top, .json = json, .histogram = s->histogram};
    trace_sum_write(&view, s->sums, out, style);
}
