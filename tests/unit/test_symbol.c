/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * src/symbol: programs named as they are, stripped, moved, replaced, and by other tools.
 */
#include "test_symbol.h"

static void inlined_calls(void **state)
{
    (void)state;
    struct symbols *s = symbols_new(NULL);
    struct symbol_module m = {.path = in_dir("inline")};
    assert_inlined_chain(s, &m);
    struct symbol_frames f = resolve(s, &m, address_of("inline", "mark_outer"), 0);
    assert_int_equal(f.len, 1);
    assert_string_equal(f.at[0].function, "outer");
    assert_int_equal(f.at[0].line, line_of("symbol_inline.c", "line: outer */"));
    assert_string_equal(function_at(s, m.path, address_of("inline", "mark_nested")), "nested");
    assert_string_equal(function_at(s, m.path, address_of("inline", "mark_alias")), "alias");
    symbols_free(s);
}

static void other_dwarfs(void **state)
{
    (void)state;
    static const char *const flags[] = {"-gdwarf-4", "-gsplit-dwarf", "-gdwarf-4 -gsplit-dwarf", "-flto",
                                        "-gz"};
    for (size_t i = 0; i < sizeof(flags) / sizeof(flags[0]); i++) {
        sh("gcc -g -O2 %s -o other %s/symbol_inline.c", flags[i], programs);
        uint64_t at = address_of("other", "mark_innermost");
        struct symbols *s = symbols_new(NULL);
        struct symbol_frames f = resolve(s, &(struct symbol_module){.path = in_dir("other")}, at, 0);
        assert_int_equal(f.len, 3);
        assert_string_equal(f.at[1].function, "middle");
        assert_int_equal(f.at[1].line, line_of("symbol_inline.c", "line: middle"));
        assert_int_equal(f.at[2].line, line_of("symbol_inline.c", "line: outer calls"));
        assert_string_equal(strrchr(f.at[2].file, '/'), "/symbol_inline.c");
        symbols_free(s);
    }
}

static void cxx_names(void **state)
{
    (void)state;
    static const char *const expected[][2] = {{"mark_constructor", "shop::Box<int>::Box"},
                                              {"mark_template", "shop::Box<int>::as<double>"},
                                              {"mark_conversion", "shop::Box<int>::operator bool"},
                                              {"mark_operator", "shop::operator+"},
                                              {"mark_hidden", "shop::(anonymous namespace)::hidden"},
                                              {"mark_lambda", "through_lambda::{lambda}::operator()"}};
    struct symbols *s = symbols_new(NULL);
    for (size_t i = 0; i < sizeof(expected) / sizeof(expected[0]); i++)
        assert_string_equal(function_at(s, in_dir("names"), address_of("names", expected[i][0])),
                            expected[i][1]);
    sh("objcopy --strip-debug names names-symtab");
    for (size_t i = 0; i < 5; i++)
        assert_string_equal(function_at(s, in_dir("names-symtab"), address_of("names", expected[i][0])),
                            expected[i][1]);
    symbols_free(s);
}

