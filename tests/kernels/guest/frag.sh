# SPDX-License-Identifier: BSD-2-Clause
#
# `allium sys frag` in a quiet guest: indices of debugfs, slabs that are half empty on purpose, what shrink frees.

. /tests/tap.sh
plan 12
mkdir -p /tmp/debugfs /tmp/files
mount -t debugfs none /tmp/debugfs
mount -t tmpfs none /tmp/files

# value KEY FILE: the first value of that key
value() { sed -n "s/.*\"$1\":\([-0-9]*\).*/\1/p" "$2"; }
# cache NAME KEY FILE: a figure of that cache
cache() { grep -o "{\"cache\":\"$1\",\"slabs\"[^}]*}" "$3" | sed -n "s/.*\"$2\":\([0-9]*\).*/\1/p"; }

# Of what debugfs has the same before and after, most is as it was in between: 0.9 of the values.
indices()
{
    cat /tmp/debugfs/extfrag/*_index >/tmp/before
    allium sys frag --json >/tmp/report
    cat /tmp/debugfs/extfrag/*_index >/tmp/after
    grep -o '"zone":"[^"]*","order":[^}]*' /tmp/report | tr '":,' '   ' >/tmp/orders
    awk '
    FILENAME == "/tmp/orders" { unusable[$2, $4] = sprintf("%.3f", $(NF - 2)); extfrag[$2, $4] = sprintf("%.3f", $NF); next }
    { for (i = 5; i <= NF; i++) if (FILENAME == "/tmp/before") before[FNR, i] = $i; else if (before[FNR, i] == $i) {
        same++
        agree += $i == (FNR * 2 <= lines ? extfrag[$4, i - 5] : unusable[$4, i - 5]) } }
    END { print agree " of " same; exit !(same > 10 && agree >= 0.9 * same) }
    ' lines=$(wc -l </tmp/before) /tmp/orders /tmp/before /tmp/after
}
check "both indices of each zone and order are those of debugfs" indices
equal "every line of the kernel's files was understood" "$(value malformed_lines /tmp/report)" 0

cat >/tmp/makes <<'END'
i=0
while [ $i -lt 3000 ]; do : >/tmp/files/$i; i=$((i + 1)); done
i=0
while [ $i -lt 3000 ]; do [ $((i % 16)) = 0 ] || echo /tmp/files/$i; i=$((i + 1)); done | xargs rm
sleep 2
END
allium sys frag --json --buffer 16M -- sh /tmp/makes >/tmp/report 2>/tmp/said
equal "it captures" $? 0
holds "nothing was lost" '"lost_events":0' /tmp/report
holds "the inodes' cache loses most" '"caches":\[{"cache":"shmem_inode_cache"' /tmp/report
holds "the call that makes them pins most" '"sites":\[{"site":"shmem_alloc_inode' /tmp/report
low=$(sed -n 's/.*"sites":\[{[^}]*"pinned_low_bytes":\([0-9]*\),.*/\1/p' /tmp/report | head -n 1)
free=$(($(cache shmem_inode_cache free_bytes /tmp/report) + $(cache shmem_inode_cache cpu_free_high_bytes /tmp/report)))
echo "# pinned at least $low, free at most $free"
[ "$low" -gt 1000000 ] && [ "$low" -le "$free" ]
result $? "what is pinned for certain is free"

rm -r /tmp/files/*
sleep 2
shrinks()
{
    allium sys frag --json >/tmp/report
    before=$(sed 's/ .*//' /sys/kernel/slab/shmem_inode_cache/slabs)
    echo 1 >/sys/kernel/slab/shmem_inode_cache/shrink
    after=$(sed 's/ .*//' /sys/kernel/slab/shmem_inode_cache/slabs)
    bytes=$(($(cache shmem_inode_cache slab_bytes /tmp/report) / $(cache shmem_inode_cache slabs /tmp/report)))
    freed=$(((before - after) * bytes))
    echo "freed $freed"
    [ $freed -ge $(cache shmem_inode_cache shrink_low_bytes /tmp/report) ] &&
        [ $freed -le $(cache shmem_inode_cache shrink_high_bytes /tmp/report) ]
}
check "shrink frees what lies between the bounds" shrinks

echo 1 >/proc/sys/vm/stat_refresh
allium sys frag --json >/tmp/report
rest=$(value rest_bytes /tmp/report)
slab=$(value meminfo_slab_bytes /tmp/report)
echo "# rest $rest of $slab, with kmallocs of whole pages since boot"
[ "$rest" -ge "-$(value counters_bytes /tmp/report)" ] && [ $((rest * 4)) -le "$slab" ]
result $? "slabs and Slab: of meminfo agree, but for large kmallocs"
echo 1 >/proc/sys/kernel/kptr_restrict
allium sys frag --json >/tmp/report
holds "where the kernel shows addresses, holes of vmalloc are known" '"holes":[1-9][0-9]*,"holes_bytes":[1-9]' /tmp/report
equal "and no address is told" "$(grep -c 'ffff[0-9a-f]\{12\}' /tmp/report)" 0
allium sys frag --from /tmp/none >/dev/null 2>/tmp/said
equal "a recording that is not there" $? 1
