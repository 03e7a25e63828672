/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * src/symbol/tree: the functions that a C file defines, the index of a small kernel's source, and which of several
 * files a name is of: by the configuration, the module and the order of symbols.
 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/buf.h"
#include "symbol/kallsyms.h"
#include "symbol/tree/c_functions.h"
#include "symbol/tree/source_finder.h"
#include "symbol/tree/source_index.h"

/* ---- the scanner ---- */

static void note(void *arg, const char *name, size_t len, uint32_t line)
{
    buf_printf(arg, "%.*s:%u ", (int)len, name, line);
}

static void has(const char *text, const char *want)
{
    struct buf b = BUF_INIT;
    c_functions_find(text, strlen(text), note, &b);
    assert_string_equal(buf_str(&b), want);
    buf_release(&b);
}

static void plain_definitions_have_name_and_line(void **state)
{
    (void)state;
    has("int a(void)\n{\n\treturn 0;\n}\n\nstatic void b(int x) { if (x) { y(); } }\nint c(void);\n",
        "a:1 b:6 ");
    has("static int\nlong_one(struct x *a,\n\t int (*f)(int, char),\n\t long c)\n{\n}\n", "long_one:2 ");
    has("struct s { int a; };\nstruct s *f(struct s a)\n{\n}\nunion u v;\nenum e { A, B };\n", "f:2 ");
    has("static struct ops ops = {\n\t.read = f,\n\t.size = g(3),\n};\nint a[] = { f(1), };\nint z(void) "
        "{}\n",
        "z:6 ");
}

static void attributes_are_no_functions(void **state)
{
    (void)state;
    has("static __printf(1, 2) int log_it(const char *f, ...)\n{\n}\n", "log_it:1 ");
    has("void lock(struct l *l) __acquires(&l->x)\n\t__must_hold(y)\n{\n}\n", "lock:1 ");
    has("int __init __attribute__((noinline, section(\"x\"))) start(void)\n{\n}\n", "start:1 ");
    has("EXPORT_SYMBOL(a)\nint b(void)\n{\n}\nmodule_init(c);\n", "b:2 ");
    has("void (*handler(int number, void (*f)(int)))(int)\n{\n}\n", "handler:1 ");
}

static void comments_strings_and_directives_hide_braces(void **state)
{
    (void)state;
    has("int a(void)\n{\n\t/* } */ s = \"}\\\"}\"; c = '}'; // }\n}\nint b(void)\n{\n}\n", "a:1 b:5 ");
    has("#define OPEN(x) { \\\n\tint hidden(void) { \\\n\t}\nint a(void)\n{\n\tOPEN(x);\n}\n", "a:4 ");
    has("#if 0\nint a(void)\n{\n#if X\n}\n#endif\n#else\nint b(void)\n{\n}\n#endif\nint c(void)\n{\n}\n",
        "b:8 c:12 ");
    has("#if 0\nint a(void)\n{\n}\n#elif defined(B)\nint b(void)\n{\n}\n#endif\n", "b:6 ");
    has("#ifdef X\nint a(int b)\n{\n\tif (b) {\n#else\nint a(void)\n{\n\t{\n#endif\n\t}\n}\nint "
        "z(void)\n{\n}\n",
        "a:2 a:6 z:12 ");
    has("int a(void)\n{\n#ifdef X\n\tif (x) {\n#else\n\tif (y) {\n#endif\n\t}\n}\nint b(void)\n{\n}\n",
        "a:1 b:10 ");
}

static void macros_that_make_functions_are_known(void **state)
{
    (void)state;
    has("SYSCALL_DEFINE3(open, const char __user *, name,\n\tint, flags, int, mode)\n{\n}\n",
        "sys_open:1 __se_sys_open:1 __do_sys_open:1 ");
    has("COMPAT_SYSCALL_DEFINE1(ioctl, int, x)\n{\n}\nSYSCALL_DEFINE0(sync)\n{\n}\n",
        "compat_sys_ioctl:1 __se_compat_sys_ioctl:1 __do_compat_sys_ioctl:1 sys_sync:4 __se_sys_sync:4 "
        "__do_sys_sync:4 ");
    has("static int x_show(void)\n{\n}\nDEFINE_SHOW_ATTRIBUTE(x);\nint z(void)\n{\n}\n",
        "x_show:1 x_open:4 z:5 ");
    has("MAKE(a, b)\nMAKE(c, d);\nint z(void)\n{\n}\n", "z:3 ");
}

