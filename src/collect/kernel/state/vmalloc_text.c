/* SPDX-License-Identifier: BSD-2-Clause */
/* Parses vmallocinfo: "0x0-0x5000   20480 kernel_clone+0x94/0x3e0 pages=4 vmalloc N0=4". */
#include <ctype.h>
#include <stdio.h>
#include <string.h>

#include "collect/kernel/proc_text.h"
#include "collect/kernel/state/memory_parse.h"

/* Reads a number after "0x". */
static bool take_hex(const char **at, uint64_t *value)
{
    const char *p = *at;
    uint64_t sum = 0;
    if (strncmp(p, "0x", 2) || !isxdigit((unsigned char)p[2]))
        return false;
    for (p += 2; isxdigit((unsigned char)*p); p++) {
        if (sum >> 60)
            return false;
        sum = sum << 4 | (uint64_t)(isdigit((unsigned char)*p) ? *p - '0' : (*p | 32) - 'a' + 10);
    }
    *value = sum;
    *at = p;
    return true;
}

/* Reads the addresses, or the "?" where the kernel hides them. */
static bool take_place(const char **at, struct memory_area *a)
{
    const char *p = *at;
    if (*p == '?') {
        *at = p + 1;
        return true;
    }
    if (!take_hex(&p, &a->begin) || *p != '-')
        return false;
    p++;
    a->placed = take_hex(&p, &a->end);
    *at = p;
    return a->placed && a->end > a->begin;
}

static bool is_kind(const char *word)
{
    static const char *const kinds[] = {"ioremap", "sparse", "vmalloc", "vmap", "user", "dma-coherent", NULL};
    for (int i = 0; kinds[i]; i++)
        if (!strcmp(word, kinds[i]))
            return true;
    return false;
}

static void take_word(struct memory_area *a, const char *word)
{
    const char *number = word + strlen("pages=");
    uint64_t pages;
    if (!strncmp(word, "pages=", strlen("pages="))) {
        if (proc_text_number(&number, &pages) && pages <= MEMORY_VALUE_MAX) {
            a->pages = pages;
            a->paged = true;
        }
    } else if (is_kind(word) && strcmp(word, "user")) {
        snprintf(a->kind, sizeof(a->kind), "%.*s", (int)sizeof(a->kind) - 1, word);
    }
}

/* An area without a caller says what it is in words: "unpurged vm_area", "vm_map_ram". */
static bool take_area(struct memory_area *a, const char *at)
{
    char word[PROC_TEXT_BYTES];
    if (!take_place(&at, a) || !proc_text_number(&at, &a->bytes) || a->bytes > MEMORY_VALUE_MAX ||
        (a->placed && a->end - a->begin != a->bytes))
        return false;
    at += strspn(at, " \t");
    a->unpurged = !strncmp(at, "unpurged", strlen("unpurged"));
    if (a->unpurged)
        a->caller = mem_strdup("(freed, not yet purged)");
    else if (proc_text_word(&at, word, sizeof(word)) && !is_kind(word) && strncmp(word, "phys=", 5))
        a->caller = mem_strdup(word);
    else
        a->caller = mem_strdup("[unknown]");
    while (proc_text_word(&at, word, sizeof(word)))
        take_word(a, word);
    return true;
}

void vmallocinfo_parse(struct memory_state *s, const char *text)
{
    char line[PROC_TEXT_BYTES];
    s->areas_known = text != NULL;
    while (text && proc_text_next(&text, line)) {
        struct memory_area a = {.placed = false};
        if (take_area(&a, line))
            *vec_push(&s->areas) = a;
        else
            s->bad_lines++;
    }
}
