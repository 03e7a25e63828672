/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Fuzz target of src/wire/preload_check. For every file the check returns a known result, and names an allocator if and
 * only if the result is that the program has one. If the result is an allocator or a sanitizer, the file contains the
 * name of glibc's loader. If it is an allocator, the file contains its name.
 */
#include "require.h"

#include "wire/preload_check.h"

#include <stdint.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* A name in the file ends with a NUL, or with the file. */
static bool has_name(const uint8_t *data, size_t size, const char *name)
{
    size_t len = strlen(name);
    return memmem(data, size, name, len + 1) || (size >= len && !memcmp(data + size - len, name, len));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct preload_check *check = calloc(1, sizeof(*check));
    check->strings_max = 1u << 20;
    int fd = memfd_create("program", MFD_CLOEXEC);
    require(fd >= 0 && write(fd, data, size) == (ssize_t)size, "no file");
    enum preload_check_result found = preload_check_judge_file(check, fd);
    require(found <= PRELOAD_CHECK_SANITIZER || found == PRELOAD_CHECK_OWN_MALLOC, "result %d", found);
    require((found == PRELOAD_CHECK_OWN_MALLOC) == (check->allocator != NULL), "an allocator, or none");
    if (!check->line[0] && (found == PRELOAD_CHECK_SANITIZER || found == PRELOAD_CHECK_OWN_MALLOC))
        require(has_name(data, size, "ld-linux-x86-64.so.2"), "glibc's loader is not in the file");
    if (!check->line[0] && check->allocator)
        require(has_name(data, size, check->allocator), "not in the file: %s", check->allocator);
    close(fd);
    free(check);
    return 0;
}
