/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * src/view/pprof: `go tool pprof` and a decoder of our own read it, and find the numbers of the rollup.
 */
#include "test_view_truth.h"

#include "view/formats/pprof.h"

#include <errno.h>
#include <sys/wait.h>
#include <unistd.h>

#define GO "/usr/bin/go"

static char dir[] = "/tmp/allium-pprof-XXXXXX";

enum { ALLOC_OBJECTS, ALLOC_SPACE, INUSE_OBJECTS, INUSE_SPACE, INDICES };
static const char *const indices[] = {"alloc_objects", "alloc_space", "inuse_objects", "inuse_space"};

/* A decoder that knows protocol buffers and nothing of Allium. It prints "TYPE FLAT CUM FUNCTION" for each sample
 * type, and fails when the file breaks a rule of profile.proto. */
static const char decoder[] =
    "import gzip, sys\n"
    "def fields(b):\n"
    "    i = 0\n"
    "    def varint():\n"
    "        nonlocal i\n"
    "        v = s = 0\n"
    "        while True:\n"
    "            c = b[i]; i += 1; v |= (c & 127) << s; s += 7\n"
    "            if c < 128: return v\n"
    "    while i < len(b):\n"
    "        tag = varint()\n"
    "        if tag & 7 == 0: yield tag >> 3, varint()\n"
    "        else:\n"
    "            assert tag & 7 == 2, tag\n"
    "            n = varint(); assert i + n <= len(b); i += n; yield tag >> 3, b[i - n:i]\n"
    "def message(b, lists=()):\n"
    "    m = {}\n"
    "    for f, v in fields(b):\n"
    "        if f in lists: m.setdefault(f, []).append(v)\n"
    "        else: m[f] = v\n"
    "    return m\n"
    "def packed(b):\n"
    "    out, v, s = [], 0, 0\n"
    "    for c in b:\n"
    "        v |= (c & 127) << s; s += 7\n"
    "        if c < 128: out.append(v); v = s = 0\n"
    "    return out\n"
    "p = message(gzip.open(sys.argv[1]).read(), (1, 2, 3, 4, 5, 6))\n"
    "text = [t.decode() for t in p[6]]\n"
    "assert text[0] == '' and len(set(text)) == len(text)\n"
    "types = [tuple(text[message(t).get(k, 0)] for k in (1, 2)) for t in p[1]]\n"
    "assert types == [('alloc_objects', 'count'), ('alloc_space', 'bytes'), ('inuse_objects', 'count'), "
    "('inuse_space', 'bytes')], types\n"
    "period = message(p[11]); assert (text[period[1]], text[period[2]]) == ('space', 'bytes')\n"
    "assert text[p[14]] == 'inuse_space'\n"
    "functions = [message(f) for f in p[5]]\n"
    "assert [f[1] for f in functions] == list(range(1, len(functions) + 1))\n"
    "mappings = [message(m) for m in p[3]]\n"
    "assert [m[1] for m in mappings] == list(range(1, len(mappings) + 1))\n"
    "locations = [message(l, (4,)) for l in p[4]]\n"
    "assert [l[1] for l in locations] == list(range(1, len(locations) + 1))\n"
    "names = {}\n"
    "for l in locations:\n"
    "    m = mappings[l[2] - 1] if 2 in l else None\n"
    "    assert m is None or m[2] <= l[3] < m[3], (l, m)\n"
    "    names[l[1]] = [text[functions[message(n)[1] - 1][2]] for n in l[4]]\n"
    "flat, cum = {}, {}\n"
    "for s in map(lambda b: message(b, (3,)), p[2]):\n"
    "    values = packed(s[2]); assert len(values) == 4\n"
    "    stack = [n for l in packed(s[1]) for n in names[l]]\n"
    "    labels = {text[message(l)[1]]: message(l) for l in s[3]}\n"
    "    size = labels['bytes'][3]; assert size & (size - 1) == 0 and text[labels['bytes'][4]] == 'bytes'\n"
    "    for t in range(4):\n"
    "        flat[t, stack[0]] = flat.get((t, stack[0]), 0) + values[t]\n"
    "        for n in set(stack): cum[t, n] = cum.get((t, n), 0) + values[t]\n"
    "for t, n in cum: print(types[t][0], flat.get((t, n), 0), cum[t, n], n)\n"
    "print('main', text[mappings[0][5]], text[mappings[0][6]], p[9], p[10], p[12])\n";

