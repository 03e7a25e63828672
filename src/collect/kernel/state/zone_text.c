/* SPDX-License-Identifier: BSD-2-Clause */
/* Parses buddyinfo, pagetypeinfo and zoneinfo: what is free in the zones, in which blocks, and of which type. */
#include <string.h>

#include "collect/kernel/proc_text.h"
#include "collect/kernel/state/memory_parse.h"

/* Reads "Node 0, zone   Normal" and moves behind it. Returns false for another line. */
static bool take_zone(const char **at, unsigned *node, char name[static MEMORY_NAME_BYTES])
{
    uint64_t number;
    const char *p = *at;
    if (strncmp(p, "Node ", 5))
        return false;
    p += 5;
    if (!proc_text_number(&p, &number) || number > UINT16_MAX || strncmp(p, ", zone", 6))
        return false;
    p += 6;
    if (!proc_text_word(&p, name, MEMORY_NAME_BYTES))
        return false;
    name[strcspn(name, ",")] = '\0'; /* pagetypeinfo: "Normal, type" */
    *node = (unsigned)number;
    *at = p;
    return *name;
}

/* Reads the counts of free blocks by order. Returns their number; 0: the line is invalid. */
static unsigned take_blocks(const char *at, uint64_t blocks[static MEMORY_ORDERS_MAX], bool *capped)
{
    unsigned n = 0;
    for (;;) {
        at += strspn(at, " \t");
        if (!*at)
            return n;
        *capped = *capped || *at == '>'; /* ">100000": the kernel stopped counting */
        at += *at == '>';
        if (n == MEMORY_ORDERS_MAX || !proc_text_number(&at, &blocks[n]) || (*at && *at != ' ') ||
            blocks[n] > MEMORY_VALUE_MAX >> n)
            return 0;
        n++;
    }
}

void buddyinfo_parse(struct memory_state *s, const char *text)
{
    char line[PROC_TEXT_BYTES], name[MEMORY_NAME_BYTES];
    while (text && proc_text_next(&text, line)) {
        uint64_t blocks[MEMORY_ORDERS_MAX] = {0};
        unsigned node, n = 0;
        bool capped = false;
        const char *at = line;
        struct memory_zone *z = NULL;
        if (take_zone(&at, &node, name) && (n = take_blocks(at, blocks, &capped)))
            z = memory_state_zone(s, node, name);
        if (!z) {
            s->bad_lines++;
            continue;
        }
        z->orders = n;
        memcpy(z->blocks, blocks, sizeof(blocks));
    }
}

/* ---- pagetypeinfo ---- */

static unsigned find_type(struct memory_state *s, const char *name)
{
    for (unsigned i = 0; i < s->n_types; i++)
        if (!strcmp(s->types[i], name))
            return i;
    if (s->n_types == MEMORY_TYPES_MAX)
        return MEMORY_TYPES_MAX;
    memcpy(s->types[s->n_types], name, MEMORY_NAME_BYTES);
    return s->n_types++;
}

/* "Node 0, zone Normal, type Movable 1 1 4 ...": free blocks. Returns false if the line is invalid. */
static bool take_free_of_type(struct memory_state *s, unsigned node, const char *zone, const char *at)
{
    char type[MEMORY_NAME_BYTES] = "";
    uint64_t blocks[MEMORY_ORDERS_MAX] = {0};
    bool capped = false;
    if (!proc_text_word(&at, type, sizeof(type)) || !take_blocks(at, blocks, &capped))
        return false;
    const unsigned i = find_type(s, type);
    if (i == MEMORY_TYPES_MAX)
        return false;
    struct memory_zone *z = memory_state_zone(s, node, zone);
    if (!z)
        return false;
    z->typed = true;
    z->type_capped = z->type_capped || capped;
    memcpy(z->type_blocks[i], blocks, sizeof(blocks));
    return true;
}

/* "Node 0, zone Normal 178 1275 83 0 0": page blocks by type, in the order of the heading. */
static bool take_page_blocks(struct memory_state *s, unsigned node, const char *zone, const char *at,
                             bool mixed)
{
    uint64_t values[MEMORY_ORDERS_MAX] = {0};
    bool capped = false;
    const unsigned n = take_blocks(at, values, &capped);
    if (!n || n > MEMORY_TYPES_MAX)
        return false;
    struct memory_zone *z = memory_state_zone(s, node, zone);
    if (!z)
        return false;
    z->mixed_known = z->mixed_known || mixed;
    memcpy(mixed ? z->mixed_blocks : z->page_blocks, values, sizeof(z->page_blocks));
    return true;
}

