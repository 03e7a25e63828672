/* SPDX-License-Identifier: BSD-2-Clause */
#include "wire/ledger_make.h"

#include <errno.h>
#include <fcntl.h>
#include <stddef.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/vfs.h>

#include "base/sigsafe/str.h"
#include "base/sigsafe/syscall.h"
#include "wire/deferred_rules.h"
#include "wire/headroom.h"
#include "wire/ledger_file.h"
#include "wire/ledger_sweep.h"

#define TMPFS_MAGIC 0x01021994
/* a ledger gets this many bytes without a check of the cgroups: the check takes half of the time of the first sample */
#define UNCHECKED_BYTES (64u << 10)
#define SMALLEST_LIMIT  HEADROOM_LEDGER_LEAST

/* The share of the hard limit that each table may take, in sixteenths, and the bounds of the table's size. */
static const struct {
    uint32_t sixteenths;
    uint32_t least_bytes;
    uint32_t most_bytes; /* 0: no upper bound */
} tables[LEDGER_TABLES] = {
    [LEDGER_PERIODS] = {0, LEDGER_PAGE_BYTES, LEDGER_PAGE_BYTES},
    [LEDGER_THREADS] = {1, 40u << 10, 40u << 10},
    [LEDGER_STRINGS] = {1, 64u << 10, 1u << 20},
    [LEDGER_MODULES] = {1, 64u << 10, 128u << 10},
    [LEDGER_FRAMES] = {2, 64u << 10, 128u << 20},
    [LEDGER_STACK_FRAMES] = {8, 64u << 10, 0},
    [LEDGER_STACKS] = {3, 64u << 10, 0},
    [LEDGER_CELLS] = {16, 64u << 10, 0},
    [LEDGER_SAMPLES] = {16, 64u << 10, 0},
    [LEDGER_FREES] = {1, 64u << 10, 1u << 20},
    [LEDGER_ACCOUNTS] = {12, 64u << 10, 48u << 20},
    [LEDGER_TAGS] = {2, 64u << 10, 8u << 20},
    [LEDGER_TAG_STACKS] = {2, 64u << 10, 8u << 20},
    [LEDGER_LATENCIES] = {1, 64u << 10, 4u << 20},
    [LEDGER_SITE_SUMS] = {12, 64u << 10, 64u << 20},
    [LEDGER_SITES] = {1, 64u << 10, 1u << 20},
};

/* Every ledger has the tables from LEDGER_STRINGS to LEDGER_STACKS. Each other table exists only in a ledger with
 * samples, with tags, or with sites. */
static bool has_table(const struct ledger_config *config, int t)
{
    if (t == LEDGER_SITE_SUMS || t == LEDGER_SITES)
        return config->sites;
    if (t >= LEDGER_ACCOUNTS)
        return config->tags;
    return config->samples || (t >= LEDGER_STRINGS && t <= LEDGER_STACKS);
}

static uint64_t lay_out(struct ledger_region *regions, const struct ledger_config *config,
                        uint64_t limit_bytes)
{
    /* The page after the header stays inaccessible, so /proc/PID/maps shows the header as a separate mapping, which the
     * tool looks for. */
    uint64_t offset = LEDGER_HEADER_BYTES + LEDGER_PAGE_BYTES;
    for (int t = 0; t < LEDGER_TABLES; t++) {
        uint64_t bytes = limit_bytes / 16 * tables[t].sixteenths;
        if (tables[t].most_bytes && bytes > tables[t].most_bytes)
            bytes = tables[t].most_bytes;
        if (bytes < tables[t].least_bytes)
            bytes = tables[t].least_bytes;
        if (!has_table(config, t))
            bytes = 0;
        regions[t] = (struct ledger_region){.offset = offset,
                                            .limit_bytes = ledger_page_up(bytes),
                                            .record_bytes = ledger_record_bytes((enum ledger_table)t)};
        offset += regions[t].limit_bytes;
    }
    return offset;
}