static char *path_of(const char *name)
{
    static char path[128];
    snprintf(path, sizeof(path), "%s/%s", dir, name);
    return path;
}

static void write_profile(const struct profile *p, const struct pprof_options *o)
{
    FILE *f = fopen(path_of("shop.pb.gz"), "wb");
    assert_non_null(f);
    struct sink out = sink_to_file(f);
    pprof_write(&out, p, o);
    assert_int_equal(sink_finish(&out), 0);
    assert_int_equal(fclose(f), 0);
}

/** What a command prints; it must succeed. */
static struct buf output_of(const char *fmt, ...) __attribute__((format(printf, 1, 2)));
static struct buf output_of(const char *fmt, ...)
{
    struct buf command = BUF_INIT, out = BUF_INIT;
    va_list ap;
    buf_printf(&command, "cd %s && export HOME=%s PPROF_TMPDIR=%s TZ=UTC && ", dir, dir, dir);
    va_start(ap, fmt);
    buf_vprintf(&command, fmt, ap);
    va_end(ap);
    FILE *f = popen(buf_str(&command), "r");
    assert_non_null(f);
    for (int c; (c = getc(f)) != EOF;)
        buf_addch(&out, (char)c);
    if (pclose(f) != 0)
        fail_msg("failed: %s\n%s", buf_str(&command), buf_str(&out));
    buf_release(&command);
    return out;
}

static struct buf decode(void)
{
    FILE *f = fopen(path_of("decode.py"), "w");
    assert_non_null(f);
    fputs(decoder, f);
    fclose(f);
    return output_of("python3 decode.py shop.pb.gz");
}

static double truth_of(int index, const struct rollup_values *v)
{
    const struct rollup_value *value = &v->of[index < INUSE_OBJECTS ? ROLLUP_ALLOCATED : ROLLUP_LIVE];
    return index % 2 ? value->bytes.value : value->count.value;
}

/* Functions of one name in several modules are one to pprof. */
static void truth_by_name(const struct rollup *r, int index, const char *name, double *flat, double *cum)
{
    *flat = *cum = 0;
    vec_each (const struct rollup_row, row, &r->rows)
        if (!strcmp(row->name, name)) {
            *flat += truth_of(index, &row->self);
            *cum += truth_of(index, &row->inclusive);
        }
}

static struct rollup *by_function(const struct profile *p)
{
    const struct rollup_options o = {.group = ROLLUP_BY_FUNCTION};
    return rollup_new(p, &o);
}

/** Each sample rounds once, and one name stands for at most as many as there are cells. */
static void assert_rounded(const struct profile *p, double said, double truth, const char *name)
{
    if (fabs(said - truth) > 0.5 * (double)p->cells.len)
        fail_msg("%s: %.17g is not %.17g", name, said, truth);
}

static void our_decoder(void **state)
{
    (void)state;
    struct profile *p = shop(PERIOD);
    const struct pprof_options o = {.keep = NULL};
    write_profile(p, &o);
    struct buf out = decode();
    struct rollup *r = by_function(p);
    int lines = 0;
    for (char *save = NULL, *line = strtok_r(out.data, "\n", &save); line;
         line = strtok_r(NULL, "\n", &save)) {
        char type[32], name[512];
        double said_flat, said_cum, flat, cum;
        if (sscanf(line, "%31s %lf %lf %511[^\n]", type, &said_flat, &said_cum, name) != 4)
            continue;
        for (int i = 0; i < INDICES; i++) {
            if (strcmp(indices[i], type))
                continue;
            truth_by_name(r, i, name, &flat, &cum);
            assert_rounded(p, said_flat, flat, name);
            assert_rounded(p, said_cum, cum, name);
            lines++;
        }
    }
    assert_int_equal(lines, INDICES * (int)r->rows.len);
    rollup_free(r);
    buf_release(&out);
    profile_free(p);
}

