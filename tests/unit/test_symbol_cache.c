/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * src/symbol: the cache gives what the files gave, also when it is damaged; damaged programs crash nothing.
 */
#include "test_symbol.h"

#include "symbol/cache.h"

#include <fcntl.h>
#include <zlib.h>

#define ADDRESSES 300

static uint64_t addresses[ADDRESSES];
static struct symbol_frames truth[ADDRESSES];
static struct symbols *without_cache;

static char *cache_file(const struct symbol_module *m)
{
    return mem_strdup(in_dir("cache/%s", hex_of(m, 0)));
}

static struct symbol_module names_module(void)
{
    static char path[TEXT_BYTES];
    snprintf(path, sizeof(path), "%s", in_dir("names"));
    return module_of(path);
}

static int set_up(void **state)
{
    if (set_up_programs(state) != 0)
        return -1;
    struct symbol_module m = names_module();
    uint64_t from = address_of("names", "_init");
    for (size_t i = 0; i < ADDRESSES; i++)
        addresses[i] = from + i * 3;
    without_cache = symbols_new(NULL);
    return symbols_resolve(without_cache, &m, addresses, ADDRESSES, truth);
}

static int tear_down(void **state)
{
    symbols_free(without_cache);
    return remove_programs(state);
}

/** Looks some of the addresses up with the cache, compares them with the truth, and writes the cache. */
static void use_cache(const struct symbol_module *m, size_t from, size_t to)
{
    struct symbol_frames out[ADDRESSES];
    struct symbols *s = symbols_new(in_dir("cache"));
    assert_int_equal(symbols_resolve(s, m, addresses + from, to - from, out), 0);
    for (size_t i = 0; i < to - from; i++)
        if (truth[from + i].at[0].file)
            assert_same(&out[i], &truth[from + i], 1);
    symbols_free(s);
}

static struct buf read_file(const char *path)
{
    struct buf bytes = BUF_INIT;
    FILE *f = fopen(path, "rb");
    assert_non_null(f);
    for (int c; (c = getc(f)) != EOF;)
        buf_addch(&bytes, (char)c);
    fclose(f);
    return bytes;
}

static void write_file(const char *path, const char *bytes, size_t len)
{
    FILE *f = fopen(path, "wb");
    assert_non_null(f);
    assert_int_equal(fwrite(bytes, 1, len, f), len);
    assert_int_equal(fclose(f), 0);
}

static size_t entries_in(const char *path, const struct symbol_module *m)
{
    struct symbol_cache c = {0};
    struct buf bytes = read_file(path);
    int err = symbol_cache_parse(&c, bytes.data, bytes.len, m->build_id, m->build_id_len);
    size_t n = c.entries.len;
    assert_int_equal(err, 0);
    symbol_cache_release(&c);
    return n;
}

static void warm_equals_cold(void **state)
{
    (void)state;
    struct symbol_module m = names_module();
    char *path = cache_file(&m);
    use_cache(&m, 0, ADDRESSES);
    assert_int_equal(entries_in(path, &m), ADDRESSES);
    /* With the program gone, only the cache can know. */
    m.path = "/no/such/names";
    use_cache(&m, 0, ADDRESSES);
    assert_int_equal(entries_in(path, &m), ADDRESSES);
    free(path);
}