/* Opens `dir` if it is on tmpfs and belongs to the effective user, who alone has access. Descriptor or -errno. */
static ONE_COPY long open_dir(const char *dir, bool make)
{
    const int how = O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC;
    long fd = sys_call(SYS_openat, AT_FDCWD, dir, how);
    if (fd == -ENOENT && make) {
        sys_call(SYS_mkdir, dir, 0700);
        fd = sys_call(SYS_openat, AT_FDCWD, dir, how);
    }
    if (sys_failed(fd))
        return fd;
    struct stat st;
    struct statfs fs;
    long bad = sys_call(SYS_fstat, fd, &st);
    if (!bad && (st.st_uid != (uid_t)sys_call(SYS_geteuid, 0) || (st.st_mode & 077)))
        bad = -EACCES;
    if (!bad)
        bad = sys_call(SYS_fstatfs, fd, &fs);
    if (!bad && fs.f_type != TMPFS_MAGIC)
        bad = -EXDEV;
    if (bad) {
        sys_call(SYS_close, fd);
        return bad;
    }
    return fd;
}

const char *ledger_recorder_name(const char *requested)
{
    const char *last = requested;
    for (; *requested; requested++)
        if (*requested == '/')
            last = requested;
    return text_starts(last, "/" LEDGER_RUN_PREFIX) ? last : "";
}

/* Opens the directory whose path is `parent` followed by `name`, and stores the path in `dir`. If `requested` is a
 * recorder's directory, opens the directory of that name in it instead. */
static long open_own(char dir[static LEDGER_PATH_BYTES], const char *parent, const char *name,
                     const char *requested, bool make)
{
    size_t len = text_join(dir, LEDGER_PATH_BYTES, parent, name);
    long fd = open_dir(dir, make);
    const char *last = ledger_recorder_name(requested);
    if (sys_failed(fd) || !*last)
        return fd;
    sys_call(SYS_close, fd);
    text_copy(dir + len, LEDGER_PATH_BYTES - len, last);
    return open_dir(dir, make);
}

/* Tries config->dir, then the user's directories of ledgers: first in XDG_RUNTIME_DIR, then in /dev/shm. */
long ledger_open_dir(const struct ledger_config *config, char dir[static LEDGER_PATH_BYTES], bool make)
{
    long fd = -ENOENT;
    if (config->dir[0]) {
        text_copy(dir, LEDGER_PATH_BYTES, config->dir);
        fd = open_dir(dir, make);
    }
    if (sys_failed(fd) && config->runtime_dir[0])
        fd = open_own(dir, config->runtime_dir, "/allium", config->dir, make);
    if (sys_failed(fd)) {
        char uid[24];
        text_from_number(uid, (uint64_t)sys_call(SYS_geteuid, 0), 10, 1);
        fd = open_own(dir, "/dev/shm/allium-", uid, config->dir, make);
    }
    if (sys_failed(fd))
        dir[0] = '\0';
    return fd;
}

const struct ledger_control ledger_no_control = {.state = LEDGER_STATE_FIRST};

static bool write_at(long fd, const void *from, uint64_t bytes, uint64_t at)
{
    return !bytes || (uint64_t)sys_call(SYS_pwrite64, fd, from, bytes, at) == bytes;
}

/* Copies `n` bytes from the offset `from` behind `page` to the file offset `at`. False: `n` is 0, or an error. */
static bool write_behind(long fd, const struct ledger_control *page, uint64_t from, uint64_t n, uint64_t at)
{
    const char *part = (const char *)page + from;
    return n && !sys_call(SYS_mprotect, part, ledger_page_up(n), PROT_READ) && write_at(fd, part, n, at);
}

/* Writes the first content of the control page: switches, and the rules of `page`, if their numbers are
 * valid. `state` becomes larger than in `page`, so that each tag looks up its rules again. */
