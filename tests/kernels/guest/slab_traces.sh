# SPDX-License-Identifier: BSD-2-Clause
#
# Copies of /sys/kernel/debug/slab/*/alloc_traces (slub_debug=U) as a recording: objects and bytes of each cache are what
# the files and /sys/kernel/slab say, added up here.
#: memory 512M
#: modules brd
#: parameters slub_debug=U

. /tests/tap.sh
plan 9

# value QUERY: of the recording
value() { allium sql /tmp/slab.allium "$1" --json | sed -n 's/^{"v":"*\([^"}]*\)"*}.*/\1/p'; }

mkdir -p /tmp/debug /tmp/slab
mount -t debugfs none /tmp/debug
for cache in /tmp/debug/slab/*; do
    name=${cache##*/}
    mkdir "/tmp/slab/$name"
    cat "$cache/alloc_traces" >"/tmp/slab/$name/alloc_traces"
    cat "$cache/free_traces" >"/tmp/slab/$name/free_traces"
    cat "/sys/kernel/slab/$name/object_size" >"/tmp/slab/$name/object_size"
done
umount /tmp/debug

# Objects, bytes, and bytes that were requested, of each cache.
for cache in /tmp/slab/*; do
    awk -v name="${cache##*/}" -v size="$(cat "$cache/object_size")" '
        /^ *[0-9]+ / { n += $1; for (i = 2; i <= NF; i++) if ($i ~ /^waste=/) { split(substr($i, 7), w, "/"); waste += w[1] } }
        END { if (n) print name, n, n * size, n * size - waste }' "$cache/alloc_traces"
done | sort >/tmp/want
objects=$(awk '{ n += $2 } END { print n }' /tmp/want)
bytes=$(awk '{ n += $3 } END { printf "%d\n", n }' /tmp/want)
echo "# $objects objects of $bytes bytes in $(wc -l </tmp/want) caches"

allium sys import /tmp/slab -o /tmp/slab.allium 2>/tmp/said
equal "it reads the copies" $? 0
sed 's/^/# /' /tmp/said
holds "it says how many there are" "^  live  *$(echo "$objects" | sed ':a; s/\([0-9]\)\([0-9]\{3\}\)\($\|,\)/\1,\2\3/; ta') objects" /tmp/said
allium sql /tmp/slab.allium "select cache || ' ' || sum(live_objects) || ' ' || sum(live_bytes) || ' ' || sum(requested_bytes) v
from sys_kmem group by cache" --json | sed -n 's/^{"v":"\(.*\)"}.*/\1/p' | sort >/tmp/got
diff /tmp/want /tmp/got | sed 's/^/# /'
cmp -s /tmp/want /tmp/got
result $? "objects, bytes and requested bytes of each cache are those of the files"
equal "calls of modules have their names" \
    "$(value "select count(*) > 0 v from sys_slab_traces where call_site like 'brd%+0x% [brd]' and stack like '%[brd]%'")" 1
equal "the profile has the same bytes" "$(allium report /tmp/slab.allium --json | sed -n 's/^"live_bytes":\([0-9]*\),$/\1/p' | head -n 1)" \
    "$bytes"
equal "no stack was passed over" "$(grep -c 'without a stack' /tmp/said)" 0
equal "ages are kept" "$(value 'select count(*) v from sys_slab_traces where age_max_ticks < age_min_ticks')" 0
freed=$(cat /tmp/slab/*/free_traces | awk '/^ *[0-9]+ / { n += $1 } END { print n }')
equal "what was freed last is a table of its own" "$(value 'select sum(objects) v from sys_slab_freed')" "$freed"

rm /tmp/slab/*/object_size /tmp/slab.allium
allium sys import /tmp/slab --state / -o /tmp/slab.allium 2>/tmp/said
equal "sizes may come from the state" "$(value 'select sum(live_bytes) v from sys_kmem')" "$bytes"
