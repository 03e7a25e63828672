/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * src/symbol/kernel_modules, function_index and relocatable: the debug file of a module, and where in it a function or
 * an address lies. The modules are small ones of the test's own; the truth about their lines is what addr2line says.
 */
#include "test_kernel.h"

#include "symbol/debuginfod_fetcher.h"
#include "symbol/debuginfod_servers.h"
#include "symbol/kernel_modules.h"

#define RELEASE  "9.9.9-test"
#define MODULES  "lib/modules/" RELEASE "/kernel/fs"
#define DEBUG    "usr/lib/debug/lib/modules/" RELEASE "/kernel/fs"
#define BUILD_ID "0102030405060708"
#define LOADED   0xffffffffc0400000u

static const char source[] =
    "#include \"slab.h\"\n"
    "__attribute__((noinline)) static void *own_alloc(volatile int *n)\n{\n    (*n)++;\n"
    "    char *p = kmalloc(192);\n    return p + *n;\n}\n"
    "static inline __attribute__((always_inline)) void *twice(volatile int *n)\n{\n"
    "    *n += 2;\n    return kmalloc(*n);\n}\n"
    "void *test_get(volatile int *n);\nvoid *test_get(volatile int *n)\n{\n"
    "    void *p = twice(n);\n    return *n > 9 ? own_alloc(n) : p;\n}\n"
    "__attribute__((section(\".init.text\"))) void *test_begin(volatile int *n);\n"
    "__attribute__((section(\".init.text\"))) void *test_begin(volatile int *n)\n{\n"
    "    void *p = twice(n);\n    (*n)++;\n    return p;\n}\n";
static const char second[] =
    "#include \"slab.h\"\nvoid *other_get(volatile int *n);\n"
    "__attribute__((noinline)) static void *own_alloc(volatile int *n)\n{\n"
    "    for (int i = 0; i < *n; i++)\n        *n += i * 7;\n    char *p = kmalloc(16);\n"
    "    *n += p[3];\n    return p;\n}\n"
    "void *other_get(volatile int *n)\n{\n    return own_alloc(n);\n}\n";

static void put_note(const char *root, const char *path, const char *id)
{
    unsigned char note[24] = {4, 0, 0, 0, 8, 0, 0, 0, 3, 0, 0, 0, 'G', 'N', 'U', 0};
    for (int i = 0; i < 8; i++)
        sscanf(id + 2 * i, "%2hhx", &note[16 + i]);
    put_bytes(root, path, note, sizeof(note));
}

/* PATH in the root is a module made of both sources, with the build id. */
static void build(const char *root, const char *path, const char *id)
{
    free(path_in(root, path));
    put(root, "tree/fs/slab.h",
        "void *slab_alloc(unsigned bytes);\n__attribute__((always_inline)) static inline void "
        "*kmalloc(unsigned bytes)\n{\n    return (char *)slab_alloc(bytes | 7) + 1;\n}\n");
    put(root, "tree/fs/first.c", source);
    put(root, "tree/fs/second.c", second);
    for (const char *const *name = (const char *const[]){"first", "second", NULL}; *name; name++)
        run_shell("cd %s/tree && cc -g -O2 -ffreestanding -fno-pie -mcmodel=large -c -o fs/%s.o fs/%s.c",
                  root, *name, *name);
    put_note(root, "tree/note", id);
    put(root, "tree/note.s",
        ".section .note.gnu.build-id,\"a\",@note\n.incbin \"note\"\n.section .note.GNU-stack\n");
    run_shell("cd %s/tree && as -o note.o note.s && ld -r -o ../%s fs/first.o fs/second.o note.o", root,
              path);
}

struct kernel {
    char *root;
    struct kernel_modules *modules;
    struct symbols *symbols;
};

static void begin(struct kernel *k, bool running, const char *vmlinux)
{
    k->symbols = symbols_new(NULL);
    k->modules = kernel_modules_new(&(struct kernel_modules_of){
        .root = k->root, .release = RELEASE, .vmlinux = vmlinux, .running = running});
}