static void broken_text_hides_only_its_own_function(void **state)
{
    (void)state;
    has("int a(void)\n{\n\tif (x) {\n}\nint b(void)\n{\n}\n", "a:1 b:5 ");
    has("int a(void\n{\n}\nint b(void)\n{\n}\n", "a:1 b:4 ");
    has("/* not closed\nint a(void)\n{\n}\n", "");
    has("#endif\n#else\n}\n)\nint a(void) {", "a:5 ");
    has("", "");
}

/* ---- a small kernel ---- */

static char root[] = "/tmp/allium-source-XXXXXX";

static void put(const char *path, const char *text)
{
    char whole[512];
    snprintf(whole, sizeof(whole), "%s/%s", root, path);
    for (char *at = whole + strlen(root) + 1; (at = strchr(at, '/')); at++) {
        *at = '\0';
        mkdir(whole, 0700);
        *at = '/';
    }
    FILE *file = fopen(whole, "w");
    assert_non_null(file);
    fputs(text, file);
    fclose(file);
}

static int make_tree(void **state)
{
    (void)state;
    assert_non_null(mkdtemp(root));
    put("tree/Makefile", "VERSION = 6\nPATCHLEVEL = 12\nSUBLEVEL = 7\n");
    put("tree/Kbuild", "obj-y += init/ fs/ mm/\nobj-$(CONFIG_NET) += net/\nobj-y += drivers/\n");
    put("tree/init/Makefile", "obj-y := main.o\n");
    put("tree/init/main.c", "void start_kernel(void)\n{\n}\n");
    put("tree/fs/Makefile",
        "obj-y := pipe.o file.o\nobj-$(CONFIG_DISK) += disk.o\ndisk-y := super.o acl.o\n");
    put("tree/fs/pipe.c", "#include \"x.h\"\nint make_pipe(void)\n{\n}\nstatic void init_once(void)\n{\n}\n"
                          "int last_of_pipe(void)\n{\n}\n");
    put("tree/fs/file.c",
        "int make_file(void)\n{\n}\nstatic void init_once(void)\n{\n}\nint last_of_file(void)\n{\n}\n");
    put("tree/fs/super.c", "int init_once(void)\n{\n}\nint disk_super(void)\n{\n}\n");
    put("tree/fs/acl.c", "int disk_acl(void)\n{\n}\n");
    put("tree/mm/Makefile", "obj-$(CONFIG_SLUB) += slub.o\nobj-$(CONFIG_SLOB) += slob.o\n");
    put("tree/mm/slub.c", "void *kmalloc_it(void)\n{\n}\n");
    put("tree/mm/slob.c", "void *kmalloc_it(void)\n{\n}\n");
    put("tree/net/Makefile", "obj-y := sock.o\n");
    put("tree/net/sock.c", "int make_file(void)\n{\n}\nint make_sock(void)\n{\n}\n");
    put("tree/drivers/Makefile", "obj-$(CONFIG_ONE) += one-drv.o\n");
    put("tree/drivers/one-drv.c", "GENERATE(one);\nint probe(void)\n{\n}\n");
    put("tree/include/x.h", "static inline int from_header(void)\n{\n}\n");
    put("tree/arch/x86/Kbuild", "obj-y += kernel/\n");
    put("tree/arch/x86/kernel/Makefile", "obj-y := setup.o\n");
    put("tree/arch/x86/kernel/setup.c", "int setup_arch(void)\n{\n}\n");
    put("tree/arch/arm64/kernel/setup.c", "int setup_arch(void)\n{\n}\n");
    put("tree/tools/pipe.c", "int make_pipe(void)\n{\n}\n");
    return 0;
}