static void two_tools(void **state)
{
    (void)state;
    struct symbol_module m = names_module();
    char *path = cache_file(&m);
    struct symbol_frames out[ADDRESSES];
    sh("rm -rf cache");
    struct symbols *a = symbols_new(in_dir("cache")), *b = symbols_new(in_dir("cache"));
    assert_int_equal(symbols_resolve(a, &m, addresses, 200, out), 0);
    assert_int_equal(symbols_resolve(b, &m, addresses + 100, 200, out), 0);
    symbols_free(a);
    symbols_free(b);
    assert_int_equal(entries_in(path, &m), ADDRESSES);
    /* A lock that another tool holds now is respected, one that a crash left is not. The kernel's clock for files can
       be a little ahead of time(); an hour ahead means that the machine's clock was set back. */
    sh("rm -rf cache; mkdir cache; touch %s.new", path);
    use_cache(&m, 0, ADDRESSES);
    assert_int_not_equal(access(path, F_OK), 0);
    sh("touch -d '+2 seconds' %s.new", path);
    use_cache(&m, 0, ADDRESSES);
    assert_int_not_equal(access(path, F_OK), 0);
    const char *left[] = {"-1 hour", "+1 hour"};
    for (size_t i = 0; i < 2; i++) {
        sh("rm -f %s; touch -d '%s' %s.new", path, left[i], path);
        use_cache(&m, 0, ADDRESSES);
        assert_int_equal(entries_in(path, &m), ADDRESSES);
    }
    free(path);
}

static void damaged_cache(void **state)
{
    (void)state;
    struct symbol_module m = names_module();
    char *path = cache_file(&m);
    use_cache(&m, 0, ADDRESSES);
    struct buf good = read_file(path);
    for (size_t i = 0; i < 64; i++) {
        size_t at = i < 32 ? i * 4 : good.len / 32 * (i - 32);
        char *bad = mem_alloc(good.len);
        memcpy(bad, good.data, good.len);
        bad[at] ^= 0x41;
        write_file(path, bad, i % 8 == 7 ? at : good.len);
        use_cache(&m, 0, ADDRESSES);
        free(bad);
    }
    assert_int_equal(entries_in(path, &m), ADDRESSES);
    /* The cache of another build id is not this one's. */
    unsigned char id[SYMBOL_BUILD_ID_MAX];
    struct symbol_cache c = {0};
    memcpy(id, m.build_id, m.build_id_len);
    id[0] ^= 1;
    assert_int_equal(symbol_cache_parse(&c, good.data, good.len, id, m.build_id_len), -EBADMSG);
    symbol_cache_release(&c);
    free(path);
}

/** Walks all that a parsed cache holds, so that a sanitizer sees a bad pointer. */
static size_t touch_all(const struct symbol_cache *c)
{
    size_t sum = 0;
    vec_each (struct symbol_cache_entry, e, &c->entries) {
        assert_false(e->len && e->frames[e->len - 1].inlined);
        for (uint32_t i = 0; i < e->len; i++)
            sum += strlen(e->frames[i].function) + (e->frames[i].file ? strlen(e->frames[i].file) : 0);
    }
    return sum + (c->origin.link ? strlen(c->origin.link) : 0);
}

/** Makes the checksum right and parses; takes the bytes. */
static int parse_forged(struct symbol_cache *c, char *bytes, size_t len, const struct symbol_module *m)
{
    uint32_t sum = (uint32_t)crc32(0, (const Bytef *)bytes + 16, (uInt)(len - 16));
    memcpy(bytes + 12, &sum, sizeof(sum));
    return symbol_cache_parse(c, bytes, len, m->build_id, m->build_id_len);
}

static char *copy_of(const struct buf *bytes, size_t len)
{
    char *copy = mem_alloc(len);
    memcpy(copy, bytes->data, len);
    return copy;
}

static void forged_cache(void **state)
{
    (void)state;
    struct symbol_module m = names_module();
    char *path = cache_file(&m);
    use_cache(&m, 0, ADDRESSES);
    struct buf good = read_file(path);
    uint64_t seed = 7;
    size_t taken = 0;
    struct symbol_cache c = {0};
    char *unended = copy_of(&good, good.len);
    unended[good.len - 1] = 'x';
    assert_int_equal(parse_forged(&c, unended, good.len, &m), -EBADMSG);
    for (int i = 0; i < 20000; i++) {
        char *bytes = copy_of(&good, good.len);
        for (int k = 0; k < 3; k++) {
            seed = seed * 6364136223846793005u + 1442695040888963407u;
            size_t limit = k ? good.len : 128;
            bytes[16 + (seed >> 33) % (limit - 16)] = (char)(seed >> (k ? 20 : 28));
        }
        size_t len = i % 5 ? good.len : 16 + (seed >> 33) % (good.len - 16);
        if (parse_forged(&c, bytes, len, &m) == 0)
            taken += touch_all(&c) > 0;
        symbol_cache_release(&c);
    }
    assert_true(taken > 100); /* else the checksum stood in the way */
    buf_release(&good);
    free(path);
}

