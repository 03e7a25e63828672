/* SPDX-License-Identifier: BSD-2-Clause */
#include "collect/trace/user_classes.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/file_map.h"
#include "base/mem.h"
#include "base/sigsafe/atomic.h"
#include "base/vec.h"
#include "collect/trace/event_description.h"
#include "wire/event_schema.h"
#include "wire/event_table.h"
#include "wire/ledger.h"

#define UNREADABLE UINT16_MAX

struct known {
    char *text;
    size_t bytes;
    struct event_class class;
    uint32_t words; /* of an event */
};

struct user_classes {
    struct VEC(struct known *) known; /* the writer has pointers into them */
};

struct user_events {
    const char *dir;
    pid_t pid;
    uint64_t image_id;
    const struct event_table *table; /* NULL: not there yet */
    /* by number in the image: the index in user_classes.known, plus 1; 0: not asked yet; or UNREADABLE */
    uint16_t classes[EVENT_TABLE_MOST];
};

struct user_classes *user_classes_new(void)
{
    return mem_alloc(sizeof(struct user_classes));
}

void user_classes_free(struct user_classes *c)
{
    if (!c)
        return;
    vec_each (struct known *, k, &c->known) {
        event_description_release(&(*k)->class);
        free((*k)->text);
        free(*k);
    }
    vec_release(&c->known);
    free(c);
}

const struct event_class *user_classes_of_trace(const struct user_classes *c, uint16_t id)
{
    const uint32_t index = id - EVENT_ID_OWN;
    return id >= EVENT_ID_OWN && index < c->known.len ? &c->known.at[index]->class : NULL;
}

struct user_events *user_events_new(const char *dir, pid_t pid, uint64_t image_id)
{
    struct user_events *u = mem_alloc(sizeof(*u));
    u->dir = dir;
    u->pid = pid;
    u->image_id = image_id;
    return u;
}

void user_events_free(struct user_events *u)
{
    if (u)
        file_map_close((void *)u->table, EVENT_TABLE_BYTES);
    free(u);
}

