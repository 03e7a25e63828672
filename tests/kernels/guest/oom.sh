# SPDX-License-Identifier: BSD-2-Clause
#
# The machine runs out of memory, and has no swap: a global OOM, with one victim that is known.
#: programs hog

. /tests/tap.sh
plan 5

equal "there is no swap" "$(($(wc -l </proc/swaps) - 1))" 0
before=$(counter oom_kill)
hog 1024 &
victim=$!
wait $victim
equal "the hog is killed" $? 137
equal "nobody else is" $(($(counter oom_kill) - before)) 1
dmesg >/tmp/dmesg
holds "the kernel names it" "Out of memory: Killed process $victim \(hog\)" /tmp/dmesg
holds "it was the machine's memory, not a cgroup's" 'oom-kill:constraint=CONSTRAINT_NONE,' /tmp/dmesg
