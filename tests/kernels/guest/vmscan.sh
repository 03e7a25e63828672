# SPDX-License-Identifier: BSD-2-Clause
#
# `allium sys vmscan` at a cgroup's limit: pages of files and anonymous ones that were looked at and reclaimed are together those
# that /proc/vmstat counts. vmscan_methods.sh does it with every method, and for the whole machine.
#: programs hog
#: modules lzo-rle zram

. /tests/tap.sh
. /tests/reclaim.sh
plan 5

enabled=/sys/kernel/mm/lru_gen/enabled
was=$(cat $enabled)
echo n >$enabled # 6.1 tells nothing of the other LRU
silent=n
prepare 32 18
begin vmscan --interval 1h
holds "it takes the best attach method on this kernel" '^allium: ready: vmscan using tp_btf$' /tmp/said
within dd if=/dev/zram$disk of=/dev/null bs=1M 2>/dev/null
within hog 18
end
agrees "files and swap"
check "both kinds were reclaimed ($counted)" test "$(sum clean_pages)" -gt 0 -a "$(sum anonymous_pages)" -gt 0
echo $was >$enabled
put_back
