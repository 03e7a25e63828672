/* SPDX-License-Identifier: BSD-2-Clause */
#include "collect/accounts/allocinfo.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "base/read_file.h"

#define SWITCH         "/proc/sys/vm/mem_profiling"
#define TEXT_BYTES_MAX (1ull << 30)

/* Returns whether profiling is switched on: 1, 0, or -1 if it is not known. */
static int is_switched_on(void)
{
    struct buf text = BUF_INIT;
    int on = file_read(SWITCH, 64, &text) ? -1 : buf_str(&text)[0] == '1';
    buf_release(&text);
    return on;
}

/* Writes the reason why the kernel's own file cannot be read. Returns -errno. */
static int explain(int bad, struct error *e)
{
    if (bad == -EACCES || bad == -EPERM)
        return error_set(e, EACCES,
                         ALLOCINFO_PATH
                         ": only root may read it: sudo allium sys allocinfo, or keep a copy as root "
                         "and name that");
    if (bad != -ENOENT)
        return error_set(e, -bad, ALLOCINFO_PATH ": %s", strerror(-bad));
    if (is_switched_on() >= 0)
        return error_set(e, EOPNOTSUPP,
                         "there is no " ALLOCINFO_PATH
                         ": memory allocation profiling is built in and was switched "
                         "off at boot; boot with sysctl.vm.mem_profiling=1");
    return error_set(e, EOPNOTSUPP,
                     "there is no " ALLOCINFO_PATH
                     ": this kernel is built without CONFIG_MEM_ALLOC_PROFILING, "
                     "which Linux 6.10 and later can have; a saved copy can be named");
}

static int read_text(const char *path, struct buf *text, struct error *e)
{
    bool standard_input = path && !strcmp(path, "-");
    int bad = standard_input ? file_read_open(STDIN_FILENO, TEXT_BYTES_MAX, text)
                             : file_read(path ? path : ALLOCINFO_PATH, TEXT_BYTES_MAX, text);
    if (!bad)
        return 0;
    if (!path || !strcmp(path, ALLOCINFO_PATH))
        return explain(bad, e);
    return error_set(e, -bad, "%s: %s", standard_input ? "standard input" : path,
                     bad == -EFBIG ? "larger than 1 GiB" : strerror(-bad));
}

int allocinfo_read(struct accounts *a, struct alloc_texts *texts, const char *path, struct error *e)
{
    struct buf text = BUF_INIT;
    struct error why = {""};
    *a = (struct accounts){.rows = {0}};
    int bad = read_text(path, &text, e);
    if (!bad && !path && is_switched_on() == 0)
        bad =
            error_set(e, EOPNOTSUPP,
                      "memory allocation profiling is switched off: sysctl vm.mem_profiling=1, or boot with "
                      "sysctl.vm.mem_profiling=1; to read what was counted until then: allium sys "
                      "allocinfo " ALLOCINFO_PATH);
    if (!bad && (bad = allocinfo_parse(a, texts, buf_str(&text), text.len, &why)))
        error_set(e, -bad, "%s: %s",
                  !path               ? ALLOCINFO_PATH
                  : strcmp(path, "-") ? path
                                      : "standard input",
                  why.text);
    buf_release(&text);
    return bad;
}
