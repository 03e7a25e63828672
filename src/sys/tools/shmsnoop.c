/* SPDX-License-Identifier: BSD-2-Clause */
/* `allium sys shmsnoop`: who creates, attaches and removes shared memory. */
#include "bpf/shmsnoop.h"

#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>

#include "base/hash_map.h"
#include "base/mem.h"
#include "base/sigsafe/clock_ns.h"
#include "sys/call_words.h"
#include "sys/event_columns.h"
#include "sys/mapping_text.h"
#include "sys/resolver.h"
#include "sys/tools/call_events.h"
#include "sys/tools/shared_memory/shm_list.h"
#include "sys/tools/shared_memory/shm_words.h"

enum column {
    CALL = EVENT_COLUMNS_COLUMNS,
    ERROR,
    NAME,
    KEY,
    SHMID,
    SIZE,
    SEGMENT,
    RESIDENT,
    ATTACHED,
    CREATOR,
    STATE,
    COMMAND,
    MODE,
    FLAGS,
    PROT,
    ADDRESS,
    FD,
    PIDS,
    DURATION,
    KERNEL_STACK,
    USER_STACK
};

static const struct table_column columns[] = {
    EVENT_COLUMNS_HEAD,
    [CALL] = {"call", TABLE_PLAIN, TABLE_TEXT, .width = 12},
    [ERROR] = {"error", TABLE_PLAIN, TABLE_TEXT, .width = 7},
    [NAME] = {"name", TABLE_PLAIN, TABLE_TEXT, .shrinkable = true},
    [KEY] = {"key", TABLE_PLAIN, TABLE_TEXT, .width = 11, .drop_rank = 4},
    [SHMID] = {"shmid", TABLE_PLAIN, TABLE_SIGNED},
    [SIZE] = {"size", TABLE_BYTES, TABLE_WHOLE, .drop_rank = 6},
    [SEGMENT] = {"segment", TABLE_BYTES, TABLE_WHOLE},
    [RESIDENT] = {"resident", TABLE_BYTES, TABLE_WHOLE, .drop_rank = 3},
    [ATTACHED] = {"attached", TABLE_PLAIN, TABLE_WHOLE, .drop_rank = 1},
    [CREATOR] = {"creator_pid", TABLE_PLAIN, TABLE_WHOLE, .header = "creator", .drop_rank = 6},
    [STATE] = {"state", TABLE_PLAIN, TABLE_TEXT, .width = 9},
    [COMMAND] = {"command", TABLE_PLAIN, TABLE_TEXT, .width = 10, .drop_rank = 2},
    [MODE] = {"mode", TABLE_PLAIN, TABLE_TEXT, .width = 5, .drop_rank = 7},
    [FLAGS] = {"flags", TABLE_PLAIN, TABLE_TEXT, .drop_rank = 5},
    [PROT] = {"prot", TABLE_PLAIN, TABLE_TEXT, .drop_rank = 10},
    [ADDRESS] = {"address", TABLE_PLAIN, TABLE_ADDRESS, .drop_rank = 11},
    [FD] = {"fd", TABLE_PLAIN, TABLE_SIGNED, .drop_rank = 12},
    [PIDS] = {"pids", TABLE_PLAIN, TABLE_TEXT, .hide_if_empty = true, .drop_rank = 5},
    [DURATION] = {"duration", TABLE_DURATION, TABLE_WHOLE, .drop_rank = 8},
    [KERNEL_STACK] = {"kernel_stack", TABLE_PLAIN, TABLE_LINES},
    [USER_STACK] = {"user_stack", TABLE_PLAIN, TABLE_LINES},
};

/* What events of this run were about, with the process that has created it, if that was seen; 0: it was not. */
struct own {
    struct map seen; /* by struct shm_key */
    struct VEC(uint32_t) creators;
    struct map known; /* identifiers of segments in allium's IPC namespace, as they came */
    uint32_t ipc_namespace;
};

static void know_segments(struct own *o)
{
    struct shm_list l = {0};
    shm_list_read_segments(&l);
    vec_each (const struct shm_entry, e, &l.entries)
        map_put_u64(&o->known, e->inode, 1, NULL);
    shm_list_release(&l);
}

/* Returns whether nobody has heard of the segment before: then this call of its creator has created it. */
static bool is_new(struct own *o, const struct shmsnoop_event *e)
{
    bool added;
    if (e->segment.ipc_namespace != o->ipc_namespace)
        return false;
    map_put_u64(&o->known, (uint32_t)e->segment.id, 1, &added);
    return added && e->call == SHMSNOOP_shmget && e->segment.creator == e->head.task.pid;
}

