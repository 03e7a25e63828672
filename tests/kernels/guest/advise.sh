# SPDX-License-Identifier: BSD-2-Clause
#
# `allium sys advise` in a quiet guest: what "shrink" frees of each cache lies within the bounds that were printed; a module
# without users, huge pages and a log buffer are found, and those that can be had without a boot save what was printed.
#: modules lzo-rle zram
#: parameters log_buf_len=1M dhash_entries=65536

. /tests/tap.sh
. /tests/shrink.sh
plan 11

# measure WORDS: "low high" of the measure whose change begins so
measure() { sed -n "s/.*\"change\":\"$1.*\"low_bytes\":\(-*[0-9]*\),\"high_bytes\":\([0-9]*\),.*/\1 \2/p" /tmp/advice; }

echo 16 >/proc/sys/vm/nr_hugepages
pages=$(cat /proc/sys/vm/nr_hugepages)
allium sys advise --json >/tmp/advice
holds "it has measures" '"measures_in_all":[0-9]' /tmp/advice
free=$(sed -n 's/^MemFree: *\([0-9]*\) kB/\1/p' /proc/meminfo)
echo 0 >/proc/sys/vm/nr_hugepages
now=$(sed -n 's/^MemFree: *\([0-9]*\) kB/\1/p' /proc/meminfo)
equal "huge pages that nobody uses" "$(measure "lower vm.nr_hugepages by $pages\"")" "$((pages << 21)) $((pages << 21))"
# others allocate and free some MiB meanwhile
check "they come back ($pages: $free, then $now kB)" [ $((now - free - pages * 2048)) -gt -4096 -a $((now - free - pages * 2048)) -lt 4096 ]

size=$(sed -n 's/^zram \([0-9]*\) .*/\1/p' /proc/modules)
equal "a module without users" "$(measure 'rmmod zram')" "$size $size"
check "it can go" rmmod zram
allium sys advise --json >/tmp/without
check "and is not there any more" sh -c '! grep -q "rmmod zram" /tmp/without'

data=1048576
equal "the log buffer" "$(measure 'boot without log_buf_len=1048576')" "0 $((data + data / 32 * 112))"
entries=$(sed -n 's/.*"boot with dhash_entries=\([0-9]*\)".*/\1/p' /tmp/advice)
equal "the table of dentries" "$(measure 'boot with dhash_entries')" "$(((65536 - entries) * 8)) $(((65536 - entries) * 8))"

sync
allium sys advise --json >/tmp/advice
shrink_all /tmp/advice >/tmp/shrunk
judged=$(wc -l </tmp/shrunk)
freed=$(awk '{ sum += $4 } END { print sum + 0 }' /tmp/shrunk)
echo "# $judged caches were judged, $freed bytes freed"
check "many caches are still as they were" [ $judged -ge 20 ]
check "something was freed" [ $freed -gt 0 ]
equal "what each frees lies within its bounds" "$(awk '$4 < $2 || $4 > $3' /tmp/shrunk)" ""