static void raw_names(void **state)
{
    (void)state;
    static const char *const expected[][2] = {
        {"memcpy@@GLIBC_2.14", "memcpy"},
        {"work.part.0", "work"},
        {"work.constprop.3.isra.12.cold", "work"},
        {"work.llvm.1234567890", "work"},
        {"_ZN1AIiE1fIcEEvT_.isra.0.cold", "A<int>::f<char>"},
        {"__GI___libc_malloc", "__libc_malloc"},
        {"inner.0", "inner.0"},
        {"part.0", "part.0"},
        {"main.(*T).clone", "main.(*T).clone"},
        {".cold", ".cold"},
        {"@", "@"},
        {"_Z", "_Z"},
        {"_ZN4core3ptr13drop_in_place17h0123456789abcdefE", "core::ptr::drop_in_place"},
        {"_RNvCskwGfYPst2Cb_3foo3bar", "foo::bar"},
        {"_ZThn16_N3FooD0Ev", "non-virtual thunk to Foo::~Foo()"},
        {"bad\x1b[2Jname\n", "bad?[2Jname?"},
    };
    struct symbol_names names = {0};
    for (size_t i = 0; i < sizeof(expected) / sizeof(expected[0]); i++)
        assert_string_equal(symbol_names_function(&names, expected[i][0]), expected[i][1]);
    assert_null(symbol_names_function(&names, ""));
    assert_null(symbol_names_function(&names, NULL));
    /* Each argument has four times the length of the one before: 4^17 when printed. */
    struct buf bomb = BUF_INIT;
    buf_addstr(&bomb, "_Z1fI1AIiiE");
    for (const char *c = "13579BDFHJLNPRTVX"; *c; c++)
        buf_printf(&bomb, "1BIS%c_S%c_S%c_S%c_E", *c, *c, *c, *c);
    buf_addstr(&bomb, "Evv");
    assert_string_equal(symbol_names_function(&names, buf_str(&bomb)), buf_str(&bomb));
    assert_int_equal(strncmp(symbol_names_function(&names, "_Z1fI1AIiiE1BIS1_S1_EEvv"),
                             "f<A<int, int>, B<A<int, int>, A<int", 35),
                     0);
    buf_release(&bomb);
    symbol_names_release(&names);
}

static void paths_are_short(void **state)
{
    (void)state;
    static const char *const expected[][3] = {
        {"/build", "a/b.c", "/build/a/b.c"},
        {"/build", "./a//./b.c", "/build/a/b.c"},
        {"/build/x", "../a.c", "/build/a.c"},
        {"/", "../../a.c", "/a.c"},
        {"./nptl", "../nptl/x.c", "nptl/x.c"},
        {"./nptl", "./nptl/x.c", "nptl/x.c"},
        {"/b", "/usr/x/../include/y.h", "/usr/include/y.h"},
        {NULL, "../../a.c", "../../a.c"},
    };
    struct symbol_names names = {0};
    for (size_t i = 0; i < sizeof(expected) / sizeof(expected[0]); i++)
        assert_string_equal(symbol_names_path(&names, expected[i][0], expected[i][1]), expected[i][2]);
    assert_null(symbol_names_path(&names, "/b", "???"));
    assert_null(symbol_names_path(&names, "/b", NULL));
    symbol_names_release(&names);
}

static void separate_debug_file(void **state)
{
    (void)state;
    static const char *const places[] = {"sep/inline.debug", "sep/.debug/inline.debug", NULL};
    sh("mkdir -p sep/.debug && objcopy --only-keep-debug inline inline.debug && "
       "cp inline sep/inline && strip sep/inline && cd sep && objcopy --add-gnu-debuglink=../inline.debug "
       "inline");
    sh("cp sep/inline sep/inline-no-id && objcopy --remove-section .note.gnu.build-id sep/inline-no-id");
    for (size_t i = 0; places[i]; i++) {
        sh("cp inline.debug %s", places[i]);
        struct symbols *s = symbols_new(NULL);
        assert_inlined_chain(s, &(struct symbol_module){.path = in_dir("sep/inline")});
        assert_inlined_chain(s, &(struct symbol_module){.path = in_dir("sep/inline-no-id")});
        symbols_free(s);
        sh("rm %s", places[i]);
    }
    struct symbol_module m = module_of(in_dir("inline"));
    m.root = in_dir("box");
    m.path = "/gone/inline (deleted)";
    sh("mkdir -p box/usr/lib/debug/.build-id/%02x", m.build_id[0]);
    sh("cp inline.debug box/usr/lib/debug/.build-id/%02x/%s.debug", m.build_id[0], hex_of(&m, 1));
    struct symbols *s = symbols_new(NULL);
    assert_inlined_chain(s, &m);
    symbols_free(s);
}

