/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * src/symbol/vmlinux and kernel_source: which file is the kernel's, and where in its source an address lies. The kernel
 * is a small one of the test's own, which KASLR has moved; the truth about its lines is what addr2line says.
 */
#include "test_kernel.h"

#include "symbol/kernel_source.h"

#include <errno.h>
#include <fcntl.h>

#define MOVED 0xffffffff3e000000u /* what KASLR may do */
#define PLACE "usr/lib/debug/boot/vmlinux-9.9.9"

static const unsigned char notes[] = {4,   0,   0,   0, 8, 0, 0, 0, 3, 0, 0, 0,
                                      'G', 'N', 'U', 0, 1, 2, 3, 4, 5, 6, 7, 8};

static void build_ids_are_found_in_notes(void **state)
{
    (void)state;
    unsigned char id[20];
    struct {
        uint32_t name, bytes, type;
        char text[8];
        unsigned char value[4];
        uint32_t gnu[3];
        char gnu_text[4];
        unsigned char build_id[20];
    } two = {6, 4, 0, "Linux\0\0", {1, 2, 3, 4}, {4, 20, 3}, "GNU", "01234567890123456789"};
    assert_int_equal(vmlinux_build_id(&two, sizeof(two), id, sizeof(id)), 20);
    assert_memory_equal(id, "01234567890123456789", 20);
    assert_int_equal(vmlinux_build_id(&two, sizeof(two), id, 19), 0);
    for (size_t len = 0; len < sizeof(two); len++) {
        void *cut =
            memcpy(mem_alloc(len ? len : 1), &two, len); /* so that a sanitizer sees what is read beyond */
        assert_int_equal(vmlinux_build_id(cut, len, id, sizeof(id)), 0);
        free(cut);
    }
    two.name = UINT32_MAX;
    assert_int_equal(vmlinux_build_id(&two, sizeof(two), id, sizeof(id)), 0);
    two.name = 6;
    two.bytes = UINT32_MAX;
    assert_int_equal(vmlinux_build_id(&two, sizeof(two), id, sizeof(id)), 0);
}

/* ---- a kernel ---- */

static void write_tree(const char *root)
{
    put(root, "tree/init/main.c",
        "__attribute__((used)) void _stext(void) {}\nvoid start_kernel(void);\nvoid start_kernel(void)\n{\n"
        "    __asm__ volatile(\"nop\");\n}\n");
    put(root, "tree/include/linux/slab.h",
        "void *slab_alloc(unsigned bytes);\n\n__attribute__((always_inline)) static inline void "
        "*kmalloc(unsigned bytes)\n{\n    return (char *)slab_alloc(bytes | 7) + 1;\n}\n");
    put(root, "tree/mm/slab.c",
        "#include \"linux/slab.h\"\nvoid *slab_alloc(unsigned bytes)\n{\n    return (void "
        "*)(long)bytes;\n}\n");
    put(root, "tree/fs/file_table.c",
        "#include \"linux/slab.h\"\n\nvoid *alloc_empty_file(volatile int *n);\nvoid "
        "*alloc_empty_file(volatile int *n)\n{\n    (*n)++;\n    char *file = kmalloc(192);\n    *n += "
        "file[1];\n"
        "    return file;\n}\n");
}

/* Links tree/ to PLACE. */
static void compile(const char *root, const char *compiler_options, const char *linker_options)
{
    free(path_in(root, PLACE));
    for (const char *const *file = (const char *const[]){"init/main", "mm/slab", "fs/file_table", NULL};
         *file; file++)
        run_shell("cd %s/tree && cc -g -O1 -ffreestanding -fno-pie -Iinclude %s -c -o %s.o %s.c", root,
                  compiler_options, *file, *file);
    run_shell(
        "cd %s/tree && ld %s -Ttext=0x81000000 -e _stext -o ../%s init/main.o mm/slab.o fs/file_table.o",
        root, linker_options, PLACE);
}

#define OURS "--build-id=0x0102030405060708"

/* "81000010 8 T name" of PLACE. */
static uint64_t address_of(const char *root, const char *name, uint64_t *bytes)
{
    char command[512], line[256] = "";
    char *end;
    snprintf(command, sizeof(command), "nm -S %s/" PLACE " | grep ' %s$'", root, name);
    FILE *nm = popen(command, "r");
    assert_non_null(fgets(line, sizeof(line), nm));
    assert_int_equal(pclose(nm), 0);
    uint64_t address = strtoull(line, &end, 16);
    *bytes = strtoull(end, NULL, 16);
    return address;
}