static void debug_info_arrives(void **state)
{
    (void)state;
    sh("rm -rf cache late && mkdir late && objcopy --only-keep-debug names late/names.debug && cp names "
       "late/names && "
       "strip late/names && cd late && objcopy --add-gnu-debuglink=names.debug names && mv names.debug ..");
    struct symbol_module m = module_of(in_dir("late/names"));
    struct symbols *s = symbols_new(in_dir("cache"));
    uint64_t at = address_of("names", "mark_hidden");
    assert_null(resolve(s, &m, at, 0).at[0].file);
    symbols_free(s);
    sh("mv names.debug late/");
    s = symbols_new(in_dir("cache"));
    assert_string_equal(resolve(s, &m, at, 0).at[0].function, "shop::(anonymous namespace)::hidden");
    symbols_free(s);
    /* And stays known when it is removed again. */
    sh("rm late/names.debug");
    s = symbols_new(in_dir("cache"));
    assert_non_null(resolve(s, &m, at, 0).at[0].file);
    symbols_free(s);
}

static void useless_cache_dir(void **state)
{
    (void)state;
    struct symbol_module m = names_module();
    static const char *const dirs[] = {"/proc/no/such/dir", "/dev/null", ""};
    struct symbol_frames out[ADDRESSES];
    for (size_t i = 0; i < 3; i++) {
        struct symbols *s = symbols_new(dirs[i]);
        assert_int_equal(symbols_resolve(s, &m, addresses, ADDRESSES, out), 0);
        assert_same(out, truth, ADDRESSES);
        symbols_free(s);
    }
}

static void damaged_programs(void **state)
{
    (void)state;
    static const char *const programs_to_damage[] = {"inline", "names"};
    uint64_t seed = 11;
    for (size_t p = 0; p < 2; p++) {
        struct buf good = read_file(in_dir("%s", programs_to_damage[p]));
        for (int i = 0; i < 150; i++) {
            char *bad = mem_alloc(good.len);
            memcpy(bad, good.data, good.len);
            for (int k = 0; k < 12; k++) {
                seed = seed * 6364136223846793005u + 1442695040888963407u;
                size_t at = (seed >> 33) % good.len;
                bad[k % 3 ? at : good.len - 1 - at / 4] = (char)(k % 4 ? seed >> 24 : 0xff);
            }
            write_file(in_dir("damaged"), bad, i % 10 ? good.len : (seed >> 33) % good.len);
            struct symbol_frames out[ADDRESSES];
            struct symbols *s = symbols_new(NULL);
            symbols_resolve(s, &(struct symbol_module){.path = in_dir("damaged")}, addresses, ADDRESSES, out);
            for (size_t k = 0; k < ADDRESSES; k++)
                assert_true(out[k].len && out[k].at[0].function[0]);
            symbols_free(s);
            free(bad);
        }
        buf_release(&good);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST("a warm cache gives what the files gave, even when they are gone", warm_equals_cold),
        TEST("two tools add to one cache, and a crash leaves no lock behind", two_tools),
        TEST("a damaged cache is looked up anew, and mended", damaged_cache),
        TEST("a forged cache with a right checksum reads nothing out of bounds", forged_cache),
        TEST("debug information that was installed later is used", debug_info_arrives),
        TEST("a cache directory that cannot be used costs nothing but time", useless_cache_dir),
        TEST("damaged programs give names or offsets, and no crash", damaged_programs),
    };
    return cmocka_run_group_tests_name("symbol cache", tests, set_up, tear_down);
}