static void wrong_debug_file(void **state)
{
    (void)state;
    sh("mkdir -p wrong && objcopy --only-keep-debug names wrong/inline.debug && cp sep/inline "
       "sep/inline-no-id wrong");
    struct symbols *s = symbols_new(NULL);
    uint64_t at = address_of("inline", "mark_outer");
    char expected[64];
    snprintf(expected, sizeof(expected), "inline+0x%" PRIx64, at);
    assert_string_equal(function_at(s, in_dir("wrong/inline"), at), expected);
    snprintf(expected, sizeof(expected), "inline-no-id+0x%" PRIx64, at);
    assert_string_equal(function_at(s, in_dir("wrong/inline-no-id"), at), expected);
    symbols_free(s);
}

static void dwz_file(void **state)
{
    (void)state;
    if (system("command -v dwz >/dev/null") != 0)
        skip();
    sh("mkdir -p dwz/opt && g++ -g -O1 -o dwz/opt/other %s/symbol_names.cc && cp names dwz/opt/names && cd "
       "dwz/opt && "
       "dwz -m common -M /opt/symbol-test/common other names && mkdir symbol-test && mv common symbol-test "
       "&& "
       "readelf -S names | grep -q debugaltlink",
       programs);
    struct symbol_module m = {.path = "/opt/names", .root = in_dir("dwz")};
    struct symbols *s = symbols_new(in_dir("cache"));
    uint64_t at = address_of("names", "mark_lambda");
    assert_string_equal(resolve(s, &m, at, 0).at[0].function, "through_lambda::{lambda}::operator()");
    symbols_free(s);
    /* Without it, what is left is not worth keeping. */
    sh("rm -rf dwz/opt/symbol-test cache");
    s = symbols_new(in_dir("cache"));
    struct symbol_frames f = resolve(s, &m, at, 0);
    assert_string_equal(f.at[f.len - 1].function, "main");
    symbols_free(s);
    assert_int_not_equal(access(in_dir("cache"), F_OK), 0);
}

static void replaced_file(void **state)
{
    (void)state;
    struct symbol_module m = module_of(in_dir("inline"));
    m.path = in_dir("names");
    struct symbols *s = symbols_new(NULL);
    struct symbol_frames f = resolve(s, &m, 0x1234, -ESTALE);
    assert_int_equal(f.len, 1);
    assert_string_equal(f.at[0].function, "names+0x1234");
    assert_null(f.at[0].file);
    m.path = in_dir("inline (deleted)");
    assert_inlined_chain(s, &m);
    symbols_free(s);
}

static void no_file(void **state)
{
    (void)state;
    static const char *const expected[][2] = {{"/no/such/libfoo.so.1", "libfoo.so.1+0x1234"},
                                              {"[vdso]", "[vdso]+0x1234"},
                                              {"", "[unknown]+0x1234"},
                                              {NULL, "[unknown]+0x1234"},
                                              {"/", "/+0x1234"},
                                              {"libfoo.so", "libfoo.so+0x1234"}};
    struct symbols *s = symbols_new(NULL);
    for (size_t i = 0; i < sizeof(expected) / sizeof(expected[0]); i++) {
        struct symbol_frames f = {0};
        struct symbol_module m = {.path = expected[i][0]};
        assert_true(symbols_resolve(s, &m, &(uint64_t){0x1234}, 1, &f) < 0);
        assert_int_equal(f.len, 1);
        assert_string_equal(f.at[0].function, expected[i][1]);
    }
    assert_int_equal(symbols_resolve(s, &(struct symbol_module){.path = in_dir("inline")}, NULL, 0, NULL), 0);
    sh("mkfifo pipe; echo text > text");
    resolve(s, &(struct symbol_module){.path = in_dir("pipe")}, 1, -ENOEXEC);
    resolve(s, &(struct symbol_module){.path = in_dir("text")}, 1, -ENOEXEC);
    symbols_free(s);
}