static uint32_t *creator_of(struct own *o, uint64_t inode, uint32_t device)
{
    const struct shm_key key = {inode, device, 0};
    bool added;
    const size_t at = map_put(&o->seen, &key, sizeof(key), o->creators.len, &added);
    if (added)
        *vec_push(&o->creators) = 0;
    return &o->creators.at[at];
}

static const char *call_name(uint32_t call)
{
    static const char *const names[SHMSNOOP_KINDS] = {
#define WORD(name, number) [SHMSNOOP_##name] = #name,
        SHMSNOOP_CALLS(WORD)
#undef WORD
    };
    return call < SHMSNOOP_KINDS ? names[call] : NULL;
}

/* ---- events ---- */

static bool failed(const struct shmsnoop_event *e)
{
    return call_words_error(e->result) != NULL;
}

static bool opens(uint32_t call)
{
    return call == SHMSNOOP_open || call == SHMSNOOP_openat || call == SHMSNOOP_openat2 ||
           call == SHMSNOOP_creat;
}

static void set_text(struct table *t, uint32_t column, struct buf *b)
{
    if (b->len)
        table_text(t, column, buf_str(b));
    buf_release(b);
}

static void set_mode(struct table *t, uint32_t mode)
{
    struct buf b = BUF_INIT;
    buf_printf(&b, "%04o", mode & 0777);
    set_text(t, MODE, &b);
}

static void set_name(const struct sys_session *s, struct table *t, const struct shmsnoop_event *e)
{
    struct buf b = BUF_INIT;
    char name[SHMSNOOP_NAME_BYTES] = "";
    if (e->mapping.inode) {
        mapping_text_add(s, &b, &e->mapping);
    } else if (*e->name) {
        memcpy(name, e->name, sizeof(name) - 1);
        if (e->call == SHMSNOOP_memfd_create)
            buf_addstr(&b, "/memfd:");
        mapping_text_add_printable(&b, name);
    } else if (e->call == SHMSNOOP_mmap && e->fd < 0) {
        buf_addstr(&b, "[anonymous]");
    }
    set_text(t, NAME, &b);
}

static void set_arguments(struct table *t, const struct shmsnoop_event *e)
{
    struct buf flags = BUF_INIT, word = BUF_INIT;
    shm_words_flags(&flags, e->call, e->flags);
    set_text(t, FLAGS, &flags);
    switch (e->call) {
    case SHMSNOOP_shmget:
        set_mode(t, e->flags);
        break;
    case SHMSNOOP_shmctl:
        shm_words_command(&word, e->command);
        set_text(t, COMMAND, &word);
        break;
    case SHMSNOOP_mmap:
        call_words_prot(&word, e->prot);
        set_text(t, PROT, &word);
        break;
    default:
        if (opens(e->call) && e->flags & 0100) /* O_CREAT */
            set_mode(t, e->mode);
    }
    if (e->call == SHMSNOOP_shmget || e->call == SHMSNOOP_mmap || e->call == SHMSNOOP_ftruncate)
        table_whole(t, SIZE, e->bytes);
    if (e->call == SHMSNOOP_shmat || e->call == SHMSNOOP_shmdt || e->call == SHMSNOOP_mmap)
        table_whole(t, ADDRESS, e->address);
    if (e->fd >= 0)
        table_signed(t, FD, e->fd);
}

/* What has become of it by this call; NULL: nothing in particular. */
static const char *state_of(struct own *own, const struct shmsnoop_event *e)
{
    enum { SHM_DEST_BIT = 01000, PRIVATE = 0, CREAT_EXCL = 03000 };
    const uint32_t what = e->segment.what;
    const bool new = what &SHMSNOOP_SEGMENT &&is_new(own, e);
    if (failed(e))
        return NULL;
    if (what & SHMSNOOP_DESTROYED)
        return "destroyed";
    if (what & SHMSNOOP_SEGMENT && e->segment.mode & SHM_DEST_BIT)
        return "removed";
    if (e->call == SHMSNOOP_unlink || e->call == SHMSNOOP_unlinkat)
        return "removed";
    if (e->call == SHMSNOOP_shmget && (new || e->key == PRIVATE || (e->flags & CREAT_EXCL) == CREAT_EXCL))
        return "created";
    if (what & SHMSNOOP_CREATED || (e->call == SHMSNOOP_mmap && e->fd < 0))
        return "created";
    return NULL;
}

