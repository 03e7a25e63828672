/* SPDX-License-Identifier: BSD-2-Clause */
#include "view/formats/pprof.h"

#include <errno.h>
#include <math.h>
#include <string.h>
#include <zlib.h>

#include "model/profile/rollup.h"
#include "view/formats/proto.h"
#include "view/profile/profile_summary.h"
#include "view/text/notes.h"
#include "view/text/text.h"

/* Field numbers of profile.proto: of Profile itself, then of the messages in it. */
enum { FIELD_SAMPLE_TYPE = 1, FIELD_SAMPLE, FIELD_MAPPING, FIELD_LOCATION, FIELD_FUNCTION, FIELD_STRING };
enum { FIELD_TIME = 9, FIELD_DURATION, FIELD_PERIOD_TYPE, FIELD_PERIOD, FIELD_COMMENT, FIELD_DEFAULT };
enum { TYPE_TYPE = 1, TYPE_UNIT };
enum { SAMPLE_LOCATIONS = 1, SAMPLE_VALUES, SAMPLE_LABEL };
enum { LABEL_KEY = 1, LABEL_TEXT, LABEL_NUMBER, LABEL_UNIT };
enum { MAPPING_ID = 1, MAPPING_START, MAPPING_LIMIT, MAPPING_OFFSET, MAPPING_FILE, MAPPING_BUILD_ID };
enum { MAPPING_HAS_FUNCTIONS = 7, MAPPING_HAS_FILES, MAPPING_HAS_LINES, MAPPING_HAS_INLINED };
enum { LOCATION_ID = 1, LOCATION_MAPPING, LOCATION_ADDRESS, LOCATION_LINE };
enum { LINE_FUNCTION = 1, LINE_LINE };
enum { FUNCTION_ID = 1, FUNCTION_NAME, FUNCTION_SYSTEM_NAME, FUNCTION_FILE };

#define VALUES 4 /* alloc_objects, alloc_space, inuse_objects, inuse_space */

struct sample {
    size_t locations, n_locations; /* in `sample_locations` */
    uint8_t size_class;
    uint32_t image; /* PROFILE_NONE: there is only one */
    double values[VALUES];
};

struct writer {
    const struct profile *p;
    const struct pprof_options *o;
    const uint32_t *same; /* locations of the same code */
    struct buf out, message, part;
    struct map strings, functions, locations, samples;
    size_t n_strings, n_functions, n_locations;
    struct VEC(struct sample) taken;
    struct VEC(uint64_t) sample_locations; /* ids */
    uint64_t *mapping_ids;                 /* by module; 0: not used */
    uint8_t *mapping_named, *mapping_inlined;
    uint64_t n_mappings;
};

/* ---- strings, functions, locations: written once, when they are first met ---- */

static uint64_t string_of(struct writer *w, const char *text)
{
    static const struct text_style utf8 = {.utf8 = true};
    struct buf clean = BUF_INIT;
    bool added;
    text_add_name(&clean, &utf8, text);
    size_t at = map_put(&w->strings, buf_str(&clean), clean.len, w->n_strings, &added);
    if (added) {
        proto_bytes(&w->out, FIELD_STRING, buf_str(&clean), clean.len);
        w->n_strings++;
    }
    buf_release(&clean);
    return at;
}

static uint64_t function_of(struct writer *w, const char *name, const char *file)
{
    struct buf m = BUF_INIT;
    uint64_t key[2] = {string_of(w, name), string_of(w, file)};
    bool added;
    uint64_t id = map_put(&w->functions, key, sizeof(key), w->n_functions + 1, &added);
    if (!added)
        return id;
    w->n_functions++;
    proto_number(&m, FUNCTION_ID, id);
    /* No system_name: pprof would take the name for a mangled one, and cut off template arguments. */
    proto_number(&m, FUNCTION_NAME, key[0]);
    proto_number(&m, FUNCTION_FILE, key[1]);
    proto_message(&w->out, FIELD_FUNCTION, &m);
    buf_release(&m);
    return id;
}

