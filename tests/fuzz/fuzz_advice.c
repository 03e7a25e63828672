/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Fuzz target of the texts of a kernel that advice is computed from, and of advice: whatever they say, each measure has
 * its texts and bounds in order, and the total is the sum of those that are counted. The texts follow one another, each
 * ended by a NUL, in the order of `paths`; then a configuration, and Makefiles.
 */
#include "require.h"

#include "collect/kernel/state/advice_read.h"
#include "collect/kernel/state/boot_log.h"
#include "collect/kernel/state/kernel_makefiles.h"

#include <stdint.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static const char *const paths[] = {
    KERNEL_STATE_SLAB,   KERNEL_STATE_BOOT_LOG, KERNEL_STATE_MODULES, KERNEL_STATE_DENTRIES,
    KERNEL_STATE_INODES, KERNEL_STATE_CMDLINE,  KERNEL_STATE_RELEASE, "/proc/meminfo",
    "/proc/slabinfo",    "/proc/zoneinfo",
};
#define PATHS (sizeof(paths) / sizeof(*paths))

struct texts {
    char *of[PATHS];
};

static const char *text_of(void *arg, const char *path)
{
    const struct texts *t = arg;
    for (size_t i = 0; i < PATHS; i++)
        if (t->of[i] && !strcmp(paths[i], path))
            return t->of[i];
    return NULL;
}

/* The next text, in memory of its own, so that the sanitizer sees its end. NULL: there is none. */
static char *take(const uint8_t **at, const uint8_t *end)
{
    if (*at >= end)
        return NULL;
    const size_t len = strnlen((const char *)*at, (size_t)(end - *at));
    char *text = mem_strndup((const char *)*at, len);
    *at += len + 1;
    return text;
}

/* Some calls, of files that the Makefiles may bring, and in modules. */
static void add_calls(struct advice_input *in)
{
    static const char *const calls[][2] = {
        {"a+0x1", "fs/a/x.c"}, {"b+0x1 [idle]", "fs/b.c"}, {"c+0x1", NULL}, {"d+0x1 [", "d.c"}};
    for (size_t i = 0; i < 4; i++) {
        const size_t call = advice_take_call(in, calls[i][0], calls[i][1]);
        in->calls.at[call].live_bytes = 10000;
        *vec_push(&in->sizes) = (struct advice_size){call, 130, 256, 100, false};
    }
    in->has_calls = in->has_sizes = true;
}

static void check(const struct advice *a)
{
    int64_t low = 0;
    uint64_t high = 0;
    for (size_t i = 0; i < a->measures.len; i++) {
        const struct advice_measure *m = &a->measures.at[i];
        require(m->change && m->formula && m->cost && m->rows.len, "a measure without a text");
        require(m->low_bytes < 0 || (uint64_t)m->low_bytes <= m->high_bytes, "bounds in the wrong order");
        require(m->instead_of == ADVICE_NONE || (m->instead_of < i && !m->counted),
                "excluded by a smaller one");
        low += m->counted ? m->low_bytes : 0;
        high += m->counted ? m->high_bytes : 0;
    }
    require(low == a->low_bytes && high == a->high_bytes, "a total that is no sum");
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const uint8_t *at = data, *end = data + size;
    struct advice_input in = {.lossy = size & 1};
    struct kernel_config config = {.log_buf_shift = 0};
    struct texts texts = {{NULL}};
    struct advice a;
    struct buf log = BUF_INIT;
    for (size_t i = 0; i < PATHS; i++)
        texts.of[i] = take(&at, end);
    if (texts.of[1]) { /* as it is read, and as a recording may have it */
        boot_log_add(&log, texts.of[1]);
        boot_log_parse(&in, buf_str(&log));
    }
    add_calls(&in);
    advice_read(&in, text_of, &texts, 4096);
    char *text = take(&at, end);
    kernel_config_parse(&config, text ? text : "");
    free(text);
    for (int i = 0; (text = take(&at, end)); i++) {
        makefile_parse(&in, &config, i & 1 ? "fs/" : "", text);
        free(text);
    }
    advice_find(&a, &in);
    check(&a);
    advice_release(&a);
    advice_input_release(&in);
    kernel_config_release(&config);
    buf_release(&log);
    for (size_t i = 0; i < PATHS; i++)
        free(texts.of[i]);
    return 0;
}