static void other_root(void **state)
{
    (void)state;
    sh("mkdir -p jail/real jail/bin && cp inline jail/real/prog && ln -s /real/prog jail/bin/prog && ln -s "
       "%s jail/bin/out",
       in_dir("inline"));
    struct symbols *s = symbols_new(NULL);
    assert_inlined_chain(s, &(struct symbol_module){.path = "/bin/prog", .root = in_dir("jail")});
    resolve(s, &(struct symbol_module){.path = "/bin/out", .root = in_dir("jail")}, 1, -ENOENT);
    /* Without a build id, a file of ours is no file of theirs; with it, or when the process is gone, it may be. */
    const char *path = in_dir("inline");
    resolve(s, &(struct symbol_module){.path = path, .root = in_dir("jail")}, 1, -ENOENT);
    assert_inlined_chain(s, &(struct symbol_module){.path = path, .root = in_dir("no-such-root")});
    struct symbol_module m = module_of(path);
    m.root = in_dir("jail");
    assert_inlined_chain(s, &m);
    symbols_free(s);
}

/** Such a file is copied, not mapped. Where we may not give files away, it is ours as all others. */
static void strangers_file(void **state)
{
    (void)state;
    sh("cp inline stranger && { chown 65534 stranger 2>/dev/null || true; }");
    struct symbols *s = symbols_new(NULL);
    assert_inlined_chain(s, &(struct symbol_module){.path = in_dir("stranger")});
    symbols_free(s);
}

static void plt_stubs(void **state)
{
    (void)state;
    static const char *const flags[] = {"-Wl,-z,lazy", "-Wl,-z,now -fcf-protection=full", "-fno-plt"};
    size_t seen = 0;
    for (size_t i = 0; i < 3; i++) {
        struct symbols *s = symbols_new(NULL);
        char line[TEXT_BYTES], name[TEXT_BYTES];
        uint64_t at;
        sh("gcc -O2 %s -o plt%zu %s/symbol_inline.c && objdump -d plt%zu | grep '@plt>:' > plt.txt", flags[i],
           i, programs, i);
        FILE *f = fopen(in_dir("plt.txt"), "r");
        for (; fgets(line, sizeof(line), f); seen++) {
            assert_int_equal(sscanf(line, "%" SCNx64 " <%4095[^>]", &at, name), 2);
            assert_string_equal(function_at(s, in_dir("plt%zu", i), at + 4), name);
        }
        fclose(f);
        symbols_free(s);
    }
    assert_true(seen >= 6);
}

#define SAMPLES 400

/** Reads one answer of addr2line -f -i -a: the address was read already; stops before the next. */
static size_t read_answer(FILE *f, char functions[][TEXT_BYTES], char files[][TEXT_BYTES], unsigned *lines,
                          size_t max)
{
    size_t n = 0;
    long back = ftell(f);
    while (n < max && fgets(functions[n], TEXT_BYTES, f) && strncmp(functions[n], "0x", 2) != 0 &&
           fgets(files[n], TEXT_BYTES, f)) {
        functions[n][strcspn(functions[n], "\n")] = '\0';
        char *colon = strrchr(files[n], ':');
        assert_non_null(colon);
        lines[n] = (unsigned)strtoul(colon + 1, NULL, 10);
        *colon = '\0';
        n++;
        back = ftell(f);
    }
    fseek(f, back, SEEK_SET);
    return n;
}

/**
 * Names and lines must be those of addr2line, to the last. Its files need not: binutils 2.40 gives the unit's own file
 * for what a function from a header does, with the header's line numbers.
 */
