# SPDX-License-Identifier: BSD-2-Clause
#
# What tests of advice share: `. /tests/shrink.sh`.

# shrink_all ADVICE: does what the measures in the JSON say to caches that are still as they were judged. A line for each:
# "name low high freed"
shrink_all()
{
    local name low high slabs partial used cpu folder
    sed -n 's/.*"kind":"free_slabs","change":"echo 1 > .sys.kernel.slab.\(.*\).shrink","low_bytes":\([0-9]*\),"high_bytes":\([0-9]*\),.* of \([0-9]*\) slabs, \([0-9]*\) are partly filled, with \([0-9]*\) objects in use (.* fill one), and \([0-9]*\) belong.*/\1 \2 \3 \4 \5 \6 \7/p' \
        "$1" >/tmp/caches
    while read -r name low high slabs partial used cpu; do
        folder=/sys/kernel/slab/$name
        read -r slabs_now rest <$folder/slabs
        read -r partial_now rest <$folder/partial
        read -r used_now rest <$folder/objects_partial
        read -r cpu_now rest <$folder/cpu_slabs
        read -r order <$folder/order
        [ "$slabs_now $partial_now $used_now $cpu_now" = "$slabs $partial $used $cpu" ] || continue
        echo 1 >$folder/shrink
        read -r after rest <$folder/slabs
        echo "$name $low $high $(((slabs - after) * (4096 << order)))"
    done </tmp/caches
}