static int remove_tree(void **state)
{
    char command[128];
    (void)state;
    snprintf(command, sizeof(command), "rm -rf %s", root);
    return system(command);
}

static struct source_finder *opened(const char *config)
{
    struct error e = {""};
    struct source_finder *f;
    char tree[128], cache[128];
    snprintf(tree, sizeof(tree), "%s/tree", root);
    snprintf(cache, sizeof(cache), "%s/cache", root);
    assert_int_equal(source_finder_open(&f, tree, cache, NULL, &e), 0);
    source_finder_set_kernel(f, &(struct source_kernel){.config = config});
    return f;
}

static void finds_at(struct source_finder *f, const char *module, const char *function, uint64_t bytes,
                     const char *want)
{
    struct source_place p = {.file = NULL};
    const enum function_found how = source_finder_find(f, module, function, bytes, &p);
    assert_string_equal(how == FUNCTION_ONE ? p.file : how == FUNCTION_SEVERAL ? "several" : "none", want);
}

static void finds(struct source_finder *f, const char *module, const char *function, const char *want)
{
    finds_at(f, module, function, 0, want);
}

#define CONFIG                                                                                               \
    "CONFIG_X86=y\nCONFIG_SLUB=y\n# CONFIG_SLOB is not set\nCONFIG_DISK=m\nCONFIG_ONE=m\nCONFIG_NET=y\n"

static void configuration_and_module_tell_the_file(void **state)
{
    (void)state;
    struct source_finder *f = opened(CONFIG);
    assert_string_equal(source_finder_version(f), "6.12.7");
    finds(f, "", "make_pipe", "fs/pipe.c");
    finds(f, "", "make_pipe.isra.0", "fs/pipe.c");
    finds(f, "", "kmalloc_it", "mm/slub.c");
    finds(f, "", "setup_arch", "arch/x86/kernel/setup.c");
    finds(f, "", "make_file", "several");
    finds(f, "", "init_once", "several");
    finds(f, "disk", "init_once", "fs/super.c");
    finds(f, "", "disk_super", "none");
    finds(f, "", "from_header", "none");
    finds(f, "one_drv", "one_made_by_a_macro", "drivers/one-drv.c");
    finds(f, "disk", "made_by_a_macro", "none");
    source_finder_free(f);
    f = opened(NULL);
    finds(f, "", "kmalloc_it", "several");
    finds(f, "", "setup_arch", "several");
    source_finder_free(f);
    f = opened("CONFIG_ARM64=y\nCONFIG_SLOB=y\n");
    finds(f, "", "kmalloc_it", "mm/slob.c");
    finds(f, "", "setup_arch", "arch/arm64/kernel/setup.c");
    finds(f, "", "make_file", "fs/file.c");
    source_finder_free(f);
}

static void order_of_symbols_tells_the_file(void **state)
{
    (void)state;
    static const char symbols[] = "ffffffff81000000 T _stext\n"
                                  "ffffffff81000100 T make_pipe\n"
                                  "ffffffff81000200 t init_once\n"
                                  "ffffffff81000300 t made_by_a_macro\n"
                                  "ffffffff81000400 T last_of_pipe\n"
                                  "ffffffff81000500 t last_of_file\n"
                                  "ffffffff81000600 t init_once\n"
                                  "ffffffff81000680 T make_file\n"
                                  "ffffffff81000700 t from_header\n"
                                  "ffffffff81000800 T make_sock\n"
                                  "ffffffff81000900 T __x64_sys_open\n"
                                  "ffffffff81000a00 T _etext\n";
    struct kallsyms k;
    struct source_place p;
    struct source_finder *f = opened(CONFIG);
    kallsyms_parse(&k, symbols, "");
    source_finder_use_symbols(f, &k);
    finds(f, "", "init_once", "several");
    finds_at(f, "", "init_once", 0x100, "fs/pipe.c");
    finds_at(f, "", "init_once", 0x80, "fs/file.c");
    finds(f, "", "made_by_a_macro", "fs/pipe.c");
    finds(f, "", "from_header", "none");
    finds(f, "", "make_file", "several"); /* between two files that both have it */
    assert_true(source_finder_is_several(f, "", "init_once"));
    assert_false(source_finder_is_several(f, "", "make_pipe"));
    assert_int_equal(source_finder_at(f, 0xffffffff81000610, &p), FUNCTION_ONE);
    assert_string_equal(p.file, "fs/file.c");
    assert_int_equal(p.line, 4);
    source_finder_free(f);
    kallsyms_release(&k);
}

