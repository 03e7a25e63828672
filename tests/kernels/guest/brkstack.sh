# SPDX-License-Identifier: BSD-2-Clause
#
# `allium sys brkstack` of a program that knows what its calls of brk() returned: the same numbers with every method,
# and each function's own by stack.
#: programs brker

. /tests/tap.sh
plan 13

# column NAME: the sum of it in all rows of the program
column() { sed -n 's/.*"comm":"brker".*"'$1'":\([0-9]*\).*/\1/p' /tmp/rows | awk '{ n += $1 } END { print n + 0 }'; }

# seen METHOD OPTION...: the program under the tool; rows in /tmp/rows, what the program did in /tmp/did
seen()
{
    local method=$1
    shift
    (echo && sleep 1) | allium sys brkstack --attach $method --comm brker --json "$@" -- \
        sh -c 'exec brker steps >/tmp/did' 2>/tmp/said >/tmp/rows
}

for method in tp_btf raw_tp; do
    seen $method --by process
    check "$method is ready" grep -q "ready: brkstack using $method" /tmp/said
    set -- $(tail -n 1 /tmp/did)
    # The C library calls brk() before main() does: it asks once or twice, and grows the heap at most once.
    equal "$method: failures" "$(column failed)" "$3"
    equal "$method: bytes given back" "$(column shrunk_bytes)" "$5"
    holds "$method: nothing was lost" '"lost_events":0,"lost_rows":0' /tmp/rows
    grep '"comm":"brker"' /tmp/rows | sed 's/"pid":[0-9]*,//; s/"duration_ns":[0-9]*//' >/tmp/$method
done
equal "both methods have the same row" "$(cat /tmp/tp_btf)" "$(cat /tmp/raw_tp)"
seen tp_btf --by stack
for function in asks:3,3,0,0,0 grows:4,0,0,4294305,0 shrinks:2,0,0,0,50003 fails:3,0,3,0,0; do
    name=${function%:*}
    grep "\"$name (" /tmp/rows >/tmp/own
    have=$(for column in calls queries failed grown_bytes shrunk_bytes; do
        sed -n 's/.*"'$column'":\([0-9]*\).*/\1/p' /tmp/own | awk '{ n += $1 } END { print n + 0 }'
    done | tr '\n' ,)
    equal "the calls of $name()" "$have" "${function#*:},"
done
