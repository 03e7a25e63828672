# SPDX-License-Identifier: BSD-2-Clause
#
# User stacks on this kernel: of a program with frame pointers by following them (--stacks user), of one without from samples
# (--sample), where every frame has its name. Frame pointers followed through the latter are marked, and counted.
#: programs stacked toucher

. /tests/tap.sh
plan 10

# stack LEAST: names of the first stack with so many faults and more, innermost first, without their files and what calls main
stack()
{
    awk -F'"faults":' 'NF > 1 && $2 + 0 >= '$1 /tmp/rows | head -n 1 | sed 's/.*"user_stack":\[\([^]]*\)\].*/\1/; s/ ([^"]*)//g; s/"//g; s/,/ /g; s/ main .*/ main/'
}

# stacked_under OPTION...: a tool that follows it, until its thousand pages are touched and it waits
stacked_under()
{
    rm -f /tmp/said /tmp/answers
    allium sys faults --by stack --comm stacked --json "$@" >/tmp/rows 2>/tmp/said &
    tool=$!
    until grep -qs ready: /tmp/said || ! kill -0 $tool; do usleep 100000; done
    (echo plain 3; sleep 1000) | stacked >/tmp/answers &
    until grep -qs done /tmp/answers; do usleep 100000; done
    kill -INT $tool
    wait $tool
    code=$?
}

echo heap 600 | allium sys faults --by stack --stacks user --comm toucher --json -- toucher 2>/tmp/said >/tmp/rows
equal "by frame pointers" "$(stack 600)" "write_pages heap touch main"
holds "nothing of it was lost" '"lost_rows":0,"stacks_failed":0,"stacks_lost":0,' /tmp/rows

stacked_under --sample 1
equal "samples: it ends well" $code 0
equal "the whole stack" "$(stack 1000)" "touch_pages go_down go_down go_down go_down main"
holds "each of its pages is one fault" '"faults":1000,.*touch_pages' /tmp/rows
holds "no sample was lost" '"lost_samples":0,' /tmp/rows
holds "each sample came to its end" '"cut":0,' /tmp/rows

stacked_under --stacks user
equal "no frame pointers: it ends well" $code 0
equal "beyond the first frame none is shown as if it were known" \
    "$(grep -o '"touch_pages [^]]*' /tmp/rows | head -n 1 | sed 's/^"[^"]*"//' | tr , '\n' | grep -c '^"[^?]')" 0
equal "those are counted" "$(sed -n 's/.*"untrusted_frames":\([0-9]*\).*/\1/p' /tmp/rows)" \
    "$(grep -o '"? ' /tmp/rows | wc -l)"