static char *make_kernel(const char *compiler_options, const char *linker_options)
{
    char *root = make_root();
    static const char *const names[] = {"_stext", "start_kernel", "slab_alloc", "alloc_empty_file"};
    struct buf text = BUF_INIT;
    uint64_t bytes;
    write_tree(root);
    compile(root, compiler_options, linker_options);
    for (size_t i = 0; i < sizeof(names) / sizeof(*names); i++)
        buf_printf(&text, "%016llx T %s\n", (unsigned long long)(address_of(root, names[i], &bytes) + MOVED),
                   names[i]);
    buf_addstr(&text, "ffffffffc0201000 t in_a_module\t[other]\nffffffffc0201100 t its_next\t[other]\n");
    put(root, "proc/kallsyms", buf_str(&text));
    put(root, "proc/modules", "other 4096 0 - Live 0xffffffffc0201000\n");
    put(root, "proc/sys/kernel/osrelease", "9.9.9\n");
    put_bytes(root, "sys/kernel/notes", notes, sizeof(notes));
    buf_release(&text);
    return root;
}

struct overview {
    char *root;
    struct vmlinux vmlinux;
    struct kernel_symbols *kernel;
    struct symbols *symbols;
    struct kernel_source *source;
};

static void boot(struct overview *m, const char *compiler_options)
{
    *m = (struct overview){.root = make_kernel(compiler_options, OURS)};
    vmlinux_seek(&m->vmlinux, m->root);
    assert_non_null(m->vmlinux.path);
    assert_int_equal(kernel_symbols_new(m->root, &m->kernel, NULL), 0);
    m->symbols = symbols_new(NULL);
    m->source = kernel_source_new(&m->vmlinux, m->kernel, m->symbols);
}

static void halt(struct overview *m)
{
    kernel_source_free(m->source);
    symbols_free(m->symbols);
    kernel_symbols_free(m->kernel);
    vmlinux_release(&m->vmlinux);
    remove_root(m->root);
}

/* ---- where code comes from ---- */

/* Files and lines as addr2line has them, of every byte of a function, and what people mean by a call there. */
static void compare(const struct overview *m, const char *function, const char *top, const char *file)
{
    uint64_t bytes, address = address_of(m->root, function, &bytes), inlined = 0;
    assert_true(bytes > 0);
    for (uint64_t at = address; at < address + bytes; at++) {
        char command[512], name[256], place[512], want[600];
        struct symbol_frames frames;
        snprintf(command, sizeof(command), "addr2line -i -f -e %s/" PLACE " 0x%llx", m->root,
                 (unsigned long long)at);
        assert_true(kernel_source_frames(m->source, at + MOVED, &frames));
        FILE *truth = popen(command, "r");
        for (size_t i = 0; i < frames.len; i++) {
            assert_int_equal(fscanf(truth, "%255s %511[^ \n]%*[^\n]", name, place) > 1, 1);
            snprintf(want, sizeof(want), "%s%s:%u", top, kernel_source_file(m->source, &frames.at[i]),
                     frames.at[i].line);
            assert_string_equal(frames.at[i].function, name);
            assert_string_equal(want, place);
        }
        assert_int_equal(fscanf(truth, " %1s", name), EOF);
        pclose(truth);
        inlined += frames.len == 2;
        const struct symbol_frame *call = kernel_source_call(m->source, at + MOVED);
        assert_string_equal(kernel_source_file(m->source, call), file);
        assert_string_equal(call->function, function);
    }
    assert_true(strcmp(function, "alloc_empty_file") || inlined > 0);
}

static void lines_are_those_of_addr2line(void **state)
{
    (void)state;
    struct overview m;
    boot(&m, "");
    char top[256];
    snprintf(top, sizeof(top), "%s/tree/", m.root);
    compare(&m, "alloc_empty_file", top, "fs/file_table.c");
    compare(&m, "slab_alloc", top, "mm/slab.c");
    compare(&m, "start_kernel", top, "init/main.c");
    halt(&m);
}

static void trees_that_were_renamed_have_no_top(void **state)
{
    (void)state;
    struct overview m;
    boot(&m, "-fdebug-prefix-map=$PWD=."); /* so are those of distributions */
    struct symbol_frames frames;
    uint64_t bytes, address = address_of(m.root, "slab_alloc", &bytes);
    assert_true(kernel_source_frames(m.source, address + MOVED, &frames));
    assert_string_equal(kernel_source_file(m.source, &frames.at[0]), "mm/slab.c");
    halt(&m);
}