static void set_segment(struct sys_session *s, struct table *t, const struct shmsnoop_event *e)
{
    const struct shmsnoop_segment *g = &e->segment;
    struct own *own = s->own;
    if (g->what & SHMSNOOP_SEGMENT) {
        table_whole(t, ATTACHED, g->attached);
        table_whole(t, CREATOR, g->creator);
        if (e->call != SHMSNOOP_shmget)
            set_mode(t, g->mode);
        if (g->ipc_namespace == own->ipc_namespace)
            creator_of(own, (uint32_t)g->id, 0);
    } else if (e->mapping.inode) {
        uint32_t *creator = creator_of(own, e->mapping.inode, e->mapping.device);
        if (g->what & SHMSNOOP_CREATED || (e->call == SHMSNOOP_mmap && e->fd < 0))
            *creator = e->head.task.pid;
        if (*creator)
            table_whole(t, CREATOR, *creator);
    }
    if (g->what & (SHMSNOOP_SEGMENT | SHMSNOOP_FILE))
        table_whole(t, SEGMENT, g->bytes);
    if (g->what & SHMSNOOP_RESIDENT)
        table_whole(t, RESIDENT, g->resident_bytes);
    else if (g->what & SHMSNOOP_DESTROYED)
        table_whole(t, RESIDENT, 0);
}

/* The key of shmget() as it was asked for, of other calls that of the segment. */
static void set_key(struct table *t, const struct shmsnoop_event *e)
{
    struct buf b = BUF_INIT;
    if (e->call == SHMSNOOP_shmget)
        shm_words_key(&b, e->key);
    else if (e->segment.what & SHMSNOOP_SEGMENT)
        shm_words_key(&b, e->segment.key);
    set_text(t, KEY, &b);
    if (e->id >= 0 || e->call == SHMSNOOP_shmat || (e->call == SHMSNOOP_shmctl && failed(e) && e->id != -1))
        table_signed(t, SHMID, e->id);
}

static void event(struct sys_session *s, struct table *t, const void *data, size_t bytes)
{
    const struct shmsnoop_event *e = data;
    (void)bytes;
    event_columns_row(s, t, &e->head);
    table_text(t, CALL, call_name(e->call));
    table_text(t, ERROR, call_words_error(e->result));
    if (e->duration_ns)
        table_whole(t, DURATION, e->duration_ns);
    set_key(t, e);
    set_arguments(t, e);
    set_name(s, t, e);
    set_segment(s, t, e);
    table_text(t, STATE, state_of(s->own, e));
    resolver_kernel_stack(s, t, KERNEL_STACK, e->head.kernel_stack);
    resolver_user_stack(s, t, USER_STACK, e->head.user_stack, e->head.task.pid, e->head.time_ns);
}

/* ---- what is left at the end ---- */

static bool is_orphan(const struct shm_entry *e)
{
    return !e->mappings && !e->is_open;
}

static void set_pids(struct table *t, const struct shm_entry *e)
{
    enum { PIDS_SHOWN = 16 };
    struct buf b = BUF_INIT;
    for (size_t i = 0; i < e->pids.len && i < PIDS_SHOWN; i++)
        buf_printf(&b, "%s%u", i ? "," : "", e->pids.at[i]);
    if (e->pids.len > PIDS_SHOWN)
        buf_printf(&b, " and %zu others", e->pids.len - PIDS_SHOWN);
    set_text(t, PIDS, &b);
}

static void add_entry(struct sys_session *s, struct table *t, const struct shm_entry *e)
{
    const struct own *own = s->own;
    const struct shm_key key = {e->inode, e->device, 0};
    const size_t seen = map_get(&own->seen, &key, sizeof(key));
    const uint32_t creator = e->creator ? e->creator : seen != MAP_NONE ? own->creators.at[seen] : 0;
    struct buf b = BUF_INIT;
    if (seen == MAP_NONE && !sys_option(s, "all") && (s->settings.config.filters || !is_orphan(e)))
        return;
    table_row(t);
    table_whole(t, EVENT_COLUMNS_TIME, clock_ns(CLOCK_REALTIME));
    table_text(t, STATE, is_orphan(e) ? "orphan" : "in use");
    if (!e->device) {
        shm_words_key(&b, e->key);
        set_text(t, KEY, &b);
        table_signed(t, SHMID, (int64_t)e->inode);
    } else if (e->name) {
        mapping_text_add_printable(&b, e->name);
        set_text(t, NAME, &b);
    }
    if (!e->device || e->mode) {
        table_whole(t, EVENT_COLUMNS_UID, e->uid);
        set_mode(t, e->mode);
    }
    table_whole(t, SEGMENT, e->bytes);
    if (e->bytes_unsure)
        table_mark_unsure(t, SEGMENT);
    if (e->resident_known)
        table_whole(t, RESIDENT, e->resident_bytes);
    table_whole(t, ATTACHED, e->mappings);
    if (creator)
        table_whole(t, CREATOR, creator);
    set_pids(t, e);
}