static void head(void **state)
{
    (void)state;
    struct profile *p = shop(PERIOD);
    const struct pprof_options o = {.keep = NULL};
    write_profile(p, &o);
    struct buf out = decode(), want = BUF_INIT;
    buf_printf(&want, "main /opt/shop/bin/shop %s %llu %llu %u\n", profile_text(p, p->modules.at[0].build_id),
               (unsigned long long)TAKEN, 133 * SECOND, PERIOD);
    assert_non_null(strstr(buf_str(&out), buf_str(&want)));
    buf_release(&out);
    buf_release(&want);
    profile_free(p);
}

static bool is_not_class_12(void *arg, const struct profile *p, uint32_t cell)
{
    (void)arg;
    return p->cells.at[cell].size_class != 12;
}

static void filtered(void **state)
{
    (void)state;
    struct profile *p = shop(PERIOD);
    const struct pprof_options o = {.keep = is_not_class_12};
    write_profile(p, &o);
    struct buf out = decode();
    assert_null(strstr(buf_str(&out), "json_parse"));
    assert_non_null(strstr(buf_str(&out), "node_new"));
    buf_release(&out);
    profile_free(p);
}

static void nothing(void **state)
{
    (void)state;
    struct profile *p = profile_new();
    const struct pprof_options o = {.keep = NULL};
    struct buf bytes = BUF_INIT;
    struct sink out = sink_to_buf(&bytes);
    pprof_write(&out, p, &o);
    assert_int_equal(sink_finish(&out), 0);
    assert_true(bytes.len > 18 && !memcmp(bytes.data, "\x1f\x8b", 2));
    buf_release(&bytes);
    profile_free(p);
}

static void full_disk(void **state)
{
    (void)state;
    struct profile *p = shop(PERIOD);
    const struct pprof_options o = {.keep = NULL};
    FILE *f = fopen("/dev/full", "wb");
    struct sink out = sink_to_file(f);
    pprof_write(&out, p, &o);
    assert_int_equal(sink_finish(&out), -ENOSPC);
    fclose(f);
    profile_free(p);
}

/* ---- go tool pprof ---- */

static void need_go(void)
{
    if (access(GO, X_OK))
        fail_msg("%s is missing: apt-get install golang-go", GO);
}

/** The next word, which is a number if `number` is not NULL: "12", "12B", "3.5%". NULL: it is none. */
static const char *skip_word(const char *line, double *number)
{
    line += strspn(line, " ");
    char *end;
    double value = strtod(line, &end);
    if (end == line || (number && strcspn(end, " ") > 1))
        return NULL;
    if (number)
        *number = value;
    return line + strcspn(line, " ");
}

/** Takes "flat flat% sum% cum cum% name" apart. */
static bool parse_top(const char *line, double *flat, double *cum, char name[static 512])
{
    double *const words[] = {flat, NULL, NULL, cum, NULL};
    for (size_t i = 0; i < 5 && line; i++)
        line = skip_word(line, words[i]);
    if (!line || strncmp(line, "  ", 2))
        return false;
    snprintf(name, 512, "%s", line + 2);
    char *inlined = strstr(name, " (inline)");
    if (inlined)
        *inlined = '\0';
    return true;
}

/** Compares what -top says with the rollup; returns how many functions there were. */
static int compare_top(const struct profile *p, const struct rollup *r, int index)
{
    struct buf out = output_of(GO " tool pprof -top -unit=B -nodecount=0 -nodefraction=0 -edgefraction=0 "
                                  "-sample_index=%s shop.pb.gz",
                               indices[index]);
    int lines = 0;
    for (char *save = NULL, *line = strtok_r(out.data, "\n", &save); line;
         line = strtok_r(NULL, "\n", &save)) {
        double said_flat, said_cum, flat, cum;
        char name[512];
        if (!parse_top(line, &said_flat, &said_cum, name))
            continue;
        truth_by_name(r, index, name, &flat, &cum);
        assert_rounded(p, said_flat, flat, name);
        assert_rounded(p, said_cum, cum, name);
        lines++;
    }
    buf_release(&out);
    return lines;
}

