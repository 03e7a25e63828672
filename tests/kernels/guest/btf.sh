# SPDX-License-Identifier: BSD-2-Clause
#
# What all BPF tools need of a kernel, and this rig of a guest.

. /tests/tap.sh
plan 3

check "the kernel's own BTF is there" test -s /sys/kernel/btf/vmlinux
check "tracepoints can be listed" test -d /sys/kernel/tracing/events/oom/mark_victim
check "the memory controller is on" test -e /sys/fs/cgroup/memory.stat