static void rest(struct sys_session *s, struct table *t)
{
    struct shm_list l;
    shm_list_read(&l);
    vec_each (const struct shm_entry, e, &l.entries)
        add_entry(s, t, e);
    shm_list_release(&l);
}

/* ---- the tool ---- */

static int ready(struct sys_session *s, struct error *e)
{
    uint32_t *shm_device = sys_variable(s, "shm_device", sizeof(*shm_device));
    uint32_t *memfd_device = sys_variable(s, "memfd_device", sizeof(*memfd_device));
    struct own *own = s->own = mem_alloc(sizeof(*own));
    struct stat st;
    (void)e;
    *shm_device = shm_list_device("/dev/shm");
    *memfd_device = shm_list_memfd_device();
    know_segments(own);
    own->ipc_namespace = stat("/proc/self/ns/ipc", &st) ? 0 : (uint32_t)st.st_ino;
    return 0;
}

static void release(struct sys_session *s)
{
    struct own *own = s->own;
    if (!own)
        return;
    map_release(&own->seen);
    map_release(&own->known);
    vec_release(&own->creators);
    free(own);
}

static const struct sys_option options[] = {
    {"all", NULL, "at the end, list all shared memory of the machine with its processes", 0},
    {NULL},
};

static const struct sys_counted counted[] = {
    CALL_COUNTED,
    PATH_COUNTED,
    {SHMSNOOP_NAME_LOST, "name{s} could not be read from {a process's|processes'} memory", "names_lost",
     false},
    {0, NULL, NULL, false}};

static const struct sys_without no_tree = {
    "mm_struct", "mm_mt", "segments of shmdt() and of anonymous memory: this requires Linux 6.1", 0};

#define METHOD(way)                                                                                          \
    .without = &no_tree, .attach = SYS_ATTACH({#way "_enter", "sys_enter", "regs,id", NULL},                 \
                                              {#way "_exit", "sys_exit", "regs,ret", NULL})

static const struct sys_attach_method methods[] = {
    {.name = "tp_btf", METHOD(btf)},
    {.name = "raw_tp", METHOD(raw)},
    {.name = NULL},
};

static const char *const examples[] = {
    "allium sys shmsnoop",
    "show who creates, attaches and removes shared memory; at the end also what no process uses any more",
    "allium sys shmsnoop --all --duration 10ms",
    "list the shared memory that there is now, and who uses it",
    "allium sys shmsnoop --where 'error:*'",
    "show calls that failed",
    "allium sys shmsnoop --stacks user -p 4711",
    "show the code of a process that shares memory",
    NULL,
};

static const struct table_column summary[MEASURE_COLUMNS] = {
    [MEASURE_ROWS] = {"events", TABLE_COUNT, TABLE_WHOLE},
    [MEASURE_TOTAL] = {"duration", TABLE_DURATION, TABLE_WHOLE},
    [MEASURE_MOST] = {"longest", TABLE_DURATION, TABLE_WHOLE},
    [MEASURE_HISTOGRAM] = {"duration_histogram", TABLE_DURATION, TABLE_HISTOGRAM},
};

static const struct sys_measure measure = {
    .doc = "the duration of each call, but for open(), unlink(), ftruncate() and their kin",
    .summary = summary,
    .columns = 1ull << DURATION};

static const char *const questions[] = {
    "Who creates, attaches and removes shared memory, and what fails?",
    "Which segments and files of shared memory does nobody use any more? (--all)",
    "Which code shares memory? (--stacks user)",
    NULL,
};

static const struct sys_explanation explanation = {
    .questions = questions,
    .event = "a call",
    .event_ns = 720,
    .measured = "a pair of shmat() and shmdt(); tp_btf, Linux 6.18 in a busy virtual machine",
    .unseen = "files of shared memory that are renamed, io_uring, and segments that are detached by exit or "
              "munmap()",
};

SYS_OBJECT_OF(shmsnoop);

const struct sys_tool sys_shmsnoop = {
    .name = "shmsnoop",
    .summary = "show who creates, attaches and removes shared memory, and what nobody uses",
    .examples = examples,
    .explanation = &explanation,
    SYS_OBJECT(shmsnoop),
    .methods = methods,
    .columns = columns,
    .n_columns = sizeof(columns) / sizeof(*columns),
    .weight = SEGMENT,
    .measure = &measure,
    .options = options,
    .counted = counted,
    .ring_bytes = 1u << 22,
    .event = event,
    .rest = rest,
    .ready = ready,
    .count_rest = call_events_count_rest,
    .release = release,
};
