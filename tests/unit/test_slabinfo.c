/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * src/collect/slab: rows of slabinfo, as they are and as they should never be; names of merged caches.
 */
#include "test_kernel.h"

#include "collect/kernel/slabinfo.h"

#include <errno.h>

#define HEAD                                                                                                 \
    "slabinfo - version: 2.1\n"                                                                              \
    "# name            <active_objs> <num_objs> <objsize> <objperslab> <pagesperslab> : tunables <limit> "   \
    "<batchcount> <sharedfactor> : slabdata <active_slabs> <num_slabs> <sharedavail>\n"
#define ROW(name, numbers) name " " numbers " : tunables    0    0    0 : slabdata     51     52      0\n"

static struct slab_caches parse(const char *text)
{
    struct slab_caches s = {.bad_lines = 0};
    assert_int_equal(slab_parse(&s, text), 0);
    return s;
}

static void rows_are_read(void **state)
{
    (void)state;
    struct slab_caches s = parse(HEAD ROW("kmalloc-64       ", "3200   3264     64   63    1")
                                     ROW("ext4_inode_cache", "10 28 1168 28 8") "tail-cut 1 2");
    assert_int_equal(s.all.len, 2);
    assert_int_equal(s.bad_lines, 1);
    const struct slab_cache *c = slab_find(&s, "kmalloc-64");
    assert_non_null(c);
    assert_int_equal(c->active, 3200);
    assert_int_equal(c->objects, 3264);
    assert_int_equal(c->stride_bytes, 64);
    assert_int_equal(c->objects_per_slab, 63);
    assert_int_equal(c->pages_per_slab, 1);
    assert_int_equal(c->slabs, 52);
    assert_int_equal(slab_find(&s, "ext4_inode_cache")->pages_per_slab, 8);
    assert_null(slab_find(&s, "ext4_inode"));
    slab_release(&s);
}

static void bad_rows_are_counted(void **state)
{
    (void)state;
    static const char *const rows[] = {
        ROW("", "1 1 1 1 1"),
        ROW("a", "1 1 1 1"),
        ROW("a", "1 1 1 0 1"),
        ROW("a", "1 1 1 1 0"),
        ROW("a", "-1 1 1 1 1"),
        ROW("a", "1 1 1 1 18446744073709551616"),
        ROW("a\x1b[2J", "1 1 1 1 1"),
        "a 1 1 1 1 1\n",
        "a 1 1 1 1 1 : slabdata 1\n",
        "\n",
        "a\n",
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
        char text[1024];
        snprintf(text, sizeof(text), "%s%s%s", HEAD, rows[i], ROW("good", "1 1 1 1 1"));
        struct slab_caches s = parse(text);
        assert_int_equal(s.bad_lines, 1);
        assert_int_equal(s.all.len, 1);
        slab_release(&s);
    }
    struct slab_caches s = parse(HEAD ROW("twice", "1 1 1 1 1") ROW("twice", "2 2 2 2 2"));
    assert_int_equal(s.bad_lines, 1);
    assert_int_equal(slab_find(&s, "twice")->active, 1);
    slab_release(&s);
    s = (struct slab_caches){.bad_lines = 0};
    assert_int_equal(slab_parse(&s, "slabinfo - version: 1.1\n" ROW("a", "1 1 1 1 1")), -EPROTO);
    assert_int_equal(slab_parse(&s, ""), -EPROTO);
    slab_release(&s);
}

static void add_link(struct slab_links *links, const char *name, const char *unique)
{
    struct slab_link *l = vec_push(links);
    snprintf(l->name, sizeof(l->name), "%s", name);
    snprintf(l->unique, sizeof(l->unique), "%s", unique);
}

static void merged_caches_are_found_by_all_names(void **state)
{
    (void)state;
    struct slab_links links = {0};
    struct slab_caches s =
        parse(HEAD ROW("pool_workqueue", "1 1 64 1 1") ROW("alone", "1 1 64 1 1") ROW("other", "1 1 64 1 1"));
    add_link(&links, "zz_alias", ":0000064");
    add_link(&links, "other", ":0000128");
    add_link(&links, "pool_workqueue", ":0000064");
    add_link(&links, "aa_alias", ":0000064");
    add_link(&links, "lost", ":0000999");  /* to a cache of which slabinfo has no row */
    add_link(&links, "alone", ":0000128"); /* two rows cannot be one cache: neither takes the other's name */
    slab_add_links(&s, &links);
    assert_ptr_equal(slab_find(&s, "zz_alias"), slab_find(&s, "pool_workqueue"));
    assert_ptr_equal(slab_find(&s, "aa_alias"), slab_find(&s, "pool_workqueue"));
    assert_int_equal(slab_find(&s, "aa_alias")->aliases_len, 2);
    assert_string_equal(slab_find(&s, "aa_alias")->aliases[0], "aa_alias");
    assert_null(slab_find(&s, "lost"));
    assert_string_equal(slab_find(&s, "alone")->name, "alone");
    assert_string_equal(slab_find(&s, "other")->name, "other");
    vec_release(&links);
    slab_release(&s);
}

static void what_is_read_lies_below_a_root(void **state)
{
    (void)state;
    struct slab_caches s;
    struct error e = {""};
    char *root = make_root();
    assert_int_equal(slab_read(&s, root, &e), -ENOENT);
    assert_non_null(strstr(e.text, "/proc/slabinfo: No such file"));
    slab_release(&s);
    put(root, "proc/slabinfo", HEAD ROW("dentry", "1 1 192 21 1"));
    put(root, "sys/kernel/slab/:a-0000192/object_size", "184\n");
    put_link(root, "sys/kernel/slab/dentry", ":a-0000192");
    put_link(root, "sys/kernel/slab/like_dentry", ":a-0000192");
    assert_int_equal(slab_read(&s, root, &e), 0);
    assert_int_equal(slab_find(&s, "like_dentry")->object_bytes, 184);
    assert_int_equal(slab_find(&s, "like_dentry")->stride_bytes, 192);
    slab_release(&s);
    remove_root(root);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST("rows of slabinfo are read", rows_are_read),
        TEST("rows that are none are counted and left out", bad_rows_are_counted),
        TEST("a merged cache is found by all of its names", merged_caches_are_found_by_all_names),
        TEST("slabinfo, links and sizes of objects are read together", what_is_read_lies_below_a_root),
    };
    return cmocka_run_group_tests_name("slab", tests, NULL, NULL);
}
