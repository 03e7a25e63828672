# SPDX-License-Identifier: BSD-2-Clause
#
# `allium sys kpages` of a program that writes to 8 and to 24 MiB: the bytes of movable pages differ by 16 MiB, in blocks of
# whichever order, with every method, and nothing that was taken is live when it has ended. To the page: the program's stack lies
# where it lay before (elsewhere it begins up to 8 KiB below its words, and takes up to two pages more or less).
#: programs hog

. /tests/tap.sh
plan 7

# movable METHOD MIB OPTIONS: runs hog; bytes KEY: of its movable pages
movable()
{
    method=$1 mib=$2
    shift 2
    allium sys kpages --attach "$method" --comm hog --by type --json "$@" -- hog "$mib" 2>/tmp/stderr >/tmp/rows
}
bytes() { sed -n 's/.*"migrate_type":"movable",.*"'$1'_bytes":\([0-9]*\),.*/\1/p' /tmp/rows; }

random=/proc/sys/kernel/randomize_va_space
was=$(cat $random)
echo 0 >$random
allium sys kpages --duration 100ms >/tmp/rows 2>/tmp/said
holds "it takes the best attach method on this kernel" '^allium: ready: kpages using raw_tp$' /tmp/said
for method in raw_tp tp; do
    movable $method 08
    few=$(bytes allocated)
    movable $method 24
    equal "$method: bytes of 16 MiB" $(($(bytes allocated) - few)) 16777216
    holds "$method: nothing was lost" '"lost_events":0,"lost_rows":0' /tmp/rows
    movable $method 24 --live
    equal "$method: of 24 MiB, 1 MiB or more is live" $(($(bytes live) >> 20)) 0
done
echo $was >$random