/* The heading of page blocks names the types in their order: "Number of blocks type     Unmovable      Movable ..." */
static void take_type_names(struct memory_state *s, const char *at)
{
    char type[MEMORY_NAME_BYTES] = "";
    while (proc_text_word(&at, type, sizeof(type))) {
        find_type(s, type);
        memset(type, 0, sizeof(type));
    }
}

static const char *behind(const char *line, const char *words)
{
    return strncmp(line, words, strlen(words)) ? NULL : line + strlen(words);
}

void pagetypeinfo_parse(struct memory_state *s, const char *text)
{
    char line[PROC_TEXT_BYTES], zone[MEMORY_NAME_BYTES];
    bool mixed = false;
    while (text && proc_text_next(&text, line)) {
        const char *at = line, *more;
        unsigned node;
        uint64_t order;
        if ((more = behind(line, "Page block order:"))) {
            if (proc_text_number(&more, &order) && order < MEMORY_ORDERS_MAX)
                s->block_order = (unsigned)order;
        } else if ((more = behind(line, "Number of blocks type"))) {
            take_type_names(s, more);
        } else if (behind(line, "Number of mixed blocks")) {
            mixed = true;
        } else if (take_zone(&at, &node, zone)) {
            at += strspn(at, " ");
            more = behind(at, "type ");
            if (more ? !take_free_of_type(s, node, zone, more) : !take_page_blocks(s, node, zone, at, mixed))
                s->bad_lines++;
        }
    }
}

/* ---- zoneinfo ---- */

struct zone_lines {
    struct memory_zone zone;
    bool open;
    uint64_t cpus, threshold_pages;
};

static void close_zone(struct memory_state *s, struct zone_lines *l)
{
    if (l->open && l->zone.at[ZONE_MANAGED]) {
        struct memory_zone *z = memory_state_zone(s, l->zone.node, l->zone.name);
        if (z) {
            z->known = l->zone.known;
            memcpy(z->at, l->zone.at, sizeof(z->at));
        }
        s->cpus = l->cpus > s->cpus && l->cpus <= UINT16_MAX ? (unsigned)l->cpus : s->cpus;
        if (l->threshold_pages > s->counter_slack_pages && l->threshold_pages <= MEMORY_VALUE_MAX)
            s->counter_slack_pages = l->threshold_pages;
    }
    *l = (struct zone_lines){.open = false};
}

static void take_mark(struct zone_lines *l, const char *at)
{
    static const struct {
        const char *name;
        enum memory_zone_value value;
    } marks[] = {
        {"pages free", ZONE_FREE}, {"min", ZONE_MIN},         {"low", ZONE_LOW},
        {"high", ZONE_HIGH},       {"present", ZONE_PRESENT}, {"managed", ZONE_MANAGED},
    };
    uint64_t value;
    for (size_t i = 0; i < sizeof(marks) / sizeof(*marks); i++)
        if (!memory_zone_has(&l->zone, marks[i].value) && proc_text_value(at, marks[i].name, &value))
            memory_zone_set(&l->zone, marks[i].value, value);
    if (proc_text_value(at, "count", &value) && value <= MEMORY_VALUE_MAX)
        memory_zone_set(&l->zone, ZONE_CPU_LISTS, l->zone.at[ZONE_CPU_LISTS] + value);
    /* A CPU keeps changes of a counter back until they are this many. */
    if (proc_text_value(at, "vm stats threshold", &value) && value <= MEMORY_VALUE_MAX)
        l->threshold_pages += value;
    l->cpus += proc_text_value(at, "cpu", &value);
}

void zone_marks_parse(struct memory_state *s, const char *text)
{
    char line[PROC_TEXT_BYTES];
    struct zone_lines l = {.open = false};
    while (text && proc_text_next(&text, line)) {
        const char *at = line;
        struct memory_zone next = {.node = 0};
        if (take_zone(&at, &next.node, next.name)) {
            close_zone(s, &l);
            l = (struct zone_lines){.zone = next, .open = true};
        } else if (l.open) {
            take_mark(&l, line + strspn(line, " \t"));
        }
    }
    close_zone(s, &l);
}