static void end(struct kernel *k)
{
    kernel_modules_free(k->modules);
    symbols_free(k->symbols);
}

/* What the running kernel shows of the module. */
static void load(const char *root, const char *id)
{
    put_note(root, "sys/module/two_files/notes/.note.gnu.build-id", id);
    put(root, "sys/module/two_files/sections/.text", "0xffffffffc0400000\n");
    put(root, "sys/module/two_files/sections/.init.text", "0xffffffffc0600000\n");
}

/* ---- lines ---- */

struct function {
    uint64_t offset, bytes;
    char section[32], name[64];
};

/* The functions of the file, by readelf: values are offsets in their sections. */
static size_t read_functions(const char *root, const char *path, struct function *out, size_t max)
{
    char command[600], line[256], number[32];
    size_t n = 0;
    snprintf(command, sizeof(command),
             "cd %s && readelf -sW %s | awk '$4 == \"FUNC\" && $7 != \"UND\" { print $2, $3, $7, $8 }'", root,
             path);
    FILE *all = popen(command, "r");
    while (n < max && fgets(line, sizeof(line), all)) {
        struct function *f = &out[n++];
        assert_int_equal(sscanf(line, "%lx %lu %31s %63s", &f->offset, &f->bytes, number, f->name), 4);
        snprintf(command, sizeof(command), "readelf -SW %s/%s | sed -n 's/^ *\\[ *%s\\] \\([^ ]*\\).*/\\1/p'",
                 root, path, number);
        FILE *name = popen(command, "r");
        assert_int_equal(fscanf(name, "%31s", f->section), 1);
        pclose(name);
    }
    pclose(all);
    return n;
}

/* All frames of one byte as addr2line has them. */
static void compare(const char *root, const char *path, const struct function *f, uint64_t at,
                    const struct symbol_frames *frames)
{
    char command[600], name[256], place[512], want[600];
    snprintf(command, sizeof(command), "addr2line -i -f -j %s -e %s/%s 0x%lx", f->section, root, path,
             f->offset + at);
    FILE *truth = popen(command, "r");
    for (size_t i = 0; i < frames->len; i++) {
        assert_int_equal(fscanf(truth, "%255s %511[^ \n]%*[^\n]", name, place) > 1, 1);
        snprintf(want, sizeof(want), "%s:%u", frames->at[i].file, frames->at[i].line);
        assert_string_equal(frames->at[i].function, name);
        assert_string_equal(want, place);
    }
    assert_int_equal(fscanf(truth, " %1s", name), EOF);
    pclose(truth);
}

static void resolve(struct kernel *k, const struct kernel_module_place *place, struct symbol_frames *out)
{
    assert_int_equal(symbols_resolve(k->symbols, &place->file, &place->address, 1, out), 0);
}

/* By name and size of the function, and by address. */
static void compare_all(struct kernel *k, const char *path)
{
    struct function functions[8];
    size_t n = read_functions(k->root, path, functions, 8), inlined = 0;
    assert_int_equal(n, 5);
    for (size_t i = 0; i < n; i++) {
        const struct function *f = &functions[i];
        const uint64_t loaded = !strcmp(f->section, ".text") ? LOADED : LOADED + 0x200000;
        for (uint64_t at = 0; at < f->bytes; at++) {
            struct kernel_module_place place;
            struct symbol_frames frames;
            assert_int_equal(kernel_modules_find(k->modules, "two_files", f->name, at, f->bytes, &place),
                             FUNCTION_ONE);
            resolve(k, &place, &frames);
            compare(k->root, path, f, at, &frames);
            inlined += frames.len > 1;
            assert_true(kernel_modules_at(k->modules, "two_files", loaded + f->offset + at, &place));
            resolve(k, &place, &frames);
            compare(k->root, path, f, at, &frames);
        }
    }
    assert_true(inlined > 20);
}