static void what_is_not_the_kernels_own_code_has_no_file(void **state)
{
    (void)state;
    struct overview m;
    boot(&m, "");
    struct symbol_frames frames;
    assert_false(kernel_source_frames(m.source, 0xffffffffc0201010u, &frames)); /* a module's */
    assert_null(kernel_source_call(m.source, 0xffffffffc0201010u));
    assert_null(kernel_source_call(m.source, 0xffffffff80000000u)); /* before its code */
    assert_null(kernel_source_call(m.source, 0x81000000u));         /* as linked: it is not there */
    assert_null(kernel_source_call(m.source, 0));
    halt(&m);
}

/* The module `other`, of which two functions are in /proc/kallsyms. */
static void make_module(const char *root)
{
    put(root, "tree/drivers/other.c",
        "#include \"linux/slab.h\"\nvoid *in_a_module(volatile int *n);\nvoid *in_a_module(volatile int "
        "*n)\n{\n"
        "    (*n)++;\n    char *p = kmalloc(8);\n    *n += p[1];\n    return p;\n}\n"
        "void *its_next(void);\nvoid *its_next(void)\n{\n    return kmalloc(9);\n}\n");
    free(path_in(root, "usr/lib/debug/lib/modules/9.9.9/kernel/other.ko"));
    run_shell(
        "cd %s/tree && cc -g -O1 -ffreestanding -fno-pie -mcmodel=large -falign-functions=256 -Iinclude -c "
        "-o "
        "../usr/lib/debug/lib/modules/9.9.9/kernel/other.ko drivers/other.c",
        root);
}

/* By the address of its section if the kernel shows that, else by the name of the function. */
static void code_of_modules_has_the_files_of_their_debug_information(void **state)
{
    (void)state;
    for (int shown = 0; shown < 2; shown++) {
        struct overview m;
        boot(&m, "");
        make_module(m.root);
        if (shown)
            put(m.root, "sys/module/other/sections/.text", "0xffffffffc0201000\n");
        const struct symbol_frame *call = kernel_source_call(m.source, 0xffffffffc0201008u);
        assert_non_null(call);
        assert_string_equal(call->function, "in_a_module");
        assert_string_equal(kernel_source_file(m.source, call), "drivers/other.c");
        struct symbol_frames frames;
        size_t inlined = 0;
        for (uint64_t at = 0xffffffffc0201100u; at < 0xffffffffc0201110u; at++) {
            if (!kernel_source_frames(m.source, at, &frames))
                break;
            assert_string_equal(frames.at[frames.len - 1].function, "its_next");
            inlined += frames.len == 2 && !strcmp(frames.at[0].function, "kmalloc") &&
                       !strcmp(kernel_source_file(m.source, &frames.at[0]), "include/linux/slab.h");
        }
        assert_true(inlined > 3);
        halt(&m);
    }
}

/* ---- which file is the kernel's ---- */

static int open_vmlinux(const char *root, struct error *e)
{
    struct vmlinux v;
    char *path = path_in(root, PLACE);
    *e = (struct error){""};
    int bad = vmlinux_open(&v, root, path, e);
    assert_int_equal(!bad, v.path != NULL);
    assert_int_equal(!bad, !*e->text);
    free(path);
    int code = bad ? bad : v.unchecked;
    vmlinux_release(&v);
    return code;
}

static bool is_found(const char *root)
{
    struct vmlinux v;
    vmlinux_seek(&v, root);
    bool found = v.path != NULL;
    vmlinux_release(&v);
    return found;
}

static void only_a_file_of_the_same_build_is_taken(void **state)
{
    (void)state;
    struct error e;
    char *root = make_kernel("", OURS);
    assert_int_equal(open_vmlinux(root, &e), 0);
    assert_true(is_found(root));
    compile(root, "", "--build-id=0x0102030405060709");
    assert_int_equal(open_vmlinux(root, &e), -ESTALE);
    assert_non_null(strstr(e.text, "belongs to another kernel"));
    assert_false(is_found(root));
    compile(root, "", "--build-id=0x010203040506070809101112");
    assert_int_equal(open_vmlinux(root, &e), -ESTALE);
    compile(root, "", "--build-id=none");
    assert_int_equal(open_vmlinux(root, &e), 1); /* taken when it is named, as it cannot be compared */
    assert_false(is_found(root));
    compile(root, "", OURS);
    put(root, "sys/kernel/notes", "");
    assert_int_equal(open_vmlinux(root, &e), 1);
    assert_false(is_found(root));
    remove_root(root);
}