static bool write_initial_control(long fd, const struct ledger_control *page)
{
    if (page == &ledger_no_control)
        return write_at(fd, page, sizeof(*page), 0);
    uint32_t count = ledger_listed_actions(page->listed), queries = ledger_listed_queries(page->listed);
    struct ledger_control c = {.magic = LEDGER_CONTROL_MAGIC,
                               .word = page->word & (LEDGER_CONTROL_TAGS_OFF | LEDGER_CONTROL_ALLOC_BITS),
                               .state = (int32_t)((((uint32_t)page->state | 1) + 1) & INT32_MAX)};
    if (count <= LEDGER_ACTIONS_MOST &&
        write_behind(fd, page, ledger_list_offset(page->listed), count * sizeof(struct ledger_action),
                     ledger_list_offset(0)))
        c.listed = count;
    if (queries <= LEDGER_QUERIES_MOST &&
        write_behind(fd, page, ledger_deferred_offset(page->listed), LEDGER_DEFERRED_BYTES(queries),
                     ledger_deferred_offset(0)))
        c.listed |= queries << LEDGER_QUERIES_SHIFT;
    return write_at(fd, &c, sizeof(c), 0) && write_at(fd, page + 1, LEDGER_PAGE_BYTES - sizeof(c), sizeof(c));
}

static void make_control(struct ledger *l, const struct ledger_config *config, long dir, int pid)
{
    char name[LEDGER_NAME_BYTES];
    uint64_t bytes = config->tags ? LEDGER_CONTROL_TAG_BYTES : LEDGER_PAGE_BYTES;
    l->control = &ledger_no_control;
    ledger_file_name(name, config, dir, pid, LEDGER_CONTROL_SUFFIX);
    long fd = ledger_file_create(dir, name, bytes);
    if (sys_failed(fd))
        return;
    /* The page becomes readable only after it was written: on a full tmpfs a read fault would raise SIGBUS. */
    char *page = ledger_file_map(fd, bytes, PROT_NONE);
    if (page &&
        (!write_initial_control(fd, config->initial_control ? config->initial_control : &ledger_no_control) ||
         sys_call(SYS_mprotect, page, LEDGER_PAGE_BYTES, PROT_READ))) {
        sys_call(SYS_munmap, page, bytes);
        page = NULL;
    }
    sys_call(SYS_close, fd);
    if (page) {
        /* with samples alone: false until ledger_keep_control() is called */
        l->control_stays = !config->samples || config->sites;
        if (!l->control_stays)
            sys_call(SYS_madvise, page, bytes, MADV_DONTFORK);
        l->control = (const struct ledger_control *)page;
    } else if (!sys_failed(dir)) {
        sys_call(SYS_unlinkat, dir, name, 0);
    }
}

void ledger_keep_control(struct ledger *l)
{
    if (l->control != &ledger_no_control && !l->control_stays)
        l->control_stays = !sys_call(SYS_madvise, l->control, LEDGER_CONTROL_TAG_BYTES, MADV_DOFORK);
}

/* Backs the header and, except for tables that many programs never use, the first page of each table; sets their
 * ready_bytes. A trace uses the tables up to LEDGER_FRAMES, and few need others. Returns 0 or -errno. */
static int back_first_pages(const struct ledger *l, char *map, struct ledger_region *regions,
                            const struct ledger_config *config)
{
    char *from = map, *to = map + LEDGER_HEADER_BYTES;
    const int end = !config->samples                                                ? LEDGER_FRAMES
                    : config->sites & (LEDGER_WITH_TRACE | LEDGER_WITH_TRACE_LATER) ? LEDGER_STACK_FRAMES
                                                                                    : LEDGER_FREES;
    for (int t = 0; t < end; t++) {
        if (!regions[t].limit_bytes)
            continue;
        if (l->regions[t] != to) {
            long bad = ledger_back(from, (uint64_t)(to - from));
            if (bad)
                return (int)bad;
            from = l->regions[t];
        }
        to = l->regions[t] + LEDGER_PAGE_BYTES;
        regions[t].ready_bytes = LEDGER_PAGE_BYTES;
    }
    return (int)ledger_back(from, (uint64_t)(to - from));
}

