/* SPDX-License-Identifier: BSD-2-Clause */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/units.h"
#include "cli/command.h"
#include "cli/sys/doctor_boot.h"
#include "cli/sys/doctor_sys.h"
#include "cli/terminal.h"
#include "collect/ledger/ledger_dir.h"
#include "collect/ledger/profile_names.h"
#include "collect/perf/perf_open.h"
#include "collect/process/program_check.h"
#include "model/table/table.h"
#include "run/launch.h"
#include "symbol/debuginfod_fetcher.h"
#include "view/table/table_view.h"

#ifndef MADV_POPULATE_WRITE
#define MADV_POPULATE_WRITE 23
#endif

static const struct option_doc options[] = {
    {"boot", 0, NULL, "print kernel parameters that trace the kernel's memory since the boot (needs root)"},
    {"json", 0, NULL, "print JSON, see allium-json(5)"},
    {NULL, 0, NULL, NULL},
};

static int run(int argc, char **argv);

const struct command command_doctor = {
    .name = "doctor",
    .usage = "[--boot|--json]",
    .summary = "check what works on this machine, and say how to fix the rest",
    .options = options,
    .run = run,
};

enum column { WHAT, WORKS, FOUND, ADVICE };

static const struct table_column columns[] = {
    [WHAT] = {"what", TABLE_PLAIN, TABLE_TEXT},
    [WORKS] = {"works", TABLE_PLAIN, TABLE_TEXT},
    [FOUND] = {"found", TABLE_PLAIN, TABLE_TEXT, .wrap = true},
    [ADVICE] = {"what_to_do", TABLE_PLAIN, TABLE_TEXT, .wrap = true},
};

/* Of what works in a lesser way there may be advice, too. */
static bool add_advised(struct table *t, const char *what, bool works, const char *found, const char *advice)
{
    table_row(t);
    table_text(t, WHAT, what);
    table_text(t, WORKS, works ? "yes" : "no");
    table_text(t, FOUND, found);
    if (advice)
        table_text(t, ADVICE, advice);
    return works;
}

static bool add(struct table *t, const char *what, bool works, const char *found, const char *advice)
{
    return add_advised(t, what, works, found, works ? NULL : advice);
}

static bool check_agent(struct table *t, const char *what, enum launch_agent which)
{
    struct error e = {""};
    char *path = NULL, *preloaded = NULL;
    bool works = !launch_find_agent_file(which, &path, &e) && !launch_find_agent(which, &preloaded, &e);
    add(t, what, works, works ? path : e.text, "build (make) or install allium again");
    free(path);
    free(preloaded);
    return works;
}

static bool check_directory(struct table *t)
{
    struct error e = {""};
    struct statfs fs;
    char *path = NULL, size[UNITS_TEXT_BYTES];
    struct buf found = BUF_INIT;
    bool works = !ledger_dir_make(&path, &e);
    if (works) {
        rmdir(path);
        *strrchr(path, '/') = '\0';
        works = !statfs(path, &fs) && fs.f_type == 0x01021994;
        double bytes = works ? (double)fs.f_bavail * (double)fs.f_bsize : 0;
        buf_printf(&found, "%s%s%s", path, works ? ", free: " : " is not a tmpfs",
                   works ? units_format_size(size, bytes) : "");
    }
    add(t, "place for ledgers", works, works || path ? buf_str(&found) : e.text,
        "mount a tmpfs on /dev/shm; without one a process keeps its ledger in a memfd, which only root "
        "can read, and only while the process lives");
    buf_release(&found);
    free(path);
    return works;
}

static bool check_populate(struct table *t)
{
    void *p = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    bool works = p != MAP_FAILED && !madvise(p, 4096, MADV_POPULATE_WRITE);
    const char *found = works ? "MADV_POPULATE_WRITE" : strerror(errno);
    if (p != MAP_FAILED)
        munmap(p, 4096);
    return add(t, "growing ledgers safely", works, found, "needs Linux 5.14 or later");
}

static bool check_symbols(struct table *t)
{
    char *dir = profile_names_cache_dir();
    bool works = dir != NULL;
    add(t, "symbol cache", works, works ? dir : "neither XDG_CACHE_HOME nor HOME is set",
        "set HOME; without a cache each report names everything anew");
    free(dir);
    return true; /* a matter of speed only */
}