static void only_the_same_version_fits(void **state)
{
    (void)state;
    struct source_finder *f = opened(NULL);
    assert_true(source_finder_fits(f, "6.12.7"));
    assert_true(source_finder_fits(f, "6.12.7+deb12-amd64"));
    assert_false(source_finder_fits(f, "6.12.70"));
    assert_false(source_finder_fits(f, "6.12.0-7-amd64"));
    assert_false(source_finder_fits(f, ""));
    source_finder_free(f);
}

static void index_is_made_once_and_anew_if_the_source_changes(void **state)
{
    struct error e;
    struct source_index *s;
    bool made;
    char tree[128], cache[128];
    size_t n;
    (void)state;
    snprintf(tree, sizeof(tree), "%s/tree", root);
    snprintf(cache, sizeof(cache), "%s/other", root);
    for (int i = 0; i < 2; i++) {
        assert_int_equal(source_index_open(&s, tree, cache, &made, &e), 0);
        assert_int_equal(made, !i);
        assert_null(source_index_find(s, "new_one", &n));
        source_index_free(s);
    }
    put("tree/mm/new.c", "int new_one(void)\n{\n}\n");
    assert_int_equal(source_index_open(&s, tree, cache, &made, &e), 0);
    assert_true(made);
    assert_non_null(source_index_find(s, "new_one", &n));
    assert_int_equal(n, 1);
    source_index_free(s);
    snprintf(tree, sizeof(tree), "%s/none", root);
    assert_int_equal(source_index_open(&s, tree, cache, &made, &e), -ENOENT);
}

static void archives_have_the_same_functions(void **state)
{
    static const char *const kinds[] = {"cf x.tar", "cJf x.tar.xz", "czf x.tar.gz", "--format=pax -cf x.pax"};
    struct error e;
    struct source_index *folder, *archive;
    char path[192], command[512];
    (void)state;
    snprintf(path, sizeof(path), "%s/tree", root);
    assert_int_equal(source_index_open(&folder, path, NULL, NULL, &e), 0);
    for (size_t i = 0; i < sizeof(kinds) / sizeof(*kinds); i++) {
        snprintf(command, sizeof(command), "cd %s && tar %s tree", root, kinds[i]);
        assert_int_equal(system(command), 0);
        snprintf(path, sizeof(path), "%s/%s", root, strrchr(kinds[i], ' ') + 1);
        const int bad = source_index_open(&archive, path, NULL, NULL, &e);
        assert_string_equal(bad ? e.text : "", "");
        assert_int_equal(source_index_functions(archive), source_index_functions(folder));
        assert_int_equal(source_index_files(archive), source_index_files(folder));
        assert_string_equal(source_index_version(archive), "6.12.7");
        source_index_free(archive);
    }
    assert_int_equal(truncate(path, 1000), 0);
    assert_int_equal(source_index_open(&archive, path, NULL, NULL, &e), -EBADMSG);
    source_index_free(folder);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(plain_definitions_have_name_and_line),
        cmocka_unit_test(attributes_are_no_functions),
        cmocka_unit_test(comments_strings_and_directives_hide_braces),
        cmocka_unit_test(macros_that_make_functions_are_known),
        cmocka_unit_test(broken_text_hides_only_its_own_function),
        cmocka_unit_test(configuration_and_module_tell_the_file),
        cmocka_unit_test(order_of_symbols_tells_the_file),
        cmocka_unit_test(only_the_same_version_fits),
        cmocka_unit_test(index_is_made_once_and_anew_if_the_source_changes),
        cmocka_unit_test(archives_have_the_same_functions),
    };
    return cmocka_run_group_tests(tests, make_tree, remove_tree);
}
