/* SPDX-License-Identifier: BSD-2-Clause */
#include "cli/sys/import/import_names.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/utsname.h>
#include <time.h>

#include "base/read_file.h"
#include "base/sigsafe/clock_ns.h"
#include "cli/sys/sys_source.h"
#include "collect/ledger/profile_names.h"

#define KALLSYMS_BYTES_MAX (256u << 20)
#define MODULES_BYTES_MAX  (1u << 20)

/* "ffffffff81000000 T _text" */
static uint64_t address_of_text(const char *kallsyms)
{
    static const char name[] = " _text\n";
    const char *at = strstr(kallsyms, name);
    while (at && at > kallsyms && at[-1] != '\n')
        at--;
    return at ? strtoull(at, NULL, 16) : 0;
}

static int open_symbols(struct import_names *n, const char *file, struct error *e)
{
    int bad = file_read(file, KALLSYMS_BYTES_MAX, &n->text);
    if (bad)
        return error_set(e, -bad, "--kallsyms: %s: %s", file, strerror(-bad));
    kallsyms_parse(&n->symbols, buf_str(&n->text), "");
    if (!n->symbols.all.len)
        return error_set(e, ENODATA, "--kallsyms: %s has no %s", file,
                         n->symbols.hidden ? "addresses: copy /proc/kallsyms as root" : "symbols");
    return 0;
}

static int open_source(struct import_names *n, const char *file, struct error *e)
{
    struct error why = {""};
    int bad = vmlinux_open_any(&n->vmlinux, file, &why);
    if (bad)
        return error_set(e, -bad, "--vmlinux: %s", why.text);
    char *cache = profile_names_cache_dir();
    n->resolved = symbols_new(cache);
    n->source = kernel_source_new(&n->vmlinux, NULL, n->resolved);
    free(cache);
    return 0;
}

int import_names_open(struct import_names *n, const struct import_names_given *given, struct error *e)
{
    *n = (struct import_names){.file = given->kallsyms, .source_file = given->source};
    int bad = given->kallsyms ? open_symbols(n, given->kallsyms, e) : 0;
    if (!bad && given->vmlinux)
        bad = open_source(n, given->vmlinux, e);
    return bad ? bad : sys_source_open(&n->finder, given->source, e);
}

void import_names_use_source(struct import_names *n, const char *config)
{
    if (!n->finder && !n->source)
        n->finder = sys_source_seek(n->release);
    if (!n->finder)
        return;
    sys_source_set_kernel(n->finder, n->release, config, NULL, true);
    source_finder_use_symbols(n->finder, import_names_symbols(n));
    if (!n->source)
        n->source = kernel_source_new(NULL, NULL, NULL);
    kernel_source_use_finder(n->source, n->finder);
}

bool import_names_differ(const struct import_names *n)
{
    return n->source_file && n->source && !source_finder_fits(n->finder, n->release);
}

void import_names_release(struct import_names *n)
{
    kernel_source_free(n->source);
    source_finder_free(n->finder);
    symbols_free(n->resolved);
    vmlinux_release(&n->vmlinux);
    kallsyms_release(&n->symbols);
    buf_release(&n->text);
}

int import_names_compare(struct import_names *n, const struct kernel_identity *kernel, struct error *e)
{
    struct error why = {""};
    snprintf(n->release, sizeof(n->release), "%s", kernel->release);
    int bad = n->vmlinux.path ? vmlinux_check(&n->vmlinux, kernel, &why) : 0;
    return bad ? error_set(e, -bad, "--vmlinux: %s", why.text) : 0;
}

void import_names_take(struct import_names *n, const struct buf *kallsyms)
{
    if (!n->file && kallsyms->len)
        kallsyms_parse(&n->symbols, buf_str(kallsyms), "");
}

/* Whether the running kernel is the one that was recorded, in this boot: _text is elsewhere after most boots. */
static bool is_own(const struct perf_data_about *about, uint64_t written_ns)
{
    struct utsname own;
    return about->text_address && !uname(&own) && !strcmp(own.nodename, about->hostname) &&
           !strcmp(own.release, about->release) &&
           written_ns > clock_ns(CLOCK_REALTIME) - clock_ns(CLOCK_BOOTTIME);
}

static void take_own(struct import_names *n, const struct perf_data_about *about)
{
    struct buf modules = BUF_INIT;
    if (file_read("/proc/kallsyms", KALLSYMS_BYTES_MAX, &n->text) ||
        address_of_text(buf_str(&n->text)) != about->text_address)
        return;
    file_read("/proc/modules", MODULES_BYTES_MAX, &modules); /* a kernel without modules has no such file */
    kallsyms_parse(&n->symbols, buf_str(&n->text), buf_str(&modules));
    buf_release(&modules);
}

int import_names_check(struct import_names *n, const struct perf_data_about *about, uint64_t written_ns,
                       struct error *e)
{
    const uint64_t text = n->file ? address_of_text(buf_str(&n->text)) : 0;
    if (!n->file && is_own(about, written_ns))
        take_own(n, about);
    if (!text || !about->text_address || text == about->text_address)
        return 0;
    return error_set(
        e, EINVAL, "--kallsyms: %s is of another kernel, or of another boot of it, than the trace", n->file);
}

const struct kallsyms *import_names_symbols(const struct import_names *n)
{
    return n->symbols.all.len ? &n->symbols : NULL;
}
