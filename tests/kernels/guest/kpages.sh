# SPDX-License-Identifier: BSD-2-Clause
#
# `allium sys kpages` of a program that writes to 8 and to 24 MiB: the bytes of movable pages differ by 16 MiB, in blocks of
# whichever order, on every rung, and nothing that was taken is live when it has ended.
#: programs hog

. /tests/tap.sh
plan 7

# movable RUNG MIB OPTIONS: allocated and live bytes of movable pages, taken by hog
movable()
{
    rung=$1 mib=$2
    shift 2
    allium sys kpages --attach "$rung" --comm hog --by type --json "$@" -- hog "$mib" 2>/tmp/stderr >/tmp/rows
    sed -n 's/.*"migrate_type":"movable","allocated_bytes":\([0-9]*\),.*"live_bytes":\([0-9a-z]*\),.*/\1 \2/p' /tmp/rows
}

allium sys kpages --duration 100ms >/tmp/rows 2>/tmp/said
holds "it takes the best rung of this kernel" '^allium: ready: kpages using raw_tp$' /tmp/said
for rung in raw_tp tp; do
    few=$(movable $rung 8)
    many=$(movable $rung 24)
    # to 16 KiB: where the stack begins, which is random, decides on a page
    equal "$rung: units of 16 KiB" $(((${many% *} - ${few% *} + (8 << 10)) >> 14)) 1024
    holds "$rung: nothing was lost" '"lost_events":0,"lost_rows":0' /tmp/rows
    held=$(movable $rung 24 --live)
    equal "$rung: of 24 MiB, 1 MiB or more is live" $((${held#* } >> 20)) 0
done