static void lines_are_those_of_addr2line(void **state)
{
    (void)state;
    struct kernel k = {.root = make_root()};
    build(k.root, DEBUG "/two-files.ko", BUILD_ID);
    load(k.root, BUILD_ID);
    begin(&k, true, NULL);
    compare_all(&k, DEBUG "/two-files.ko");
    end(&k);
    remove_root(k.root);
}

static void functions_of_one_name_are_told_apart(void **state)
{
    (void)state;
    struct kernel k = {.root = make_root()};
    struct kernel_module_place place, other;
    struct function functions[8];
    build(k.root, DEBUG "/two-files.ko", BUILD_ID);
    begin(&k, false, NULL);
    size_t n = read_functions(k.root, DEBUG "/two-files.ko", functions, 8), seen = 0;
    assert_int_equal(kernel_modules_count(k.modules, "two_files", "own_alloc"), 2);
    assert_int_equal(kernel_modules_find(k.modules, "two_files", "own_alloc", 1, 0, &place),
                     FUNCTION_SEVERAL);
    assert_int_equal(kernel_modules_find(k.modules, "two_files", "own_alloc", 1, 5000, &place),
                     FUNCTION_NONE);
    for (size_t i = 0; i < n; i++) {
        if (strcmp(functions[i].name, "own_alloc"))
            continue;
        const uint64_t room = (functions[i].bytes + 15) / 16 * 16; /* as the kernel counts */
        struct symbol_frames frames;
        assert_int_equal(
            kernel_modules_find(k.modules, "two_files", "own_alloc", 1, functions[i].bytes, &place),
            FUNCTION_ONE);
        assert_int_equal(kernel_modules_find(k.modules, "two_files", "own_alloc", 1, room, &other),
                         FUNCTION_ONE);
        assert_int_equal(place.address, other.address);
        resolve(&k, &place, &frames);
        compare(k.root, DEBUG "/two-files.ko", &functions[i], 1, &frames);
        seen++;
    }
    assert_int_equal(seen, 2);
    assert_int_equal(kernel_modules_find(k.modules, "two_files", "test_get", 1, 0, &place), FUNCTION_ONE);
    assert_int_equal(kernel_modules_find(k.modules, "two_files", "test_get", 1, 0x10, &place), FUNCTION_NONE);
    assert_int_equal(kernel_modules_find(k.modules, "two_files", "test_get", 100000, 0, &place),
                     FUNCTION_NONE);
    assert_int_equal(kernel_modules_find(k.modules, "two_files", "nobody", 1, 0, &place), FUNCTION_NONE);
    assert_int_equal(kernel_modules_find(k.modules, "no_module", "test_get", 1, 0, &place), FUNCTION_NONE);
    assert_int_equal(kernel_modules_find(k.modules, "../two_files", "test_get", 1, 0, &place), FUNCTION_NONE);
    end(&k);
    remove_root(k.root);
}

/* ---- which file ---- */

static bool is_found(struct kernel *k, bool running, const char *vmlinux)
{
    struct kernel_module_place place;
    struct symbol_frames frames;
    begin(k, running, vmlinux);
    bool found = kernel_modules_find(k->modules, "two_files", "test_get", 1, 0, &place) == FUNCTION_ONE;
    if (found) {
        resolve(k, &place, &frames);
        assert_non_null(frames.at[frames.len - 1].file);
    }
    end(k);
    return found;
}

