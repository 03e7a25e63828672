/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * src/collect/kernel/state/kernel_makefiles: what options of the configuration bring, from lines of Makefiles and from
 * a tree.
 */
#include "test_advice.h"

#include <errno.h>

#include "collect/kernel/state/kernel_makefiles.h"

static void options_bring_directories(void **state)
{
    (void)state;
    struct planted p;
    struct kernel_config c = {.log_buf_shift = 0};
    setup(&p);
    kernel_config_parse(&c, "CONFIG_A_FS=y\nCONFIG_ACL=y\n# CONFIG_OFF is not set\nCONFIG_ONE=m\nCONFIG_B=y\n"
                            "CONFIG_LOG_BUF_SHIFT=17\nCONFIG_NAME=\"y\"\n");
    assert_int_equal(c.modules.len, 4);
    assert_int_equal(c.log_buf_shift, 17);
    makefile_parse(&p.in, &c, "fs/",
                   "obj-y := core.o always/\nobj-$(CONFIG_A_FS) += a/ # its own\nobj-$(CONFIG_OFF) += off/\n"
                   "obj-$(CONFIG_ONE)\t+= one.o \\\n\ttwo.o\none-y := part.o sub/more.o\n"
                   "obj-$(CONFIG_A_FS) += both.o\nobj-$(CONFIG_B) += both.o\nobj-$(CONFIG_B) += ../up.o "
                   "/abs.o $(X).o\n");
    makefile_parse(&p.in, &c, "fs/a/",
                   "obj-$(CONFIG_A_FS) += a.o\na-y := super.o\na-$(CONFIG_ACL) += acl.o\n");
    plant_file(&p, "a_super+0x1", "fs/a/super.c", 100000);
    plant_file(&p, "a_acl+0x1", "fs/a/acl.c", 50000);
    plant_file(&p, "part+0x1", "fs/part.c", 20000);
    plant_file(&p, "more+0x1", "fs/sub/more.c", 10000);
    plant_file(&p, "both+0x1", "fs/both.c", 70000);
    plant_file(&p, "core+0x1", "fs/core.c", 70000);
    plant_file(&p, "off+0x1", "fs/off/off.c", 70000);
    plant_file(&p, "up+0x1", "up.c", 70000);
    judge(&p);
    assert_true(is_unknown(&p, "--source DIR"));
    found(&p, "without CONFIG_A_FS", 150000, 150000);
    found(&p, "without CONFIG_ACL", 50000, 50000);
    found(&p, "without CONFIG_ONE", 30000, 30000);
    assert_null(find(&p, "CONFIG_B"));
    assert_null(find(&p, "CONFIG_OFF"));
    assert_false(find(&p, "CONFIG_ACL")->counted); /* it goes with the file system */
    assert_int_equal(p.advice.high_bytes, 180000);
    kernel_config_release(&c);
    drop(&p);
}

/* A tree with a Kbuild beside a Makefile, and a link back up. */
static void a_source_tree_is_read(void **state)
{
    (void)state;
    struct planted p;
    struct kernel_config c = {.log_buf_shift = 0};
    struct error e = {""};
    char *root = make_root(), link[64];
    setup(&p);
    kernel_config_parse(&c, "CONFIG_A=y\nCONFIG_B=y\n");
    assert_int_equal(kernel_makefiles_read(&p.in, &c, "/nonexistent", &e), -ENOENT);
    assert_int_equal(kernel_makefiles_read(&p.in, &c, root, &e), -ENOENT);
    assert_non_null(strstr(e.text, "has no Makefile"));
    put(root, "fs/Makefile", "obj-$(CONFIG_A) += a/\n");
    put(root, "fs/a/Kbuild", "obj-y += x.o\n");
    put(root, "fs/a/Makefile", "obj-$(CONFIG_B) += x.o\n");
    snprintf(link, sizeof(link), "%s/fs/a/up", root);
    assert_int_equal(symlink("..", link), 0);
    plant_file(&p, "x+0x1", "fs/a/x.c", 8192);
    assert_int_equal(kernel_makefiles_read(&p.in, &c, root, &e), 0);
    p.in.has_config = true;
    judge(&p);
    found(&p, "without CONFIG_A", 8192, 8192);
    assert_null(find(&p, "CONFIG_B"));
    assert_false(is_unknown(&p, "Options"));
    kernel_config_release(&c);
    drop(&p);
    remove_root(root);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST("options bring directories and files", options_bring_directories),
        TEST("a source tree is read", a_source_tree_is_read),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
