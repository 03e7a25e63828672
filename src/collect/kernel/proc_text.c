/* SPDX-License-Identifier: BSD-2-Clause */
#include "collect/kernel/proc_text.h"

#include <string.h>

#include "base/mem.h"

bool proc_text_next(const char **text, char line[static PROC_TEXT_BYTES])
{
    const char *begin = *text;
    if (!*begin)
        return false;
    size_t len = strcspn(begin, "\n"), kept = len < PROC_TEXT_BYTES ? len : PROC_TEXT_BYTES - 1;
    memcpy(line, begin, kept);
    line[kept] = '\0';
    *text = begin + len + (begin[len] == '\n');
    return true;
}

uint64_t proc_text_times(uint64_t a, uint64_t b)
{
    uint64_t product;
    return __builtin_mul_overflow(a, b, &product) ? UINT64_MAX : product;
}

bool proc_text_number(const char **at, uint64_t *value)
{
    const char *p = *at + strspn(*at, " \t");
    uint64_t sum = 0;
    if (*p < '0' || *p > '9')
        return false;
    for (; *p >= '0' && *p <= '9'; p++)
        if (__builtin_mul_overflow(sum, 10u, &sum) || __builtin_add_overflow(sum, (unsigned)(*p - '0'), &sum))
            sum = UINT64_MAX; /* each further digit overflows again */
    *value = sum;
    *at = p;
    return true;
}

bool proc_text_value(const char *line, const char *key, uint64_t *value)
{
    size_t len = strlen(key);
    if (strncmp(line, key, len))
        return false;
    const char *p = line + len;
    p += *p == ':';
    if (*p != ' ' && *p != '\t')
        return false;
    if (!proc_text_number(&p, value))
        return false;
    if (!strcmp(p, " kB"))
        *value = proc_text_times(*value, 1024);
    return true;
}

bool proc_text_word(const char **at, char *out, size_t size)
{
    const char *p = *at + strspn(*at, " \t");
    size_t len = strcspn(p, " \t"), kept = len < size ? len : size - 1;
    memcpy(out, p, kept);
    out[kept] = '\0';
    *at = p + len;
    return len;
}

static bool is_octal(const char *text, size_t len)
{
    return len >= 3 && text[0] >= '0' && text[0] <= '3' && text[1] >= '0' && text[1] <= '7' &&
           text[2] >= '0' && text[2] <= '7';
}

char *proc_text_unescape(const char *word, size_t len)
{
    char *out = mem_alloc(len + 1), *to = out;
    for (const char *end = word + len; word < end;) {
        if (*word == '\\' && is_octal(word + 1, (size_t)(end - word - 1)) && memcmp(word + 1, "000", 3)) {
            *to++ = (char)((word[1] - '0') << 6 | (word[2] - '0') << 3 | (word[3] - '0'));
            word += 4;
        } else {
            *to++ = *word++;
        }
    }
    *to = '\0';
    return out;
}