/* pprof leaves out what is 0. */
static int rows_above_zero(const struct rollup *r, int index)
{
    int rows = 0;
    vec_each (const struct rollup_row, row, &r->rows)
        rows += truth_of(index, &row->inclusive) > 0;
    return rows;
}

static void compare_all(const struct profile *p)
{
    const struct pprof_options o = {.keep = NULL};
    write_profile(p, &o);
    struct rollup *r = by_function(p);
    for (int i = 0; i < INDICES; i++)
        assert_int_equal(compare_top(p, r, i), rows_above_zero(r, i));
    rollup_free(r);
}

static void go_top(void **state)
{
    (void)state;
    need_go();
    struct profile *p = shop(1);
    compare_all(p);
    profile_free(p);
}

static void go_top_sampled(void **state)
{
    (void)state;
    need_go();
    struct profile *p = shop(PERIOD);
    compare_all(p);
    profile_free(p);
}

static void go_traces(void **state)
{
    (void)state;
    need_go();
    struct profile *p = shop(1);
    const struct pprof_options o = {.keep = NULL};
    write_profile(p, &o);
    struct buf out = output_of(GO " tool pprof -traces shop.pb.gz");
    assert_non_null(strstr(buf_str(&out), "File: shop\n"));
    assert_non_null(strstr(buf_str(&out), "Type: inuse_space\n"));
    assert_non_null(strstr(buf_str(&out), "Duration: 133s"));
    assert_non_null(strstr(buf_str(&out), "     bytes:  4kB\n"
                                          "      64kB   value_new (inline)\n"
                                          "             json_parse\n"
                                          "             load_catalogue\n"
                                          "             main\n"));
    buf_release(&out);
    profile_free(p);
}

static void go_processes(void **state)
{
    (void)state;
    need_go();
    struct profile *p = shop(1);
    uint32_t image = add_image(p, "worker", 4343, "/opt/shop/bin/shop"), m = (uint32_t)p->modules.len;
    add_shop_modules(p, SHOP_AT + 0x5000000);
    add_shop_objects(p, image, add_shop_stacks(p, m), 1);
    compare_all(p);
    struct buf out = output_of(GO " tool pprof -tags shop.pb.gz");
    assert_non_null(strstr(buf_str(&out), "shop (4242)"));
    assert_non_null(strstr(buf_str(&out), "worker (4343)"));
    buf_release(&out);
    out = output_of(GO " tool pprof -raw shop.pb.gz");
    assert_non_null(strstr(buf_str(&out), "1: 0x555555554000/0x555555654000/0x0 /opt/shop/bin/shop "));
    assert_non_null(strstr(buf_str(&out), "0x7ffff700400f M=2 value_new /src/json/value.h:12"));
    assert_non_null(strstr(buf_str(&out), "[FN][FL][LN][IN]"));
    buf_release(&out);
    profile_free(p);
}

static int make_dir(void **state)
{
    (void)state;
    return mkdtemp(dir) ? 0 : -1;
}

static int remove_dir(void **state)
{
    (void)state;
    char command[128];
    snprintf(command, sizeof(command), "rm -rf %s", dir);
    return system(command);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST("a decoder of its own finds a sound file, and flat and cum are self and inclusive", our_decoder),
        TEST("the main program comes first, with build id, time, duration and period", head),
        TEST("cells that are filtered out are not in it", filtered),
        TEST("an empty profile is a file too", nothing),
        TEST("a full disk is reported", full_disk),
        TEST("go tool pprof -top has the rollup's numbers, of each sample type", go_top),
        TEST("go tool pprof -top has them unsampled", go_top_sampled),
        TEST("go tool pprof -traces has the stacks, leaf and innermost inlined first", go_traces),
        TEST("go tool pprof tells processes apart, and one module for the code of both", go_processes),
    };
    return cmocka_run_group_tests(tests, make_dir, remove_dir);
}
