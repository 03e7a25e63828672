# SPDX-License-Identifier: BSD-2-Clause
#
# `allium sys drsnoop` while the machine runs out of memory: a row for each stall that ftrace records, but for those of
# allium itself. (The kernel's counters allocstall_* are no measure: from 6.8 on a stall that was in vain counts twice.)
#: programs hog

. /tests/tap.sh
plan 8

trace=/sys/kernel/tracing/instances/stalls
mkdir $trace
echo 1 >$trace/events/vmscan/mm_vmscan_direct_reclaim_begin/enable
allium sys drsnoop --json >/tmp/rows 2>/tmp/said &
tool=$!
until grep -q ready /tmp/said || ! kill -0 $tool; do usleep 100000; done
holds "it takes the best attach method on this kernel" '^allium: ready: drsnoop using tp_btf$' /tmp/said
hog 1024
kill -INT $tool
wait $tool
equal "it ends well when interrupted" $? 0
echo 0 >$trace/tracing_on
grep direct_reclaim_begin $trace/trace | grep -v '^ *allium-' >/tmp/trace
equal "so many stalls of all tasks" "$(grep -c '"reclaim":"direct"' /tmp/rows)" "$(wc -l </tmp/trace)"
equal "so many of the hog" "$(grep -c '"comm":"hog"' /tmp/rows)" "$(grep -c '^ *hog-' /tmp/trace)"
check "the hog had some" grep -q '^ *hog-' /tmp/trace
# so little that direct reclaim begins: some of the 64 Ki pages; others give some back at any time, and zones may be boosted
high=$(awk '$1 == "high" { n += $2 } END { print n }' /proc/zoneinfo)
free=$(sed -n 's/.*"reclaim":"direct".*"free_bytes":\([0-9]*\),.*/\1/p' /tmp/rows | sort -n | tail -n 1)
check "most that was free ($free) is about what zones want, $high pages" [ $((free / 4096)) -le $((2 * high + 2048)) ]
check "something was" [ "$free" -gt 0 ]
holds "nothing was lost" '"lost_events":0,' /tmp/rows
rmdir $trace
