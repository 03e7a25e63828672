# SPDX-License-Identifier: BSD-2-Clause
#
# What guest tests share: `. /tests/tap.sh`. A test says `plan N`, then N times one of the others.

number=0

plan() { echo "1..$1"; }

# result CODE NAME: ok when CODE is 0.
result()
{
    number=$((number + 1))
    [ "$1" = 0 ] && echo "ok $number - $2" || echo "not ok $number - $2"
}

# show FILE: the end of it, for whoever reads why a test failed
show() { tail -n 20 "$1" | sed 's/^/# /'; }

# check NAME COMMAND...: ok when it succeeds; else says what it said.
check()
{
    local name="$1"
    shift
    "$@" >/tmp/.check 2>&1
    local code=$?
    result $code "$name"
    [ $code = 0 ] || { echo "# code $code: $*" && show /tmp/.check; }
}

# equal NAME HAVE WANT
equal()
{
    [ "$2" = "$3" ]
    result $? "$1"
    [ "$2" = "$3" ] || echo "# have $2, want $3"
}

# holds NAME PATTERN FILE: ok when a line of the file matches (grep -E).
holds()
{
    grep -Eq -e "$2" "$3"
    local code=$?
    result $code "$1"
    [ $code = 0 ] || { echo "# no line of $3 matches $2; it ends:" && show "$3"; }
}

# counter NAME: of /proc/vmstat
counter() { sed -n "s/^$1 //p" /proc/vmstat; }