static void use_module(struct writer *w, uint32_t module)
{
    if (!w->mapping_ids[module])
        w->mapping_ids[module] = ++w->n_mappings;
}

static void add_line(struct writer *w, struct buf *location, const struct frame *f)
{
    char scratch[FRAME_NAME_BYTES];
    struct buf line = BUF_INIT;
    const char *name = frame_function(w->p, f, scratch);
    proto_number(&line, LINE_FUNCTION, function_of(w, name, frame_file(w->p, f)));
    proto_number(&line, LINE_LINE, frame_line(w->p, f));
    proto_message(location, LOCATION_LINE, &line);
    buf_release(&line);
}

/*
 * Adds the address of the code in the process. For a return address it is one byte less, because the return address
 * may lie behind its function.
 */
static void add_address(struct writer *w, struct buf *location, const struct profile_location *l)
{
    const struct profile_module *m = &w->p->modules.at[l->module];
    use_module(w, l->module);
    proto_number(location, LOCATION_MAPPING, w->mapping_ids[l->module]);
    proto_number(location, LOCATION_ADDRESS, l->address + m->bias - (l->exact ? 0 : 1));
    w->mapping_named[l->module] |= l->n_lines > 0;
    w->mapping_inlined[l->module] |= l->n_lines > 1;
}

/* Returns the id of the location of n frames of the same code, innermost inlined first. */
static uint64_t location_of(struct writer *w, const struct frame *f, size_t n)
{
    struct buf m = BUF_INIT;
    bool added, code = f->location != PROFILE_NONE;
    uint64_t key = code ? w->same[f->location] : (uint64_t)1 << 32 | f->end;
    uint64_t id = map_put_u64(&w->locations, key, w->n_locations + 1, &added);
    if (!added)
        return id;
    w->n_locations++;
    proto_number(&m, LOCATION_ID, id);
    if (code && w->p->locations.at[f->location].module != PROFILE_NONE)
        add_address(w, &m, &w->p->locations.at[f->location]);
    for (size_t i = 0; i < n; i++)
        add_line(w, &m, &f[i]);
    proto_message(&w->out, FIELD_LOCATION, &m);
    buf_release(&m);
    return id;
}

/* ---- samples ---- */

static void add_estimates(double values[static VALUES], const struct profile_cell *c)
{
    const struct profile_sums of[] = {c->allocated, profile_live(c)};
    for (int i = 0; i < 2; i++) {
        struct estimate count = {0}, bytes = {0};
        profile_estimate_count(&count, c, &of[i]);
        profile_estimate_bytes(&bytes, c, &of[i]);
        values[2 * i] += count.value;
        values[2 * i + 1] += bytes.value;
    }
}

/* Appends the ids of a stack's locations, leaf first. */
static void add_locations(struct writer *w, struct frames *frames, uint32_t stack)
{
    frames_of(frames, w->p, stack);
    for (size_t i = 0, n; i < frames->len; i += n) {
        const struct frame *f = &frames->at[i];
        bool code = f->location != PROFILE_NONE;
        n = code && w->p->locations.at[f->location].n_lines ? w->p->locations.at[f->location].n_lines : 1;
        uint64_t id = location_of(w, f, n);
        *vec_push(&w->sample_locations) = id;
    }
}

static void take_cell(struct writer *w, struct frames *frames, uint32_t cell)
{
    const struct profile_cell *c = &w->p->cells.at[cell];
    size_t first = w->sample_locations.len;
    uint32_t image = w->p->images.len > 1 ? c->image : PROFILE_NONE;
    struct buf key = BUF_INIT;
    bool added;
    add_locations(w, frames, c->stack);
    size_t n = w->sample_locations.len - first;
    buf_add(&key, &image, sizeof(image));
    buf_add(&key, &c->size_class, sizeof(c->size_class));
    buf_add(&key, w->sample_locations.at + first, n * sizeof(*w->sample_locations.at));
    size_t at = map_put(&w->samples, key.data, key.len, w->taken.len, &added);
    if (added)
        *vec_push(&w->taken) = (struct sample){
            .locations = first, .n_locations = n, .size_class = c->size_class, .image = image};
    else
        w->sample_locations.len = first;
    add_estimates(w->taken.at[at].values, c);
    buf_release(&key);
}

