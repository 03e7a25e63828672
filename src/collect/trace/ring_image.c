/* SPDX-License-Identifier: BSD-2-Clause */
#include "collect/trace/ring_image.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/file_map.h"
#include "base/sigsafe/atomic.h"
#include "collect/ledger/ledger_dir.h"
#include "collect/ledger/ledger_folder.h"
#include "collect/process/proc.h"
#include "wire/ledger.h"

bool ring_image_name(const char *name, pid_t *pid, uint64_t *id)
{
    int number, end = 0;
    if (sscanf(name, "%d-%16" SCNx64 "%n", &number, id, &end) != 2 ||
        strcmp(name + end, LEDGER_RING_SUFFIX) != 0)
        return false;
    *pid = number;
    return true;
}

char *ring_image_path(const struct ledger_entry *entry)
{
    struct buf path = BUF_INIT;
    const char *point = entry->path ? strrchr(entry->path, '.') : NULL;
    if (!point)
        return NULL;
    buf_add(&path, entry->path, (size_t)(point - entry->path));
    buf_addstr(&path, LEDGER_RING_SUFFIX);
    return buf_detach(&path);
}

/* `*kept`: receives the descriptor, which the caller closes; NULL: it is not kept. */
static void *map_file(const char *folder, const char *name, int how, size_t *bytes, int *kept)
{
    struct buf path = BUF_INIT;
    struct stat st;
    void *map = NULL;
    buf_printf(&path, "%s/%s", folder, name);
    int fd = ledger_file_open(buf_str(&path), how & PROT_WRITE ? O_RDWR : O_RDONLY);
    if (fd >= 0 && !fstat(fd, &st) && S_ISREG(st.st_mode) && st.st_size > 0) {
        *bytes = (size_t)st.st_size;
        map = file_map_open(fd, *bytes, how);
    }
    if (kept)
        *kept = fd;
    else if (fd >= 0)
        close(fd);
    buf_release(&path);
    return map;
}

static void name_of(char out[static 64], const struct ring_image *i, const char *suffix)
{
    snprintf(out, 64, "%d-%016" PRIx64 "%s", (int)i->pid, i->id, suffix);
}

void ring_image_add_name(struct buf *b, const struct ring_image *i, const char *suffix)
{
    char name[64];
    name_of(name, i, suffix);
    buf_addstr(b, name);
}

static int map_rings(struct ring_image *i, const char *folder, const char *name, int how)
{
    *i = (struct ring_image){.lock = -1};
    if (!ring_image_name(name, &i->pid, &i->id))
        return -EINVAL;
    i->map = map_file(folder, name, how, &i->bytes, how & PROT_WRITE ? &i->lock : NULL);
    if (!i->map) {
        ring_image_close(i);
        return -ENOENT;
    }
    i->reader = ring_reader_new(i->map, i->bytes);
    if (i->reader) {
        i->overwrites = ring_reader_header(i->reader)->overwrites;
        return 0;
    }
    ring_image_close(i);
    return -EAGAIN;
}

int ring_image_open(struct ring_image *i, const char *folder, const char *name)
{
    int bad = map_rings(i, folder, name, PROT_READ | PROT_WRITE);
    const uint64_t at = bad ? 0 : ring_reader_header(i->reader)->read_at;
    if (bad)
        return bad;
    if (at && flock(i->lock, LOCK_EX | LOCK_NB)) {
        ring_image_close(i);
        return -EBUSY;
    }
    const size_t needed = sizeof(*i->positions) + ring_reader_rings(i->reader) * sizeof(uint64_t);
    if (at && at % sizeof(uint64_t) == 0 && at <= i->bytes && needed <= i->bytes - at)
        i->positions = (struct ring_positions *)((char *)i->map + at);
    return 0;
}

int ring_image_look(struct ring_image *i, const char *folder, const char *name)
{
    const int bad = map_rings(i, folder, name, PROT_READ);
    if (!bad)
        ring_reader_stand_by(i->reader);
    return bad;
}

int ring_image_borrow(struct ring_image *i, void *map, size_t bytes)
{
    *i = (struct ring_image){.map = map, .bytes = bytes, .borrows = true, .lock = -1};
    i->reader = ring_reader_new(map, bytes);
    if (!i->reader)
        return -EINVAL;
    i->overwrites = ring_reader_header(i->reader)->overwrites;
    ring_reader_stand_by(i->reader);
    return 0;
}

void ring_image_begin_anew(struct ring_image *i)
{
    struct ring_reader *anew = ring_reader_new(i->map, i->bytes);
    const struct ring_header *now = anew ? ring_reader_header(anew) : NULL,
                             *before = ring_reader_header(i->reader);
    if (!now || now->packet_bytes != before->packet_bytes || now->cpus != before->cpus) {
        ring_reader_free(anew); /* the program has changed its header */
        return;
    }
    ring_reader_free(i->reader);
    i->reader = anew;
    ring_reader_stand_by(anew);
}

int ring_image_next(struct ring_image *i, uint32_t ring, struct ring_piece *out)
{
    const int found = ring_reader_next(i->reader, ring, out);
    if (i->positions) /* the piece is a copy */
        store_release(&i->positions->read[ring], ring_reader_position(i->reader, ring));
    return found;
}

/* Returns whether a process maps the ledger with this suffix: 1 or 0, or -errno. */
static int is_held(const struct ring_image *i, const char *folder, const char *suffix)
{
    struct buf path = BUF_INIT;
    char name[64];
    name_of(name, i, suffix);
    buf_printf(&path, "%s/%s", folder, name);
    const int fd = ledger_file_open(buf_str(&path), O_RDONLY);
    const int held = fd < 0 ? fd : ledger_is_held(fd);
    if (fd >= 0)
        close(fd);
    buf_release(&path);
    return held;
}

/* The rings are held by our own mapping, too: their ledger is asked, which is made before them. It is the agent's, or
 * the one of liballium.so in a process without the agent. */
bool ring_image_has_ended(const struct ring_image *i, const char *folder)
{
    int held = is_held(i, folder, LEDGER_SUFFIX);
    if (held == -ENOENT)
        held = is_held(i, folder, LEDGER_TAGS_SUFFIX);
    return held >= 0 ? !held : held == -ENOENT || !proc_runs(i->pid);
}

void ring_image_remove(struct ring_image *i, const char *folder)
{
    static const char *const suffixes[] = {LEDGER_RING_SUFFIX, LEDGER_EVENTS_SUFFIX};
    struct buf path = BUF_INIT;
    char name[64];
    for (size_t k = 0; k < sizeof(suffixes) / sizeof(*suffixes); k++) {
        name_of(name, i, suffixes[k]);
        buf_reset(&path);
        buf_printf(&path, "%s/%s", folder, name);
        unlink(buf_str(&path));
    }
    buf_release(&path);
    ring_image_close(i);
}

void ring_image_close(struct ring_image *i)
{
    ring_reader_free(i->reader);
    if (!i->borrows)
        file_map_close(i->map, i->bytes);
    if (i->lock >= 0)
        close(i->lock);
}
