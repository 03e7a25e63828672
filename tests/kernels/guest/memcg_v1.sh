# SPDX-License-Identifier: BSD-2-Clause
#
# The same with the memory controller of cgroup v1, which Debian's 6.12 is built without.
#: kernels 6.1
#: cgroup v1
#: programs hog

. /tests/tap.sh
plan 3

small=/sys/fs/cgroup/memory/small
mkdir $small && echo 16M >$small/memory.limit_in_bytes
sh -c "echo \$\$ >$small/cgroup.procs && exec hog 64"
equal "the hog is killed" $? 137
equal "its cgroup counts one kill" "$(sed -n 's/^oom_kill //p' $small/memory.oom_control)" 1
dmesg >/tmp/dmesg
holds "the kernel names the cgroup" 'oom-kill:constraint=CONSTRAINT_MEMCG,.*oom_memcg=/small,.*task=hog,' /tmp/dmesg
rmdir $small
