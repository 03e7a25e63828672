# SPDX-License-Identifier: BSD-2-Clause
#
# `allium bench --memcg` on cgroup v2: a page is charged as a page, a file as its object, and nothing remains. What
# cannot be measured is said: a file system that does not cache holes, a root that gives its children no controller.

. /tests/tap.sh
plan 10

of() { sed -n "s/^{\"operation\":\"$1\".*\"$2\":\([^,}]*\).*/\1/p" /tmp/rows; }

TMPDIR=/tmp allium bench --memcg --time 0s --json >/tmp/rows
equal "it ends well" $? 0
equal "it is cgroup v2" "$(of pipe cgroup_version)" 2
pages=$(of touch charged_bytes)
check "a page is charged as a page: $pages" test "${pages%.*}" -ge 4060 -a "${pages%.*}" -le 4136
file=$(of open charged_bytes)
size=$(($(cat /sys/kernel/slab/filp/slab_size) + 8))
check "a file is charged as its object, $size: $file" test "${file%.*}" -ge $((size - 40)) -a "${file%.*}" -le $((size + 40))
pipe=$(of pipe charged_bytes)
check "a pipe has two files and more: $pipe" test "${pipe%.*}" -gt $((2 * size + 600))
check "tmpfs does not cache holes, which is said" grep -q "does not cache holes" /tmp/rows
equal "no cgroup remains" "$(ls -d /sys/fs/cgroup/allium-bench-* 2>/dev/null)" ""

allium bench --memcg --time 1ms >/tmp/text
holds "times are measured" "^touch .* 0 *$" /tmp/text

echo -memory >/sys/fs/cgroup/cgroup.subtree_control
allium bench --memcg >/tmp/text 2>&1
equal "without the controller it is not possible" $? 3
holds "... and said what to do" "echo \+memory >/sys/fs/cgroup/cgroup.subtree_control" /tmp/text
echo +memory >/sys/fs/cgroup/cgroup.subtree_control
