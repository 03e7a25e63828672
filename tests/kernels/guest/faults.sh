# SPDX-License-Identifier: BSD-2-Clause
#
# `allium sys faults` of a program that touches known numbers of pages: two runs that differ in 600 pages of each kind differ
# in 600 faults of each, with every method. So they do when each fault's stack is taken, and pages of that are missing: to look at them is
# no fault of the program's.
#: programs toucher

. /tests/tap.sh
plan 23

# seen METHOD PAGES: what the program's row says; also in /tmp/row
seen()
{
    printf 'heap %s\nshared %s\npopulated %s\n' $2 $2 $2 |
        allium sys faults --attach "$1" --comm toucher --json -- toucher 2>/tmp/stderr >/tmp/rows
    grep '"comm":"toucher"' /tmp/rows >/tmp/row
}

# column NAME: of /tmp/row
column() { sed -n 's/.*"'$1'":\([0-9]*\).*/\1/p' /tmp/row; }

# grown METHOD: by how much columns differ between two runs
grown()
{
    seen $1 200
    few="$(column heap) $(column shared) $(column asked)"
    seen $1 800
    set -- $few
    heap=$(($(column heap) - $1)) shared=$(($(column shared) - $2)) asked=$(($(column asked) - ${3:-0}))
}

# below_hole METHOD PAGES: faults of the program, in all
below_hole()
{
    echo hole $2 | allium sys faults --attach "$1" --by stack --sample 1 --comm toucher --json -- toucher 2>/tmp/stderr >/tmp/rows
    sed -n 's/.*"faults":\([0-9]*\).*/\1/p' /tmp/rows | awk '{ n += $1 } END { print n + 0 }'
}

allium sys faults --duration 100ms >/tmp/rows 2>/tmp/said
holds "it takes the best attach method on this kernel" '^allium: ready: faults using fexit$' /tmp/said
for method in fexit perf tp_btf raw_tp tp; do
    grown $method
    equal "$method: the heap" $heap 600
    equal "$method: shared memory" $shared 600
    # To copy a program's arguments and environment takes some pages more or less in each of the two runs, as its stack lies: 3 were seen.
    [ $method = fexit ] && check "$method: asked for in advance ($asked)" [ $((asked - 600)) -ge -4 -a $((asked - 600)) -le 4 ]
    holds "$method: nothing was lost" '"lost_events":0,"lost_rows":0' /tmp/rows
    few=$(below_hole $method 200)
    more=$(($(below_hole $method 800) - few))
    check "$method: stacks are taken, and make no faults ($more)" [ $((more - 600)) -ge -16 -a $((more - 600)) -le 16 ]
done
equal "every method has been tried" "$number" 22
