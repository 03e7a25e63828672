# SPDX-License-Identifier: BSD-2-Clause
#
# `allium sys mmapsnoop` on this kernel: what a program that changes its address space in known ways says of it, and what
# the tool shows, on both ways to attach.
#: programs mapper

. /tests/tap.sh
plan 14

# The fields of events that the program knows, in one order: call, error, size, growth.
fields()
{
    awk '{
        for (n = 1; n <= 4; n++) {
            name = substr("call       error      size_bytes added_bytes", (n - 1) * 11 + 1, 11)
            sub(/ +$/, "", name)
            value = "null"
            if (match($0, "\"" name "\":[^,}]*"))
                value = substr($0, RSTART + length(name) + 3, RLENGTH - length(name) - 3)
            printf "%s%s", value, n < 4 ? " " : "\n"
        }
    }'
}

mkdir -p /tmp/files
for method in tp_btf raw_tp; do
    : >/tmp/said
    allium sys mmapsnoop --brk --attach $method --comm mapper --json >/tmp/rows 2>/tmp/said &
    tool=$!
    until grep -q ready /tmp/said || ! kill -0 $tool; do usleep 100000; done
    holds "it attaches by $method" "^allium: ready: mmapsnoop using $method" /tmp/said
    mapper steps /tmp/files >/tmp/out
    equal "$method: the program runs" $? 0
    mapper old 37
    kill -INT $tool
    wait $tool
    equal "$method: it ends well when interrupted" $? 0
    sed '1,/"4711"/d;/"4711"/,$d' /tmp/rows >/tmp/inside
    fields </tmp/out >/tmp/want
    # what the program does not say of a change
    fields </tmp/inside | awk 'NR == FNR { want[FNR] = $0; next }
        { split(want[FNR], w, " ")
          for (n = 1; n <= 4; n++) printf "%s%s", w[n] == "null" ? "null" : $n, n < 4 ? " " : "\n" }' /tmp/want - >/tmp/have
    equal "$method: so many changes" "$(wc -l </tmp/inside)" "$(wc -l </tmp/out)"
    check "$method: their calls, errors and sizes" cmp /tmp/want /tmp/have
    equal "$method: calls of 32-bit programs" "$(sed -n 's/.*"calls_of_32_bits":\([0-9]*\).*/\1/p' /tmp/rows)" 37
    holds "$method: nothing was lost" '"lost_events":0,' /tmp/rows
done