static void only_a_file_of_the_same_build_is_taken(void **state)
{
    (void)state;
    struct kernel k = {.root = make_root()};
    struct buf refused = BUF_INIT;
    struct kernel_module_place place;
    load(k.root, BUILD_ID);
    assert_false(is_found(&k, true, NULL));
    build(k.root, DEBUG "/two-files.ko", "0102030405060709");
    assert_false(is_found(&k, true, NULL));
    begin(&k, true, NULL);
    assert_int_equal(kernel_modules_find(k.modules, "two_files", "test_get", 1, 0, &place), FUNCTION_NONE);
    kernel_modules_add_refused(k.modules, &refused);
    assert_non_null(strstr(buf_str(&refused), "two-files.ko is of another build of the module two_files"));
    end(&k);
    assert_true(is_found(&k, false, NULL)); /* of a kernel that does not run here: nothing can be compared */
    build(k.root, MODULES "/two-files.ko", BUILD_ID);
    assert_true(is_found(&k, true, NULL)); /* the module itself */
    buf_reset(&refused);
    begin(&k, true, NULL);
    kernel_modules_find(k.modules, "two_files", "test_get", 1, 0, &place);
    kernel_modules_add_refused(k.modules, &refused);
    assert_int_equal(refused.len, 0); /* another file was taken */
    end(&k);
    run_shell("strip -g %s/" MODULES "/two-files.ko", k.root);
    assert_false(is_found(&k, true, NULL));
    buf_release(&refused);
    remove_root(k.root);
}

static void files_are_found_where_they_may_be(void **state)
{
    (void)state;
    struct kernel k = {.root = make_root()};
    static const char *const places[] = {
        (MODULES "/two_files.ko"),
        ("usr/lib/debug/usr/lib/modules/" RELEASE "/extra/two-files.ko.debug"),
        "usr/lib/debug/.build-id/01/02030405060708.debug",
        "given/two-files.ko",
        ("dist/boot/vmlinux-" RELEASE),
    };
    char *given = path_in(k.root, "given/vmlinux"), *boot = path_in(k.root, "dist/boot/vmlinux-" RELEASE);
    load(k.root, BUILD_ID);
    for (size_t i = 0; i < sizeof(places) / sizeof(*places); i++) {
        const bool by_boot = i == 4;
        build(k.root, by_boot ? "dist/lib/modules/" RELEASE "/kernel/two_files.ko" : places[i], BUILD_ID);
        if (!is_found(&k, true, by_boot ? boot : i == 3 ? given : NULL))
            fail_msg("not found: %s", places[i]);
        assert_false(is_found(&k, true, i == 3 ? boot : given) && i > 2);
        run_shell("cd %s && rm -rf lib usr given/*.ko dist/lib", k.root);
    }
    free(given);
    free(boot);
    remove_root(k.root);
}

static void folders_are_searched_as_a_whole_only_if_they_are_of_modules(void **state)
{
    (void)state;
    struct kernel k = {.root = make_root()};
    char *vmlinux = path_in(k.root, "given/vmlinux");
    build(k.root, "given/fs/two/two-files.ko", BUILD_ID);
    assert_false(is_found(&k, false, vmlinux));
    put(k.root, "given/modules.order", "fs/two/two-files.o\n"); /* a build of a kernel */
    assert_true(is_found(&k, false, vmlinux));
    free(vmlinux);
    remove_root(k.root);
}

/* Of a server, which is a folder here. */
static void a_server_is_asked_by_build_id(void **state)
{
    (void)state;
    struct kernel k = {.root = make_root()};
    struct kernel_module_place place;
    struct buf url = BUF_INIT;
    if (!fetcher_library()) {
        remove_root(k.root);
        skip();
    }
    load(k.root, BUILD_ID);
    build(k.root, "served/buildid/" BUILD_ID "/debuginfo", BUILD_ID);
    buf_printf(&url, "file://%s/served", k.root);
    setenv("DEBUGINFOD_URLS", buf_str(&url), 1);
    setenv("DEBUGINFOD_CACHE_PATH", k.root, 1);
    struct symbol_servers *servers = symbol_servers_new(60000000000u);
    begin(&k, true, NULL);
    assert_int_equal(kernel_modules_find(k.modules, "two_files", "test_get", 1, 0, &place), FUNCTION_NONE);
    end(&k);
    begin(&k, true, NULL);
    kernel_modules_use_servers(k.modules, servers);
    assert_int_equal(kernel_modules_find(k.modules, "two_files", "test_get", 1, 0, &place), FUNCTION_ONE);
    assert_true(place.file.sent);
    struct symbol_frames frames;
    resolve(&k, &place, &frames);
    assert_non_null(strstr(frames.at[frames.len - 1].file, "fs/first.c"));
    end(&k);
    symbol_servers_free(servers);
    unsetenv("DEBUGINFOD_URLS");
    buf_release(&url);
    remove_root(k.root);
}

