# SPDX-License-Identifier: BSD-2-Clause
#
# `allium sys memleak` of the kernel, of a program that holds files, pages in pipes and memory: what is live is what it
# holds, to the unit, with every method, by site and by stack, and equal in the columns that two methods share. Of the
# whole machine, caches whose frees have no event are flagged.
#: programs maker

. /tests/tap.sh
plan 20

mkfifo /tmp/commands
maker </tmp/commands >/tmp/answers &
maker=$!
exec 3>/tmp/commands
told=0

# waits_for WORDS FILE: until the file has a line with them, at most 60 s
waits_for()
{
    local left=600
    until grep -q "$1" "$2" || [ $left = 0 ]; do left=$((left - 1)) && sleep 0.1; done
}

# tell COMMAND...: the maker does each of them
tell()
{
    for command; do
        echo "$command" >&3
        told=$((told + 1))
        left=600
        until [ "$(wc -l </tmp/answers)" -ge $told ] || [ $left = 0 ]; do left=$((left - 1)) && sleep 0.1; done
    done
}

# follow OPTION...: the tool, while the maker does all that it is to hold; rows in /tmp/rows
follow()
{
    : >/tmp/said # what the last one said is no answer of this one
    allium sys memleak --kernel -p $maker --interval 1h --json "$@" >/tmp/rows 2>/tmp/said &
    tool=$!
    waits_for ': ready: ' /tmp/said
    tell 'pipes 40' fill 'files 300' close 'mappings 500' 'pipes 40' fill 'touch 300' 'timers 30'
    kill -TERM $tool
    wait $tool
    tell close drop untimers
}

# held KEY PATTERN: the sum of that key over the rows that match
held() { grep -E "$2" /tmp/rows | sed -n 's/.*"'"$1"'":\([0-9]*\),.*/\1/p' | { s=0; while read -r n; do s=$((s + n)); done; echo $s; }; }

tell 'pipes 40' fill close 'touch 300' drop 'timers 30' untimers
# The cache may be shared with objects of other kinds, and a file has objects in other caches.
files='alloc_(empty_)?file\+.*"cache":"filp"|"cache":"filp".*alloc_(empty_)?file\+'
in_pipes='"kind":"pages","call_site":"[a-z_]*pipe'
filp=$(cat /sys/kernel/slab/filp/slab_size)
for method in raw_tp tp; do
    follow --attach $method
    holds "$method: it is ready" "^allium: ready: memleak --kernel using $method" /tmp/said
    equal "$method: files, two of each pipe" "$(held objects "$files")" 80
    equal "$method: bytes of files" "$(held live_bytes "$files")" $((80 * filp))
    equal "$method: pages in pipes" "$(held objects "$in_pipes")" 40
    equal "$method: memory" "$(held live_bytes '"kind":"movable pages"')" $((300 * 4096))
    holds "$method: nothing was lost" '"lost_rows":0,.*"lost_live_objects":0,.*"lost_frees":0' /tmp/rows
    grep -E "$files|\"movable pages\"|$in_pipes" /tmp/rows |
        sed -n 's/.*\("kind":.*"objects":[0-9]*\),.*/\1/p' | sort >/tmp/shared.$method
done
check "the methods show the same" cmp /tmp/shared.raw_tp /tmp/shared.tp
follow --by stack --period 1
equal "by stack: files" "$(held objects "$files")" 80
equal "by stack: memory" "$(held live_bytes '"kind":"movable pages"')" $((300 * 4096))
follow --by stack --period 16
equal "sampled, all of what is far larger than the period" "$(held samples '"kind":"movable pages"')" 300
follow --older-than 1h
equal "nothing is as old" "$(grep -c '"kind"' /tmp/rows)" 0
: >/tmp/said
allium sys memleak --only slab --by cache --interval 1h --json >/tmp/rows 2>/tmp/said &
tool=$!
waits_for ': ready: ' /tmp/said
tell 'forks 100' 'mappings 2000' 'forks 100'
kill -TERM $tool
wait $tool
holds "caches whose frees have no event are flagged" '"unseen_frees":[1-9][0-9]*,"caution":"frees without event"' /tmp/rows
holds "... and counted" '"frees_without_event":[1-9]' /tmp/rows
holds "it takes an attach method on this kernel" '^allium: ready: memleak --kernel using ' /tmp/said
exec 3>&-
wait $maker