static void a_file_that_cannot_help_is_refused(void **state)
{
    (void)state;
    struct error e;
    char *root = make_kernel("", OURS);
    run_shell("strip --strip-debug %s/" PLACE, root);
    assert_int_equal(open_vmlinux(root, &e), -ENODATA);
    assert_non_null(strstr(e.text, "no debug information"));
    compile(root, "", OURS);
    run_shell("objcopy --strip-symbol=_stext %s/" PLACE, root);
    assert_int_equal(open_vmlinux(root, &e), -ENODATA);
    assert_non_null(strstr(e.text, "no symbol _stext"));
    put(root, PLACE, "no ELF file");
    assert_int_equal(open_vmlinux(root, &e), -ENOEXEC);
    put(root, PLACE, "");
    assert_int_equal(open_vmlinux(root, &e), -ENOEXEC);
    run_shell("rm %s/" PLACE " && mkfifo %s/" PLACE, root, root);
    assert_int_equal(open_vmlinux(root, &e), -ENOEXEC); /* and nobody waits for a writer */
    run_shell("rm %s/" PLACE, root);
    assert_int_equal(open_vmlinux(root, &e), -ENOENT);
    assert_false(is_found(root));
    remove_root(root);
}

/* ---- files that lie ---- */

/* Whatever the file holds, it is refused, or something is found in it, or nothing. */
static void use(const struct overview *m)
{
    static const char *const names[] = {"start_kernel", "slab_alloc", "alloc_empty_file"};
    struct vmlinux v;
    char *path = path_in(m->root, "copy");
    struct symbol_frames frames;
    if (!vmlinux_open(&v, m->root, path, NULL)) {
        struct symbols *symbols = symbols_new(NULL);
        struct kernel_source *source = kernel_source_new(&v, m->kernel, symbols);
        for (uint64_t at = 0; at < 64 * sizeof(names) / sizeof(*names); at++)
            if (kernel_source_frames(source, 0x81000000u + MOVED + at, &frames))
                assert_true(frames.len > 0 && frames.at[0].function);
        kernel_source_free(source);
        symbols_free(symbols);
        vmlinux_release(&v);
    }
    free(path);
}

static void files_that_are_cut_or_altered_do_no_harm(void **state)
{
    (void)state;
    struct overview m;
    boot(&m, "");
    struct buf whole = BUF_INIT;
    char *path = path_in(m.root, PLACE);
    assert_int_equal(file_read(path, 1 << 24, &whole), 0);
    put_bytes(m.root, "copy", whole.data, whole.len);
    use(&m);
    for (size_t len = 0; len < whole.len; len += 1 + whole.len / 200) {
        put_bytes(m.root, "copy", whole.data, len);
        use(&m);
    }
    char *altered = mem_alloc(whole.len);
    srand(20261122);
    for (int i = 0; i < 1500; i++) {
        memcpy(altered, whole.data, whole.len);
        for (int n = 1 + rand() % 8; n > 0; n--) {
            size_t at = (size_t)rand() % whole.len;
            altered[at] = (char)(rand() % 3 ? rand() : rand() % 2 ? 0xff : 0);
        }
        put_bytes(m.root, "copy", altered, whole.len);
        use(&m);
    }
    free(altered);
    free(path);
    buf_release(&whole);
    halt(&m);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST("the build id is found in the kernel's notes, whatever they hold", build_ids_are_found_in_notes),
        TEST("files, lines and inlined functions are those of addr2line", lines_are_those_of_addr2line),
        TEST("a tree that the build has renamed has the same files", trees_that_were_renamed_have_no_top),
        TEST("what is not the kernel's own code has no file", what_is_not_the_kernels_own_code_has_no_file),
        TEST("code of a module has the files of its debug information",
             code_of_modules_has_the_files_of_their_debug_information),
        TEST("only a file of the same build is taken", only_a_file_of_the_same_build_is_taken),
        TEST("a file that cannot help is refused, and says why", a_file_that_cannot_help_is_refused),
        TEST("files that are cut or altered do no harm", files_that_are_cut_or_altered_do_no_harm),
    };
    return cmocka_run_group_tests_name("kernel_source", tests, NULL, NULL);
}