static void open_table(struct user_events *u)
{
    struct buf path = BUF_INIT;
    struct stat st;
    buf_printf(&path, "%s/%d-%016" PRIx64 LEDGER_EVENTS_SUFFIX, u->dir, (int)u->pid, u->image_id);
    const int fd = open(buf_str(&path), O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
    if (fd >= 0 && !fstat(fd, &st) && S_ISREG(st.st_mode) && st.st_size >= EVENT_TABLE_BYTES)
        u->table = file_map_open(fd, EVENT_TABLE_BYTES, PROT_READ);
    if (fd >= 0)
        close(fd);
    buf_release(&path);
}

/* Returns a copy of the description of the image's event, or NULL. */
static char *copy_text(struct user_events *u, uint32_t index, size_t *bytes)
{
    if (!u->table)
        open_table(u);
    if (!u->table || load_acquire(&u->table->magic) != EVENT_TABLE_MAGIC)
        return NULL;
    const uint64_t place = load_acquire(&u->table->places[index]), at = place >> 32, n = (uint32_t)place;
    if (at < EVENT_TABLE_TEXTS || !n || at + n > EVENT_TABLE_BYTES)
        return NULL;
    *bytes = n;
    return mem_strndup((const char *)u->table + at, n);
}

int user_events_describe(struct user_events *u, uint16_t number, struct event_class *out)
{
    size_t bytes = 0;
    const uint32_t index = (uint32_t)number - EVENT_ID_OWN;
    char *text = index < EVENT_TABLE_MOST ? copy_text(u, index, &bytes) : NULL;
    const int bad = text && strlen(text) == bytes ? event_description_read(out, text, bytes) : -EINVAL;
    free(text);
    if (!bad)
        out->id = number;
    return bad;
}

/* Sets *index to the class with this description; a new class goes to the writer, if there is one. Takes over, or
 * frees, `text`. */
static int find_class(struct user_classes *c, char *text, size_t bytes, struct ctf_writer *w, uint16_t *index,
                      struct error *e)
{
    for (*index = 0; *index < c->known.len; ++*index) {
        const struct known *k = c->known.at[*index];
        if (k->bytes == bytes && !memcmp(k->text, text, bytes)) {
            free(text);
            return 0;
        }
    }
    struct known *k = mem_alloc(sizeof(*k));
    *k = (struct known){.text = text, .bytes = bytes};
    if (c->known.len + EVENT_ID_OWN >= UNREADABLE || event_description_read(&k->class, text, bytes)) {
        free(text);
        free(k);
        return -EINVAL;
    }
    k->class.id = (uint16_t)(EVENT_ID_OWN + c->known.len);
    k->words = RING_EVENT_WORDS + (event_class_bytes(&k->class) + 7) / 8;
    *vec_push(&c->known) = k;
    return w ? ctf_writer_class(w, &k->class, e) : 0;
}

/* Sets *k to the class of the image's event, or to NULL: it has none. */
static int class_of(struct user_classes *c, struct user_events *u, uint16_t id, struct ctf_writer *w,
                    const struct known **k, struct error *e)
{
    const uint32_t at = id - EVENT_ID_OWN;
    size_t bytes = 0;
    *k = NULL;
    if (at >= EVENT_TABLE_MOST || u->classes[at] == UNREADABLE)
        return 0;
    if (!u->classes[at]) {
        uint16_t index = 0;
        char *text = copy_text(u, at, &bytes);
        const int bad =
            text ? strlen(text) == bytes ? find_class(c, text, bytes, w, &index, e) : (free(text), -EINVAL)
                 : -EINVAL;
        u->classes[at] = bad ? UNREADABLE : index + 1;
        if (bad)
            return bad == -EINVAL ? 0 : bad;
    }
    *k = c->known.at[u->classes[at] - 1];
    return 0;
}

int user_classes_translate(struct user_classes *c, struct user_events *u, struct ring_piece *p,
                           struct ctf_writer *w, struct user_counts *n, struct error *e)
{
    uint64_t *words = (uint64_t *)p->words; /* the reader's copy */
    uint32_t at = 0, kept = 0, bad = 0;
    bool damaged;
    for (const struct ring_event *event; (event = ring_piece_event(p, &at, &damaged));) {
        const uint32_t size = event->size & RING_SIZE_MASK;
        uint64_t *to = words + kept;
        if (event->id >= EVENT_ID_OWN) {
            const struct known *k;
            const int failed = class_of(c, u, event->id, w, &k, e);
            if (failed)
                return failed;
            if (!k || k->words != size) {
                bad++;
                continue;
            }
            n->cut += event->size >> RING_SIZE_BITS & RING_FLAG_CUT ? 1 : 0;
            ((struct ring_event *)event)->id = k->class.id;
        }
        if (to != (const uint64_t *)event)
            memmove(to, event, 8ull * size);
        kept += size;
    }
    if (damaged)
        return 0; /* the writer says so */
    p->n_words = kept;
    p->n_events -= bad;
    n->unknown += bad;
    return 0;
}

const struct event_class *user_classes_find(struct user_classes *c, struct user_events *u, uint16_t id,
                                            uint32_t words)
{
    const struct known *k = NULL;
    if (id < EVENT_ID_OWN || class_of(c, u, id, NULL, &k, NULL) || !k || k->words != words)
        return NULL;
    return &k->class;
}

/* Copies the reason of a call. Returns false if a later one has taken its place, or it is being written. */
static bool copy_reason(const struct event_table *t, uint64_t number, char *reason)
{
    const struct event_table_request *r = &t->requests[(number - 1) % EVENT_TABLE_REQUESTS];
    if (load_acquire(&r->number) != number)
        return false;
    memcpy(reason, r->reason, EVENT_TABLE_REASON_BYTES);
    __atomic_thread_fence(__ATOMIC_ACQUIRE);
    return load_relaxed(&r->number) == number;
}

uint64_t user_events_asked(struct user_events *u, bool opens, uint64_t seen,
                           char reason[static USER_EVENTS_REASON_BYTES])
{
    if (!u->table && opens)
        open_table(u);
    if (!u->table || load_acquire(&u->table->magic) != EVENT_TABLE_MAGIC)
        return 0;
    const uint64_t asked = load_acquire(&u->table->asked);
    uint64_t n = asked > seen + EVENT_TABLE_REQUESTS ? asked - EVENT_TABLE_REQUESTS + 1 : seen + 1;
    memset(reason, 0, USER_EVENTS_REASON_BYTES);
    bool found = false; /* the numbers are the program's: they may be anything */
    for (uint64_t left = asked >= n ? asked - n + 1 : 0; left && !found; left--, n++)
        found = copy_reason(u->table, n, reason);
    if (!found)
        reason[0] = '\0';
    return asked;
}
