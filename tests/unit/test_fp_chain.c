/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * src/collect/chain and user_stack: how far walks by rbp are right, against the return addresses that each function of
 * the program told itself; and names for them, after it has ended. Environment: CHAINED: the program.
 */
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <spawn.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "chained.h"
#include "collect/unwind/user_stack.h"

#define RUNS 300

extern char **environ;

static const char *const names[] = {"with_rbp", "without_rbp", "library_with_rbp", "library_without_rbp",
                                    "leaf",     "main"};

static bool keeps_rbp(uint32_t who)
{
    return who != WITHOUT_RBP && who != LIBRARY_WITHOUT_RBP && who != BEYOND;
}

/* Runs the program to its end. */
static size_t run(struct chained *out, size_t max)
{
    char path[] = "/tmp/allium-chained-XXXXXX", *argv[] = {getenv("CHAINED"), NULL};
    posix_spawn_file_actions_t actions;
    int fd = mkstemp(path), status;
    pid_t pid;
    assert_true(fd >= 0);
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_adddup2(&actions, fd, 1);
    assert_int_equal(posix_spawn(&pid, argv[0], &actions, NULL, argv, environ), 0);
    posix_spawn_file_actions_destroy(&actions);
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_int_equal(status, 0);
    unlink(path);
    ssize_t bytes = pread(fd, out, max * sizeof(*out), 0);
    close(fd);
    return bytes > 0 ? (size_t)bytes / sizeof(*out) : 0;
}

static void is_named(struct symbols *symbols, const struct user_frame *frame, uint32_t who)
{
    struct symbol_frames found;
    assert_int_equal(frame->kind, USER_FRAME_FILE);
    assert_int_equal(symbols_resolve(symbols, &frame->module, &frame->address, 1, &found), 0);
    if (who < BEYOND)
        assert_string_equal(found.at[found.len - 1].function, names[who]);
}

static void chains(void **state)
{
    (void)state;
    static struct chained stacks[RUNS];
    struct sideband *band = NULL;
    struct error why;
    int bad = sideband_open(&(struct sideband_options){.ring_pages = 1024}, &band, &why);
    if (bad == -EACCES || bad == -EPERM || bad == -ENOSYS)
        skip();
    assert_int_equal(bad, 0);
    struct address_spaces *spaces =
        address_spaces_new(band, &(struct address_spaces_options){.back_ns = UINT64_MAX});
    struct user_stacks *u = user_stacks_new(spaces);
    struct symbols *symbols = symbols_new(NULL);
    unsigned wrong = 0, whole = 0;
    assert_int_equal(run(stacks, RUNS), RUNS);
    address_spaces_drain(spaces);
    for (int i = 0; i < RUNS; i++) {
        const struct chained *c = &stacks[i];
        struct user_frame frames[CHAINED_MAX];
        enum fp_chain_end end;
        size_t right = 1;
        while (right < c->n_walked && keeps_rbp(c->who[right - 1]))
            right++;
        size_t trusted = user_stacks_find(u, (pid_t)c->pid, c->time_ns, c->walked, c->n_walked, frames, &end);
        assert_int_equal(trusted, right);
        assert_int_equal(end, right < c->n_walked ? FP_CHAIN_NO_FRAME_POINTER : FP_CHAIN_WHOLE);
        for (size_t k = 0; k < c->n_walked; k++)
            assert_int_equal(frames[k].trusted, k < trusted);
        for (size_t k = 0; k < trusted; k++) {
            assert_int_equal(c->walked[k], c->truth[k]);
            is_named(symbols, &frames[k], c->who[k]);
        }
        whole += right == c->n_truth;
        wrong += right < c->n_walked && right < c->n_truth && c->walked[right] != c->truth[right];
    }
    /* The walk does go wrong where it is not trusted, and there are stacks of which all is. */
    assert_true(wrong > RUNS / 10);
    assert_true(whole > RUNS / 10);
    symbols_free(symbols);
    user_stacks_free(u);
    address_spaces_free(spaces);
    sideband_close(band);
}

/* ---- files that nobody would build ---- */

static void spoil(const char *from, const char *to, unsigned *seed)
{
    static unsigned char bytes[1 << 20];
    int in = open(from, O_RDONLY), out = open(to, O_WRONLY | O_CREAT | O_TRUNC, 0700);
    ssize_t n = read(in, bytes, sizeof(bytes));
    assert_true(n > 4096);
    size_t first = rand_r(seed) % 4 ? 4096 : 64; /* mostly behind the program headers */
    for (int i = 0; i < n / 50; i++)
        bytes[first + (size_t)rand_r(seed) % ((size_t)n - first)] = (unsigned char)rand_r(seed);
    size_t len = rand_r(seed) % 5 ? (size_t)n : (size_t)rand_r(seed) % (size_t)n;
    assert_int_equal(write(out, bytes, len), len);
    close(in);
    close(out);
}

static void spoilt(void **state)
{
    (void)state;
    char path[] = "/tmp/allium-spoilt-XXXXXX";
    unsigned seed = 3, answers[3] = {0}, opened = 0;
    close(mkstemp(path));
    for (int i = 0; i < 200; i++) {
        spoil(getenv("CHAINED"), path, &seed);
        struct dso *f = dso_open("", path, 0);
        for (int k = 0; f && k < 500; k++) {
            uint64_t address = (uint64_t)rand_r(&seed) % 16384;
            dso_address(f, address, &address);
            answers[dso_step(f, address)]++;
        }
        opened += f != NULL;
        dso_free(f);
    }
    unlink(path);
    assert_true(opened > 20);
    assert_true(answers[DSO_NO_RULES] > 100);
}

static void another(void **state)
{
    (void)state;
    struct stat st;
    const char *path = getenv("CHAINED");
    assert_int_equal(stat(path, &st), 0);
    assert_null(dso_open("", path, st.st_ino + 1));
    assert_null(dso_open("", "/dev/null", 0));
    assert_null(dso_open("", "/etc/passwd", 0));
    struct dso *f = dso_open("", path, st.st_ino);
    assert_non_null(f);
    dso_free(f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        {"a walk by rbp is trusted as far as it is right, and named after the end", chains, NULL, NULL, NULL},
        {"a file whose bytes make no sense gives no sense, and no harm", spoilt, NULL, NULL, NULL},
        {"another file of the same name is not taken", another, NULL, NULL, NULL},
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