static bool check_debug_files(struct table *t)
{
    bool works = !access("/usr/lib/debug/.build-id", R_OK);
    add(t, "debug files", works, works ? "/usr/lib/debug/.build-id" : "none installed",
        "install -dbg or -dbgsym packages for file and line of system libraries; functions are named without "
        "them");
    return true;
}

static bool check_servers(struct table *t)
{
    const char *urls = getenv("DEBUGINFOD_URLS"), *library = fetcher_library();
    bool set = urls && *urls;
    struct buf found = BUF_INIT;
    if (set && library)
        buf_printf(&found, "DEBUGINFOD_URLS=%s", urls);
    else
        buf_printf(&found, "%s%s%s", set ? "" : "DEBUGINFOD_URLS is not set", set || library ? "" : ", and ",
                   library ? "" : "libdebuginfod.so.1 is not installed");
    add(t, "debug file servers", set && library, buf_str(&found),
        "for debug files that are not installed: install libdebuginfod1, and set DEBUGINFOD_URLS, as in "
        "DEBUGINFOD_URLS=https://debuginfod.debian.net");
    buf_release(&found);
    return true;
}

/* The kernel's number for breakpoints in files, -1: it has none. */
static int uprobe_type(void)
{
    int type = -1;
    FILE *file = fopen("/sys/bus/event_source/devices/uprobe/type", "re");
    if (file && fscanf(file, "%d", &type) != 1)
        type = -1;
    if (file)
        fclose(file);
    return type;
}

/*
 * Asks for one where the agent's file has no code, so that no process is touched, of all processes, as perf and
 * bpftrace do. 0 or the error.
 */
static int try_uprobe(int type, const char *path)
{
    struct perf_event_attr attributes = {
        .type = (uint32_t)type,
        .size = sizeof(attributes),
        .uprobe_path = (uintptr_t)path,
        .disabled = 1,
    };
    int fd = perf_open(&attributes, -1, 0);
    if (fd < 0)
        return -fd;
    close(fd);
    return 0;
}

static bool check_probes(struct table *t)
{
    struct error e = {""};
    char *path = NULL;
    struct buf found = BUF_INIT;
    int type = uprobe_type();
    bool works = false, denied = false;
    if (type < 0) {
        buf_printf(&found, "no uprobes in this kernel");
    } else if (launch_find_agent_file(LAUNCH_AGENT_DEFAULT, &path, &e)) {
        buf_printf(&found, "%s", e.text);
    } else {
        int error = try_uprobe(type, path);
        works = !error;
        denied = error == EACCES || error == EPERM;
        buf_printf(&found, "%s%s",
                   works ? "uprobes, for bpftrace and perf" : "uprobes: ", works ? "" : strerror(error));
    }
    add(t, "probes", works, buf_str(&found),
        denied ? "listen as root; gdb can without, see allium-probes(7)"
               : "gdb can listen all the same, see allium-probes(7)");
    buf_release(&found);
    free(path);
    return true; /* a matter of who else wants to listen */
}

static int run(int argc, char **argv)
{
    struct arguments a;
    int code = command_parse(&command_doctor, argc, argv, false, &a);
    if (code >= 0)
        return code;
    if (a.n_rest)
        return command_misuse(&command_doctor, "too many arguments: leave out %s", a.rest[0]);
    if (command_value(&command_doctor, &a, "boot")) {
        if (command_value(&command_doctor, &a, "json"))
            return command_misuse(&command_doctor, "--boot prints text only: leave out --json");
        return doctor_boot();
    }
    struct table *t = table_new("doctor", 1, columns, sizeof(columns) / sizeof(*columns));
    bool fine = check_agent(t, "agent", LAUNCH_AGENT_DEFAULT);
    fine &= check_agent(t, "agent-full", LAUNCH_AGENT_FULL);
    fine = check_directory(t) && fine;
    fine = check_populate(t) && fine;
    fine = check_symbols(t) && fine;
    fine = check_debug_files(t) && fine;
    fine = check_servers(t) && fine;
    fine = check_probes(t) && fine;
    doctor_sys(t, add_advised);
    struct sink out = sink_to_file(stdout);
    struct text_style style = terminal_style(stdout);
    if (command_value(&command_doctor, &a, "json"))
        table_view_json(&out, t);
    else
        table_view_text(&out, t, &style);
    table_free(t);
    return command_written(&out, fine ? EXIT_DONE : EXIT_IMPOSSIBLE);
}