static void write_label(struct writer *w, const char *key, const char *text, uint64_t number,
                        const char *unit)
{
    proto_number(&w->part, LABEL_KEY, string_of(w, key));
    if (text)
        proto_number(&w->part, LABEL_TEXT, string_of(w, text));
    proto_number(&w->part, LABEL_NUMBER, number);
    if (unit)
        proto_number(&w->part, LABEL_UNIT, string_of(w, unit));
    proto_message(&w->message, SAMPLE_LABEL, &w->part);
}

static void write_sample(struct writer *w, const struct sample *s)
{
    uint64_t values[VALUES], any = 0;
    for (int i = 0; i < VALUES; i++)
        any |= values[i] = (uint64_t)llround(s->values[i]);
    if (!any)
        return;
    proto_numbers(&w->message, SAMPLE_LOCATIONS, w->sample_locations.at + s->locations, s->n_locations);
    proto_numbers(&w->message, SAMPLE_VALUES, values, VALUES);
    write_label(w, "bytes", NULL, 1ull << s->size_class, "bytes");
    if (s->image != PROFILE_NONE) {
        const struct profile_image *i = &w->p->images.at[s->image];
        struct buf process = BUF_INIT;
        buf_printf(&process, "%s (%d)", profile_text(w->p, i->comm), i->pid);
        write_label(w, "process", buf_str(&process), 0, NULL);
        buf_release(&process);
    }
    proto_message(&w->out, FIELD_SAMPLE, &w->message);
}

static void write_samples(struct writer *w)
{
    struct frames frames = {0};
    for (uint32_t i = 0; i < w->p->cells.len; i++)
        if (!w->o->keep || w->o->keep(w->o->arg, w->p, i))
            take_cell(w, &frames, i);
    vec_each (const struct sample, s, &w->taken)
        write_sample(w, s);
    vec_release(&frames);
}

/* ---- the rest ---- */

/* The main program's module comes first, even if no stack has it. */
static void use_main_module(struct writer *w, const struct profile_summary *f)
{
    if (f->main_image == PROFILE_NONE)
        return;
    for (uint32_t i = 0; i < w->p->modules.len; i++)
        if (w->p->modules.at[i].path == w->p->images.at[f->main_image].exe) {
            use_module(w, i);
            return;
        }
}

static void write_mapping(struct writer *w, uint32_t module)
{
    const struct profile_module *m = &w->p->modules.at[module];
    proto_number(&w->message, MAPPING_ID, w->mapping_ids[module]);
    proto_number(&w->message, MAPPING_START, m->start);
    proto_number(&w->message, MAPPING_LIMIT, m->end);
    proto_number(&w->message, MAPPING_FILE, string_of(w, profile_text(w->p, m->path)));
    proto_number(&w->message, MAPPING_BUILD_ID, string_of(w, profile_text(w->p, m->build_id)));
    /* Without all three flags, pprof searches for names itself, in any file with this path on its own machine. */
    proto_number(&w->message, MAPPING_HAS_FUNCTIONS, w->mapping_named[module]);
    proto_number(&w->message, MAPPING_HAS_FILES, w->mapping_named[module]);
    proto_number(&w->message, MAPPING_HAS_LINES, w->mapping_named[module]);
    proto_number(&w->message, MAPPING_HAS_INLINED, w->mapping_inlined[module]);
    proto_message(&w->out, FIELD_MAPPING, &w->message);
}

static void write_mappings(struct writer *w)
{
    for (uint64_t id = 1; id <= w->n_mappings; id++)
        for (uint32_t i = 0; i < w->p->modules.len; i++)
            if (w->mapping_ids[i] == id)
                write_mapping(w, i);
}

