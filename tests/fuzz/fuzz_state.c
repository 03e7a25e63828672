/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Fuzz target of run/suppressions.c, the state of allium watch: what another, slower reader takes for one is read, with
 * just its samples, and is the same when it was written and read again; all else is refused in one line with its
 * number, and not written over.
 */
#include "require.h"

#include "run/suppressions.h"

#include "base/mem.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define HEAD       "allium-watch-state 1\n"
#define LINE_BYTES 34

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

struct line {
    uint64_t image, serial;
};

/* sscanf takes more than is allowed; what it reads is printed again, and must be the same. */
static bool line_is(const char *text, struct line *l)
{
    char copy[LINE_BYTES + 1] = "", again[LINE_BYTES + 1];
    unsigned long long image, serial;
    memcpy(copy, text, LINE_BYTES);
    if (sscanf(copy, "%16llx %16llx", &image, &serial) != 2)
        return false;
    snprintf(again, sizeof(again), "%016llx %016llx\n", image, serial);
    *l = (struct line){image, serial};
    return !memcmp(text, again, LINE_BYTES);
}

/* How many lines, all of them well formed and each image's together; -1: it is no state. */
static long lines_of(const char *text, size_t size, struct line *lines)
{
    size_t head = strlen(HEAD), n = size < head ? 0 : (size - head) / LINE_BYTES;
    if (size < head || memcmp(text, HEAD, head) || (size - head) % LINE_BYTES)
        return -1;
    for (size_t i = 0; i < n; i++) {
        if (!line_is(text + head + i * LINE_BYTES, &lines[i]))
            return -1;
        for (size_t k = 0; k + 1 < i; k++)
            if (lines[k].image == lines[i].image && lines[i - 1].image != lines[i].image)
                return -1;
    }
    return (long)n;
}

static void check_same(const struct suppressions *d, const struct line *lines, long n)
{
    for (long i = 0; i < n; i++) {
        uint64_t beside = lines[i].serial + 1;
        bool listed = false;
        require(suppressions_has(d, lines[i].image, lines[i].serial), "a sample is missing");
        for (long k = 0; k < n; k++)
            listed |= lines[k].image == lines[i].image && lines[k].serial == beside;
        require(suppressions_has(d, lines[i].image, beside) == listed, "a sample was made up");
    }
}

static bool keep_odd(void *arg, uint64_t image_id)
{
    (void)arg;
    return image_id & 1;
}

/* What a look does: of the first image only one sample still lives, and only images of odd numbers. */
static void check_settling(struct suppressions *d, const struct line *lines, long n)
{
    suppressions_retain(d, lines[0].image, &lines[0].serial, 1);
    suppressions_forget(d, keep_odd, NULL);
    for (long i = 0; i < n; i++) {
        bool kept =
            lines[i].image & 1 && (lines[i].image != lines[0].image || lines[i].serial == lines[0].serial);
        require(suppressions_has(d, lines[i].image, lines[i].serial) == kept, "forgotten, or not forgotten");
    }
    suppressions_retain(d, lines[0].image, NULL, 0);
    require(!suppressions_has_image(d, lines[0].image), "an image of which nothing lives");
}

static void check_again(struct suppressions *d, const struct line *lines, long n)
{
    char path[64];
    struct error e = {""};
    struct suppressions *again = suppressions_new();
    snprintf(path, sizeof(path), "/dev/shm/allium-fuzz-state.%d", (int)getpid());
    require(!suppressions_save(d, path, &e) && !suppressions_load(again, path, &e), "%s", e.text);
    unlink(path);
    require(!suppressions_changed(again), "changed by reading it");
    check_same(again, lines, n);
    require(suppressions_save(again, "/dev/null/state", &e) && strstr(e.text, "/dev/null/state"),
            "what cannot be written is not told");
    if (n)
        check_settling(again, lines, n);
    suppressions_free(again);
}

static void check_refusal(const char *path, int bad, const struct error *e)
{
    require(bad == -EINVAL, "another code than EINVAL");
    require(!strncmp(e->text, path, strlen(path)) && e->text[strlen(path)] == ':', "no name of the file");
    require(strtol(e->text + strlen(path) + 1, NULL, 10) >= 1, "no number of the line");
    require(!strpbrk(e->text, "\t\n\r\033"), "more than one line");
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char path[64];
    struct error e = {""};
    struct suppressions *d = suppressions_new();
    struct line *lines = mem_array(size / LINE_BYTES + 1, sizeof(*lines));
    int fd = memfd_create("state", MFD_CLOEXEC);
    require(fd >= 0 && write(fd, data, size) == (ssize_t)size, "no file to read");
    snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
    long n = lines_of((const char *)data, size, lines);
    int bad = suppressions_load(d, path, &e);
    require((bad == 0) == (n >= 0), "%s", bad ? e.text : "taken for a state");
    if (bad)
        check_refusal(path, bad, &e);
    else
        check_again(d, lines, n);
    close(fd);
    free(lines);
    suppressions_free(d);
    return 0;
}
