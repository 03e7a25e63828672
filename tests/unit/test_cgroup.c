/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * src/collect/mounts, cgroup_mounts and src/model/container_id: what texts say of cgroups. Real ones:
 * tests/cli/kernel_facts.py.
 */
#include "test_kernel.h"

#include "collect/kernel/cgroup_line.h"
#include "collect/kernel/cgroup_mounts.h"
#include "model/kernel/container_id.h"

#define ID "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"

static void containers_are_told_by_their_path(void **state)
{
    (void)state;
    static const struct {
        const char *path, *id;
    } cases[] = {
        {"/system.slice/docker-" ID ".scope", "0123456789ab"},
        {"/docker/" ID, "0123456789ab"},
        {"/docker/" ID "/system.slice/x.service", "0123456789ab"},
        {"/kubepods.slice/kubepods-pod7a_1.slice/cri-containerd-" ID ".scope", "0123456789ab"},
        {"/kubepods/besteffort/pod7a-1/" ID, "0123456789ab"},
        {"/kubepods.slice/kubepods-besteffort.slice/crio-" ID ".scope/container", "0123456789ab"},
        {"/system.slice/containerd.service/kubepods-pod7.slice:cri-containerd:" ID, "0123456789ab"},
        {"/machine.slice/libpod-" ID ".scope/container", "0123456789ab"},
        {"/user.slice/user-1000.slice/user@1000.service/user.slice/libpod-" ID ".scope", "0123456789ab"},
        {"/docker/" ID "/docker/fedcba9876543210fedcba9876543210fedcba9876543210fedcba9876543210",
         "fedcba987654"},
        {"/lxc/web", "web"},
        {"/lxc/web/system.slice/x.service", "web"},
        {"/lxc.payload.web/init.scope", "web"},
        {"/lxc.payload/web", "web"},
        {"/machine.slice/machine-web.scope", "web"},
        {"/machine.slice/machine-web\\x2d1.scope/payload", "web-1"},
        {"/machine.slice/machine-web\\x1b.scope", "web?"},
        {"/machine.slice/systemd-nspawn@web.service/payload", "web"},
        {"/lxc/outer/docker/" ID, "0123456789ab"}, /* the innermost */
        {"/", ""},
        {"", ""},
        {"/docker", ""},
        {"/lxc", ""},
        {"/lxc/", ""},
        {"/lxc.monitor.web", ""},
        {"/machine.slice/libpod-conmon-" ID ".scope", ""},
        {"/system.slice/crio-conmon-" ID ".scope", ""},
        {"/system.slice/docker.service", ""},
        {"/docker/0123456789abcdef", ""},
        {"/docker/0" ID, ""}, /* 65 digits */
        {"/docker/0123456789ABCDEF0123456789abcdef0123456789abcdef0123456789abcdef", ""},
        {"/machine.slice/machine-.scope", ""},
        {"/system.slice/machine-web.service", ""},
        {"/user.slice/user-1000.slice/session-2.scope", ""},
    };
    char id[CONTAINER_ID_BYTES];
    for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
        assert_int_equal(container_id_of(cases[i].path, id), cases[i].id[0] != '\0');
        assert_string_equal(id, cases[i].id);
    }
}

static void long_names_are_cut(void **state)
{
    (void)state;
    char path[300] = "/lxc/", id[CONTAINER_ID_BYTES];
    memset(path + 5, 'n', 200);
    assert_true(container_id_of(path, id));
    assert_int_equal(strlen(id), CONTAINER_ID_BYTES - 1);
}

/* As systemd mounts them where both versions are in use; then what a container sees; then strange names. */
static const char mountinfo[] =
    "31 23 0:28 / /sys/fs/cgroup rw,relatime - tmpfs tmpfs rw,mode=755\n"
    "32 31 0:29 / /sys/fs/cgroup/cpu,cpuacct rw,relatime - cgroup cgroup rw,cpu,cpuacct\n"
    "35 31 0:32 / /sys/fs/cgroup/memory rw,relatime shared:7 master:2 - cgroup cgroup rw,memory\n"
    "40 31 0:37 / /sys/fs/cgroup/systemd rw,relatime - cgroup cgroup rw,xattr,name=systemd\n"
    "41 31 0:38 / /sys/fs/cgroup/unified rw,relatime - cgroup2 cgroup2 rw,nsdelegate\n"
    "42 31 0:38 /docker/1 /mnt/part rw,relatime - cgroup2 cgroup2 rw\n"
    "43 31 0:32 /a\\040b /mnt/with\\040blank\\134 ro - cgroup none rw,memory\n"
    "44\n\n45 31 0:1 / /mnt/no-separator rw cgroup2 none rw\n"
    "46 1 0:50 / /sys/kernel/tracing rw - tracefs tracefs rw";