static void write_type(struct writer *w, uint32_t field, const char *type, const char *unit)
{
    proto_number(&w->message, TYPE_TYPE, string_of(w, type));
    proto_number(&w->message, TYPE_UNIT, string_of(w, unit));
    proto_message(&w->out, field, &w->message);
}

/* `go tool pprof -comments` prints them. */
static void write_comments(struct writer *w, const struct profile_summary *f)
{
    static const struct text_style utf8 = {.utf8 = true};
    struct buf notes = BUF_INIT;
    if (f->period_high > 1)
        notes_add(&notes, "estimates from samples; `allium report` has their intervals");
    profile_summary_note_missing(&notes, w->p, f, &utf8);
    for (char *line = notes.data, *end; line && (end = strchr(line, '\n')); line = end + 1) {
        struct buf comment = BUF_INIT;
        *end = '\0';
        buf_printf(&comment, "allium: %s", line);
        proto_number(&w->out, FIELD_COMMENT, string_of(w, buf_str(&comment)));
        buf_release(&comment);
    }
    buf_release(&notes);
}

static void write_head(struct writer *w, const struct profile_summary *f)
{
    string_of(w, "");
    write_type(w, FIELD_SAMPLE_TYPE, "alloc_objects", "count");
    write_type(w, FIELD_SAMPLE_TYPE, "alloc_space", "bytes");
    write_type(w, FIELD_SAMPLE_TYPE, "inuse_objects", "count");
    write_type(w, FIELD_SAMPLE_TYPE, "inuse_space", "bytes");
    write_type(w, FIELD_PERIOD_TYPE, "space", "bytes");
    proto_number(&w->out, FIELD_PERIOD, f->period_high);
    proto_number(&w->out, FIELD_DEFAULT, string_of(w, "inuse_space"));
    proto_number(&w->out, FIELD_TIME, f->taken_ns);
    proto_number(&w->out, FIELD_DURATION, f->taken_ns > f->began_ns ? f->taken_ns - f->began_ns : 0);
    write_comments(w, f);
}

static void compress_to(struct sink *out, const struct buf *plain)
{
    unsigned char chunk[16384];
    z_stream z = {.next_in = (unsigned char *)plain->data};
    size_t left = plain->len;
    int end = deflateInit2(&z, Z_DEFAULT_COMPRESSION, Z_DEFLATED, 15 + 16, 8, Z_DEFAULT_STRATEGY);
    while (end == Z_OK) {
        if (!z.avail_in) {
            z.avail_in = left < 1u << 30 ? (unsigned)left : 1u << 30;
            left -= z.avail_in;
        }
        z.next_out = chunk;
        z.avail_out = sizeof(chunk);
        end = deflate(&z, left ? Z_NO_FLUSH : Z_FINISH);
        sink_write(out, chunk, sizeof(chunk) - z.avail_out);
    }
    deflateEnd(&z);
    if (end != Z_STREAM_END && !out->error)
        out->error = -ENOMEM;
}

void pprof_write(struct sink *out, const struct profile *p, const struct pprof_options *o)
{
    struct profile_summary f = profile_summary_of(p);
    uint32_t *same = frames_same_locations(p);
    struct writer w = {.p = p, .o = o, .same = same};
    w.mapping_ids = mem_array(p->modules.len, sizeof(*w.mapping_ids));
    w.mapping_named = mem_array(p->modules.len, 1);
    w.mapping_inlined = mem_array(p->modules.len, 1);
    write_head(&w, &f);
    use_main_module(&w, &f);
    write_samples(&w);
    write_mappings(&w);
    compress_to(out, &w.out);
    free(same);
    free(w.mapping_ids);
    free(w.mapping_named);
    free(w.mapping_inlined);
    buf_release(&w.out);
    buf_release(&w.message);
    buf_release(&w.part);
    map_release(&w.strings);
    map_release(&w.functions);
    map_release(&w.locations);
    map_release(&w.samples);
    vec_release(&w.taken);
    vec_release(&w.sample_locations);
}
