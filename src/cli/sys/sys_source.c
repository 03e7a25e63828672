/* SPDX-License-Identifier: BSD-2-Clause */
#include "cli/sys/sys_source.h"

#include <stdlib.h>
#include <string.h>
#include <sys/utsname.h>
#include <unistd.h>

#include "base/buf.h"
#include "cli/command.h"
#include "collect/kernel/kernel_state.h"
#include "collect/ledger/profile_names.h"

int sys_source_open(struct source_finder **out, const char *file, struct error *e)
{
    struct error why = {""};
    *out = NULL;
    if (!file)
        return 0;
    char *cache = profile_names_cache_dir();
    int bad = source_finder_open(out, file, cache, NULL, &why);
    free(cache);
    return bad ? error_set(e, -bad, "--source: %s", why.text) : 0;
}

/* A folder with headers alone, as packages for building modules have it, is none. */
static struct source_finder *try_place(const char *path, bool is_folder, const char *release)
{
    struct error why;
    struct buf known = BUF_INIT;
    struct source_finder *f = NULL;
    buf_printf(&known, "%s%s", path, is_folder ? "/init/main.c" : "");
    if (!access(buf_str(&known), R_OK) && !sys_source_open(&f, path, &why) &&
        !source_finder_fits(f, release)) {
        source_finder_free(f);
        f = NULL;
    }
    buf_release(&known);
    return f;
}

/* "6.12.117+deb12-amd64" is searched for as 6.12.117 and as 6.12, which may be the source of any 6.12. */
struct source_finder *sys_source_seek(const char *release)
{
    static const struct {
        const char *begin, *end;
        bool is_folder, numbers; /* `numbers`: between both are those of the release, else all of it */
    } places[] = {{"/lib/modules/", "/source", true, false},
                  {"/lib/modules/", "/build", true, false},
                  {"/usr/src/linux-source-", "", true, true},
                  {"/usr/src/linux-source-", ".tar.xz", false, true},
                  {"/usr/src/linux-", "", true, true}};
    const size_t whole = strspn(release, "0123456789.");
    const char *dot = strchr(release, '.'), *second = dot ? strchr(dot + 1, '.') : NULL;
    const size_t series = second && second < release + whole ? (size_t)(second - release) : whole;
    struct source_finder *f = NULL;
    if (!*release || strchr(release, '/'))
        return NULL;
    for (size_t i = 0; i < 2 * sizeof(places) / sizeof(*places) && !f; i++) {
        const size_t k = i / 2;
        const size_t len = !places[k].numbers ? strlen(release) : i % 2 ? series : whole;
        struct buf path = BUF_INIT;
        buf_printf(&path, "%s%.*s%s", places[k].begin, (int)len, release, places[k].end);
        if (places[k].numbers || i % 2)
            f = try_place(buf_str(&path), places[k].is_folder, release);
        buf_release(&path);
    }
    return f;
}

void sys_source_set_kernel(struct source_finder *f, const char *release, const char *config, const char *file,
                           bool quiet)
{
    struct kernel_state state = {.texts = {0}};
    struct buf path = BUF_INIT;
    buf_printf(&path, "/boot/config-%s", release);
    if (!config && *release && !strchr(release, '/') && !kernel_state_add_config(&state, buf_str(&path)))
        config = kernel_state_text(&state, KERNEL_STATE_CONFIG);
    source_finder_set_kernel(f, &(struct source_kernel){.config = config});
    if (file && *release && !source_finder_fits(f, release) && !quiet)
        command_fail(0, "%s is the source of %s, and the kernel is %s: files may be wrong", file,
                     *source_finder_version(f) ? source_finder_version(f) : "an unknown version", release);
    buf_release(&path);
    kernel_state_release(&state);
}

int sys_source_of_running(struct source_finder **out, const char *file, bool has_debug, bool quiet)
{
    struct error e = {""};
    struct utsname name;
    if (uname(&name))
        *name.release = '\0';
    if (sys_source_open(out, file, &e))
        return command_fail(EXIT_USAGE, "%s", e.text);
    if (!file && !has_debug)
        *out = sys_source_seek(name.release);
    if (*out)
        sys_source_set_kernel(*out, name.release, NULL, file, quiet);
    return -1;
}