/* Makes file, mapping and header of a ledger whose hard limit is `limit_bytes`. Returns 0 or -errno. */
static int make_sized(struct ledger *l, long dir, const char *name, uint64_t limit_bytes,
                      const struct ledger_config *config)
{
    struct ledger_region regions[LEDGER_TABLES];
    uint64_t bytes = lay_out(regions, config, limit_bytes);
    if (!headroom_has_space(bytes + bytes / 3)) /* a third more for the private tables beside the ledger */
        return -ENOMEM;
    long fd = ledger_file_create(dir, name, bytes);
    if (sys_failed(fd))
        return (int)fd;
    char *map = ledger_file_map(fd, bytes, PROT_NONE);
    sys_call(SYS_close, fd);
    int bad = map ? 0 : -ENOMEM;
    if (!bad) {
        /* After mlockall(MCL_FUTURE) in the program, the mapping is locked, and would use up RLIMIT_MEMLOCK. */
        sys_call(SYS_munlock, map, bytes);
        sys_call(SYS_madvise, map, bytes, MADV_DONTFORK);
        sys_call(SYS_madvise, map, bytes, MADV_DONTDUMP);
        for (int t = 0; t < LEDGER_TABLES; t++)
            l->regions[t] = map + regions[t].offset;
        bad = back_first_pages(l, map, regions, config);
    }
    if (!bad) {
        struct ledger_header *h = (struct ledger_header *)map;
        h->ready_bytes = LEDGER_HEADER_BYTES;
        for (int t = 0; t < LEDGER_TABLES; t++) {
            h->regions[t] = regions[t];
            h->ready_bytes += regions[t].ready_bytes;
        }
        h->map_start = (uint64_t)map;
        h->map_bytes = LEDGER_HEADER_BYTES;
        h->limit_bytes = limit_bytes;
        h->image_id = config->image_id;
        l->header = h;
        headroom_set_ledger(bytes);
    }
    if (bad) {
        if (map)
            sys_call(SYS_munmap, map, bytes);
        if (!sys_failed(dir))
            sys_call(SYS_unlinkat, dir, name, 0);
        l->header = NULL;
    }
    return bad;
}

/* Removes old left-over ledgers from the directory of the new ledger, unless it is a recorder's directory: the recorder
 * removes them itself. If the file system is short of room, removes further left-over ledgers from this directory, or,
 * if it is a recorder's, from its parent directory. Returns whether there is room for a ledger. */
static ONE_COPY bool sweep(long dir, const char *path)
{
    bool recorded = text_find(path, "/" LEDGER_RUN_PREFIX);
    if (!recorded)
        ledger_sweep(dir);
    if (!headroom_is_short(path))
        return true;
    long from = recorded ? sys_call(SYS_openat, dir, "..", O_RDONLY | O_DIRECTORY | O_CLOEXEC) : dir;
    if (!sys_failed(from))
        ledger_sweep_for_room(from, path);
    if (from != dir)
        sys_call(SYS_close, from);
    return headroom_in_filesystem(path, SMALLEST_LIMIT);
}

int ledger_make(struct ledger *l, const struct ledger_config *config)
{
    char name[LEDGER_NAME_BYTES];
    int pid = (int)sys_call(SYS_getpid, 0);
    long dir = ledger_open_dir(config, l->dir, true);
    ledger_file_name(name, config, dir, pid, config->samples ? LEDGER_SUFFIX : LEDGER_TAGS_SUFFIX);
    int bad = sys_failed(dir) || sweep(dir, l->dir) ? -ENOMEM : -ENOSPC;
    headroom_set_ledger(0); /* a fork child does not map the ledger of its parent */
    for (uint64_t limit = config->limit_bytes; bad != -ENOSPC && bad && limit >= SMALLEST_LIMIT; limit /= 4)
        bad = make_sized(l, dir, name, limit, config);
    if (!bad) {
        l->approved_bytes = UNCHECKED_BYTES - l->header->ready_bytes;
        l->control = &ledger_no_control;
        l->control_stays = false;
        l->unchecked = 0;
        l->pool = NULL; /* a fork child leaves the inherited pool to the inherited tables in it */
        make_control(l, config, dir, pid);
        l->header->pid = pid;
        l->header->version = LEDGER_VERSION;
        l->header->header_bytes = LEDGER_HEADER_BYTES;
    }
    if (!sys_failed(dir))
        sys_call(SYS_close, dir);
    return bad;
}