static void agrees_with_addr2line(void **state)
{
    (void)state;
    static char functions[32][TEXT_BYTES], files[32][TEXT_BYTES];
    unsigned lines[32];
    uint64_t addresses[SAMPLES], low = 0, at, size, seed = 1;
    struct symbol_frames out[SAMPLES];
    struct symbol_names names = {0};
    size_t n = 0, other_files = 0, frames = 0;
    char line[TEXT_BYTES];
    sh("S=%s/../../src; gcc -std=gnu11 -g -O2 -fPIC -shared -I$S -o self.so $S/symbol/scopes.c "
       "$S/symbol/cache_file.c "
       "$S/symbol/symbol_names.c $S/symbol/symtab.c $S/base/hash_map.c $S/base/buf.c && nm -S self.so | grep "
       "-i ' t "
       "' | "
       "sort > nm.txt",
       programs);
    FILE *f = fopen(in_dir("nm.txt"), "r");
    while (fgets(line, sizeof(line), f) && n < SAMPLES)
        for (size_t k = 0;
             sscanf(line, "%" SCNx64 " %" SCNx64, &at, &size) == 2 && size && k < 8 && n < SAMPLES; k++) {
            seed = seed * 6364136223846793005u + 1442695040888963407u;
            addresses[n++] = at + (seed >> 33) % size;
            low = at;
        }
    fclose(f);
    assert_true(low && n > SAMPLES / 2);
    f = fopen(in_dir("asked.txt"), "w");
    for (size_t i = 0; i < n; i++)
        fprintf(f, "0x%" PRIx64 "\n", addresses[i]);
    fclose(f);
    sh("addr2line -a -f -i -e self.so < asked.txt > said.txt");
    struct symbols *s = symbols_new(NULL);
    assert_int_equal(
        symbols_resolve(s, &(struct symbol_module){.path = in_dir("self.so")}, addresses, n, out), 0);
    f = fopen(in_dir("said.txt"), "r");
    for (size_t i = 0; i < n; i++) {
        assert_true(fgets(line, sizeof(line), f) && strtoull(line, NULL, 16) == addresses[i]);
        size_t len = read_answer(f, functions, files, lines, 32);
        assert_int_equal(out[i].len, len);
        for (size_t k = 0; k < len; k++, frames++) {
            const struct symbol_frame *frame = &out[i].at[k];
            assert_string_equal(frame->function, symbol_names_function(&names, functions[k]));
            assert_int_equal(frame->line, lines[k]);
            other_files += strcmp(frame->file, symbol_names_path(&names, NULL, files[k])) != 0;
        }
    }
    fclose(f);
    assert_true(frames > n + n / 10); /* some are inlined */
    assert_true(other_files * 50 <= frames);
    symbol_names_release(&names);
    symbols_free(s);
}

/** libdw would load libdebuginfod, and that libcurl, when asked for a file it does not find. */
static void no_network(void **state)
{
    (void)state;
    char line[TEXT_BYTES];
    setenv("DEBUGINFOD_URLS", "http://127.0.0.1:9/", 1);
    struct symbols *s = symbols_new(NULL);
    function_at(s, in_dir("wrong/inline"), 0x1234);
    symbols_free(s);
    unsetenv("DEBUGINFOD_URLS");
    FILE *f = fopen("/proc/self/maps", "r");
    while (fgets(line, sizeof(line), f))
        assert_null(strstr(line, "debuginfod"));
    fclose(f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST("an inlined call comes before its caller, each with its line", inlined_calls),
        TEST("DWARF 4, split, link-time and compressed tell the same", other_dwarfs),
        TEST("C++ functions are named with scopes and template arguments, without parameters", cxx_names),
        TEST("versions, clone suffixes and control bytes leave a raw name, Rust is demangled, a bomb is not",
             raw_names),
        TEST("paths are shortened as far as their text allows", paths_are_short),
        TEST("a stripped file is named from its debug file, by link, checksum or build id",
             separate_debug_file),
        TEST("a debug file of another build is not used", wrong_debug_file),
        TEST("what dwz moved to a common file is found there", dwz_file),
        TEST("a file that was replaced gives offsets, not wrong names", replaced_file),
        TEST("what has no file, and what is no ELF file, gives module and offset", no_file),
        TEST("a file is sought under the root, and links stay inside it", other_root),
        TEST("a file of another user is read all the same", strangers_file),
        TEST("a stub of the procedure linkage table is named for what it calls", plt_stubs),
        TEST("functions and lines of 400 addresses agree with addr2line", agrees_with_addr2line),
        TEST("debuginfod is never asked", no_network),
    };
    return cmocka_run_group_tests_name("symbol", tests, set_up_programs, remove_programs);
}