static void packed_modules_are_read(void **state)
{
    (void)state;
    struct kernel k = {.root = make_root()};
    static const char *const tools[][2] = {{"gzip", "gz"}, {"xz", "xz"}};
    load(k.root, BUILD_ID);
    for (size_t i = 0; i < sizeof(tools) / sizeof(*tools); i++) {
        build(k.root, MODULES "/two_files.ko", BUILD_ID);
        run_shell("cd %s/" MODULES " && %s -c two_files.ko >two_files.ko.%s && rm two_files.ko", k.root,
                  tools[i][0], tools[i][1]);
        if (!is_found(&k, true, NULL))
            fail_msg("not read: %s", tools[i][0]);
        run_shell("rm -r %s/" MODULES, k.root);
    }
    remove_root(k.root);
}

/* ---- files that lie ---- */

/* Whatever the file holds, something is found in it, or nothing. */
static void use(struct kernel *k)
{
    static const char *const names[] = {"own_alloc", "test_get", "test_begin", "other_get"};
    begin(k, false, NULL);
    for (uint64_t at = 0; at < 48 * sizeof(names) / sizeof(*names); at++) {
        struct kernel_module_place place;
        struct symbol_frames frames;
        const char *name = names[at % 4];
        if (kernel_modules_find(k->modules, "two_files", name, at / 4, at % 3 ? 0 : 64, &place) !=
            FUNCTION_ONE)
            continue;
        symbols_resolve(k->symbols, &place.file, &place.address, 1, &frames);
        assert_true(frames.len > 0 && frames.at[0].function);
    }
    end(k);
}

static void files_that_are_cut_or_altered_do_no_harm(void **state)
{
    (void)state;
    struct kernel k = {.root = make_root()};
    struct buf whole = BUF_INIT;
    build(k.root, MODULES "/two_files.ko", BUILD_ID);
    char *path = path_in(k.root, MODULES "/two_files.ko");
    assert_int_equal(file_read(path, 1 << 24, &whole), 0);
    for (size_t len = 0; len < whole.len; len += 1 + whole.len / 150) {
        put_bytes(k.root, MODULES "/two_files.ko", whole.data, len);
        use(&k);
    }
    char *altered = mem_alloc(whole.len);
    srand(20261127);
    for (int i = 0; i < 1000; i++) {
        memcpy(altered, whole.data, whole.len);
        for (int n = 1 + rand() % 8; n > 0; n--) {
            size_t at = (size_t)rand() % whole.len;
            altered[at] = (char)(rand() % 3 ? rand() : rand() % 2 ? 0xff : 0);
        }
        put_bytes(k.root, MODULES "/two_files.ko", altered, whole.len);
        use(&k);
    }
    free(altered);
    free(path);
    buf_release(&whole);
    remove_root(k.root);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST("files, lines and inlined functions of a module are those of addr2line",
             lines_are_those_of_addr2line),
        TEST("functions of one name are told apart by their sizes", functions_of_one_name_are_told_apart),
        TEST("only a file of the same build is taken", only_a_file_of_the_same_build_is_taken),
        TEST("files are found where distributions and builds put them", files_are_found_where_they_may_be),
        TEST("a folder is searched as a whole only if it is one of modules",
             folders_are_searched_as_a_whole_only_if_they_are_of_modules),
        TEST("a server is asked by build id", a_server_is_asked_by_build_id),
        TEST("modules that are packed are read", packed_modules_are_read),
        TEST("files that are cut or altered do no harm", files_that_are_cut_or_altered_do_no_harm),
    };
    return cmocka_run_group_tests_name("kernel_modules", tests, NULL, NULL);
}
