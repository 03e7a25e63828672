# SPDX-License-Identifier: BSD-2-Clause
#
# `allium sys hfaults` of pages of 1 GiB: their faults stand apart from those of 2 MiB, with every method, and a pool that runs
# dry is told.
#: programs huge
#: memory 3G
#: cpu max
#: parameters hugepagesz=1G hugepages=1
#: seconds 900
#: long

. /tests/tap.sh
plan 9

echo 2 >/sys/kernel/mm/hugepages/hugepages-2048kB/nr_hugepages
for method in fexit kprobe perf tp; do
    printf 'gigantic 2\nhugetlb 2\n' | allium sys hfaults --attach $method --comm huge --json -- huge 2>/tmp/stderr >/tmp/rows
    equal "$method: pages of 2 MiB and of 1 GiB, and one that was not there" \
        "$(sed -n 's/.*"comm":"huge".*"hugetlb_2m":\([0-9]*\),"hugetlb_1g":\([0-9]*\),.*"hugetlb_failed":\([0-9]*\),.*/\1 \2 \3/p' /tmp/rows)" "2 1 1"
    holds "$method: what the pool has" '"machine":"pool of 1 GiB".*"pool_pages":1,"pool_free":1' /tmp/rows
done
echo 0 >/sys/kernel/mm/hugepages/hugepages-2048kB/nr_hugepages
equal "every method has been tried" "$number" 8