static void mounts_are_read(void **state)
{
    (void)state;
    struct mounts m = {.all = {0}};
    mounts_parse(&m, mountinfo);
    assert_int_equal(m.all.len, 8);
    assert_string_equal(m.all.at[6].root, "/a b");
    assert_string_equal(m.all.at[6].point, "/mnt/with blank\\");
    assert_string_equal(m.all.at[6].type, "cgroup");
    assert_string_equal(m.all.at[7].type, "tracefs");
    assert_string_equal(m.all.at[7].options, "rw");
    mounts_release(&m);
}

static void hierarchies_are_told_apart(void **state)
{
    (void)state;
    struct mounts m = {.all = {0}};
    enum cgroup_hierarchy h;
    mounts_parse(&m, mountinfo);
    assert_string_equal(cgroup_mount_of(&m, CGROUP_V2)->point,
                        "/sys/fs/cgroup/unified"); /* shows more than /mnt/part */
    assert_string_equal(cgroup_mount_of(&m, CGROUP_V1_MEMORY)->point, "/sys/fs/cgroup/memory");
    assert_string_equal(cgroup_mount_around(&m, "/mnt/part/x")->root, "/docker/1");
    assert_string_equal(cgroup_mount_around(&m, "/sys/fs/cgroup/memory")->options, "rw,memory");
    assert_null(cgroup_mount_around(&m, "/sys/fs/cgroup"));
    assert_null(cgroup_mount_around(&m, "/sys/fs/cgroup/memoryless"));
    assert_null(cgroup_mount_around(&m, "/"));
    const struct mount *cpu = cgroup_mount_around(&m, "/sys/fs/cgroup/cpu,cpuacct/a");
    assert_false(cgroup_mount_is(cpu, &h));
    assert_string_equal(cgroup_mount_controllers(cpu), "cpu,cpuacct");
    assert_string_equal(cgroup_mount_controllers(cgroup_mount_around(&m, "/sys/fs/cgroup/systemd")),
                        "name=systemd");
    assert_true(cgroup_mount_is(cgroup_mount_of(&m, CGROUP_V1_MEMORY), &h) && h == CGROUP_V1_MEMORY);
    mounts_release(&m);
    struct mounts none = {.all = {0}};
    assert_null(cgroup_mount_of(&none, CGROUP_V2));
}

static void paths_have_a_depth(void **state)
{
    (void)state;
    static const struct {
        const char *root, *below, *joined;
        int depth;
    } cases[] = {
        {"/", "", "/", 0},
        {"/", "/a/b", "/a/b", 2},
        {"/a", "", "/a", 1},
        {"/a", "/b/c/", "/a/b/c", 3},
        {"/", "a", "/a", 1},
        {"/..", "/a", "/../a", -1},
        {"/../..", "", "/../..", -1},
        {"/..a", "/b..", "/..a/b..", 2},
    };
    char out[64];
    for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
        assert_true(cgroup_join(cases[i].root, cases[i].below, out, sizeof(out)));
        assert_string_equal(out, cases[i].joined);
        assert_int_equal(cgroup_depth(out), cases[i].depth);
    }
    assert_true(cgroup_join("/", "/abc", out, 5));
    assert_false(cgroup_join("/", "/abc", out, 4));
}

/* The path, or "none". */
static void assert_group(const char *text, enum cgroup_hierarchy of, int32_t hierarchy, const char *path)
{
    struct cgroup_line line = {-1, "none", 4};
    assert_int_equal(cgroup_line_find(text, of, &line), hierarchy >= 0);
    assert_int_equal(line.hierarchy, hierarchy);
    assert_int_equal(line.path_len, strlen(path));
    assert_memory_equal(line.path, path, line.path_len);
}

static void the_group_of_a_process(void **state)
{
    (void)state;
    const char *one =
        "9:name=memory:/no\n7:memory_other:/no\n4:cpu,memory,pids:/a:b/c\n1:name=systemd:/no\n0::/two\n";
    assert_group(one, CGROUP_V1_MEMORY, 4, "/a:b/c");
    assert_group(one, CGROUP_V2, 0, "/two");
    assert_group("5:memory:/a\n3:cpu:/b\n", CGROUP_V1_MEMORY, 5, "/a");
    assert_group("5:memory:/a\n3:cpu:/b\n", CGROUP_V2, -1, "none");
    assert_group("0::/", CGROUP_V2, 0, "/");
    assert_group("0::/", CGROUP_V1_MEMORY, -1, "none");
    assert_group("4:cpu,memory\n:memory:/a\n-1:memory:/a\nx:memory:/a\n4\n\n", CGROUP_V1_MEMORY, -1, "none");
    assert_group("", CGROUP_V1_MEMORY, -1, "none");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST("the group of a process, also where controllers share a hierarchy", the_group_of_a_process),
        TEST("a container is told by the cgroup's path", containers_are_told_by_their_path),
        TEST("a name that is too long is cut", long_names_are_cut),
        TEST("mountinfo is read, whatever is in it", mounts_are_read),
        TEST("hierarchies are told apart, and what is mounted of them", hierarchies_are_told_apart),
        TEST("a path below a mount is one below the root", paths_have_a_depth),
    };
    return cmocka_run_group_tests_name("cgroup", tests, NULL, NULL);
}
