/* SPDX-License-Identifier: BSD-2-Clause */
/* src/collect/kernel/trace/task_format: names of threads, also of kernels whose event does not say whose name it is. */
#include "test_kernel.h"

#include "collect/kernel/trace/task_format.h"

#define HEAD(id)                                                                                             \
    "name: task_rename\nID: " id "\nformat:\n"                                                               \
    "\tfield:unsigned short common_type;\toffset:0;\tsize:2;\tsigned:0;\n"                                   \
    "\tfield:int common_pid;\toffset:4;\tsize:4;\tsigned:1;\n\n"

static void renamed(const char *format, const uint8_t *record, uint32_t bytes, int32_t tid)
{
    struct task_event event;
    struct error e = {""};
    struct task_format *f = task_format_new();
    assert_int_equal(task_format_add(f, TASK_RENAMED, format, strlen(format), &e), 0);
    assert_int_equal(task_format_decode(f, record, bytes, &event), 1);
    assert_int_equal(event.tid, tid);
    assert_memory_equal(event.text, "new", 4);
    assert_true(task_format_decode(f, record, bytes - 1, &event) < 0);
    task_format_free(f);
}

static void with_and_without_pid(void **state)
{
    (void)state;
    static const uint8_t with[24] = {44, 1, 0, 0, 5, 0, 0, 0, 9, 0, 0, 0, 'n', 'e', 'w'};
    static const uint8_t without[24] = {44, 1, 0, 0, 5, 0, 0, 0, 'n', 'e', 'w'};
    renamed(HEAD("300") "\tfield:pid_t pid;\toffset:8;\tsize:4;\tsigned:1;\n"
                        "\tfield:char newcomm[12];\toffset:12;\tsize:12;\tsigned:0;\n\nprint fmt: \"%d\", "
                        "REC->pid\n",
            with, sizeof(with), 9);
    renamed(HEAD("300") "\tfield:char newcomm[16];\toffset:8;\tsize:16;\tsigned:0;\n\nprint fmt: \"%s\", "
                        "REC->newcomm\n",
            without, sizeof(without), 5);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST("a thread that renames itself, with and without its number", with_and_without_pid),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
