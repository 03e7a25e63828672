/* SPDX-License-Identifier: BSD-2-Clause */
/* Files that lie about themselves must neither crash nor hang those who ask whether they could carry the agent. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <elf.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "collect/process/program_check.h"
#include "wire/preload_check.h"

#define MUTATIONS 20000

static char program[4 << 20];
static size_t program_bytes;
static struct preload_check check = {.strings_max = 1 << 20};

static int read_program(void **state)
{
    (void)state;
    int fd = open("/proc/self/exe", O_RDONLY);
    ssize_t n = fd < 0 ? -1 : read(fd, program, sizeof(program));
    close(fd);
    program_bytes = n > 0 ? (size_t)n : 0;
    return n < 4096;
}

static enum preload_check_result judge_bytes(const char *bytes, size_t n)
{
    char path[] = "/dev/shm/carrier-XXXXXX";
    int fd = mkstemp(path);
    assert_true(fd >= 0);
    assert_int_equal(write(fd, bytes, n), n);
    enum preload_check_result found = preload_check_judge_file(&check, fd),
                              by_path = preload_check_judge(&check, AT_FDCWD, path);
    close(fd);
    unlink(path);
    assert_int_equal(found, by_path);
    return found;
}

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define OWN_PROGRAM PRELOAD_CHECK_SANITIZER
#else
#define OWN_PROGRAM PRELOAD_CHECK_YES
#endif

static void own_program_can_unless_it_is_sanitized(void **state)
{
    (void)state;
    assert_int_equal(preload_check_judge(&check, AT_FDCWD, "/proc/self/exe"), OWN_PROGRAM);
    assert_int_equal(judge_bytes(program, program_bytes), OWN_PROGRAM);
}

static void what_is_no_program_is_left_to_the_kernel(void **state)
{
    (void)state;
    char fifo[] = "/dev/shm/carrier-fifo-XXXXXX";
    assert_true(mkdtemp(fifo) && !rmdir(fifo) && !mkfifo(fifo, 0600));
    assert_int_equal(preload_check_judge(&check, AT_FDCWD, fifo),
                     PRELOAD_CHECK_YES); /* and does not wait for a writer */
    unlink(fifo);
    assert_int_equal(preload_check_judge(&check, AT_FDCWD, "/nowhere/at/all"), PRELOAD_CHECK_YES);
    assert_int_equal(preload_check_judge(&check, AT_FDCWD, "/"), PRELOAD_CHECK_YES);
    assert_int_equal(preload_check_judge(&check, AT_FDCWD, "/dev/null"), PRELOAD_CHECK_YES);
    assert_int_equal(judge_bytes("", 0), PRELOAD_CHECK_YES);
    assert_int_equal(judge_bytes("#!", 2), PRELOAD_CHECK_YES);
    assert_int_equal(judge_bytes("#! \n", 4), PRELOAD_CHECK_YES);
    assert_int_equal(judge_bytes("echo hello\n", 11), PRELOAD_CHECK_YES);
}

static void scripts_that_interpret_themselves_end(void **state)
{
    (void)state;
    char path[] = "/dev/shm/carrier-XXXXXX", line[64];
    int fd = mkstemp(path), n = snprintf(line, sizeof(line), "#! %s\n", path);
    assert_int_equal(write(fd, line, (size_t)n), n);
    assert_int_equal(preload_check_judge(&check, AT_FDCWD, path), PRELOAD_CHECK_YES);
    close(fd);
    unlink(path);
}

static void headers_tell(void **state)
{
    (void)state;
    Elf64_Ehdr h;
    memcpy(&h, program, sizeof(h));
    program[EI_CLASS] = ELFCLASS32;
    assert_int_equal(judge_bytes(program, program_bytes), PRELOAD_CHECK_FOREIGN);
    program[EI_CLASS] = ELFCLASS64;
    ((Elf64_Ehdr *)program)->e_machine = EM_AARCH64;
    assert_int_equal(judge_bytes(program, program_bytes), PRELOAD_CHECK_FOREIGN);
    ((Elf64_Ehdr *)program)->e_machine = h.e_machine;
    ((Elf64_Ehdr *)program)->e_phnum = 0;
    assert_int_equal(judge_bytes(program, program_bytes), PRELOAD_CHECK_STATIC);
    ((Elf64_Ehdr *)program)->e_phnum = h.e_phnum;
}

static void hostile_files_have_an_answer(void **state)
{
    (void)state;
    uint64_t random = 20261122;
    Elf64_Ehdr h;
    memcpy(&h, program, sizeof(h));
    unsigned answers[PRELOAD_CHECK_KINDS] = {0};
    char *bytes = malloc(program_bytes);
    char path[] = "/dev/shm/carrier-XXXXXX";
    int fd = mkstemp(path);
    unlink(path);
    memcpy(bytes, program, program_bytes);
    assert_int_equal(write(fd, bytes, program_bytes), program_bytes);
    for (int i = 0; i < MUTATIONS; i++) {
        random = random * 6364136223846793005u + 1442695040888963407u;
        /* Of the headers, of the segments, anywhere: a word, or the length. */
        size_t within = i % 3 == 0   ? sizeof(h)
                        : i % 3 == 1 ? sizeof(h) + h.e_phnum * sizeof(Elf64_Phdr)
                                     : program_bytes;
        size_t at = (random >> 33) % (within - 8);
        uint64_t word = i % 2 ? random : 1ull << (random >> 58);
        assert_int_equal(pwrite(fd, &word, 1 + random % 8, (off_t)at), 1 + random % 8);
        if (i % 7 == 0)
            assert_int_equal(ftruncate(fd, (off_t)((random >> 20) % program_bytes)), 0);
        enum preload_check_result found = preload_check_judge_file(&check, fd);
        assert_true(found < PRELOAD_CHECK_KINDS);
        answers[found]++;
        if (i % 5 == 4) {
            assert_int_equal(pwrite(fd, bytes, program_bytes, 0), program_bytes);
            assert_int_equal(ftruncate(fd, (off_t)program_bytes), 0);
        }
    }
    close(fd);
    free(bytes);
    assert_true(answers[PRELOAD_CHECK_YES] && answers[PRELOAD_CHECK_FOREIGN] &&
                answers[PRELOAD_CHECK_STATIC]);
}

static void each_reason_has_words(void **state)
{
    (void)state;
    for (int a = 0; a < PRELOAD_CHECK_KINDS; a++)
        for (int b = 0; b < a; b++)
            assert_string_not_equal(program_check_reason((enum preload_check_result)a),
                                    program_check_reason((enum preload_check_result)b));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(own_program_can_unless_it_is_sanitized),
        cmocka_unit_test(what_is_no_program_is_left_to_the_kernel),
        cmocka_unit_test(scripts_that_interpret_themselves_end),
        cmocka_unit_test(headers_tell),
        cmocka_unit_test(hostile_files_have_an_answer),
        cmocka_unit_test(each_reason_has_words),
    };
    return cmocka_run_group_tests(tests, read_program, NULL);
}
