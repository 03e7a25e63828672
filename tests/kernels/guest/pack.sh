# SPDX-License-Identifier: BSD-2-Clause
#
# The script of `allium sys import --script` under busybox: what it packs is imported, with pages, names of migrate types
# and the state; and it leaves nothing behind.
#: programs hog

. /tests/tap.sh
plan 13
cd /tmp
export TMPDIR=/tmp # /var/tmp is not there

value() { allium sql "$1" "$2" --json | sed -n 's/^{"v":"*\([^"}]*\)"*}.*/\1/p'; }

allium sys import --script >pack.sh
(sleep 1; hog 08) &
BUFFER_KB=16384 sh pack.sh 3 >made 2>said
equal "the script's code" $? 0
sed 's/^/# /' said
wait
equal "what it made" "$(cat made)" allium-pack.tar.gz
equal "no instance is left" "$(ls /sys/kernel/tracing/instances)" ""
allium sys import allium-pack.tar.gz -o pack.allium 2>said
equal "import's code" $? 0
sed 's/^/# /' said
equal "nothing is lacking" "$(grep -c lacks said)" 0
equal "pages of the program" $(($(value pack.allium "select sum(allocated_bytes) v from sys_kpages where comm = 'hog' and migrate_type = 'movable'") >> 23)) 1
equal "objects of the program" $(($(value pack.allium "select sum(allocations) v from sys_kmem where comm = 'hog'") > 20)) 1
equal "files of the state" $(($(value pack.allium "select count(*) v from sys_state") >= 12)) 1
allium sys frag --from pack.allium >frag 2>&1
holds "sys frag" '^  slab  *[0-9]' frag
gzip -d allium-pack.tar.gz
tar -xf allium-pack.tar
allium sys import allium-pack -o folder.allium 2>said
equal "the folder's code" $? 0
equal "the same objects" "$(value folder.allium 'select sum(allocated_bytes) v from sys_kmem')" "$(value pack.allium 'select sum(allocated_bytes) v from sys_kmem')"
sh pack.sh 1 >made 2>said
equal "a name that is taken: its code" $? 1
holds "and what it says" '^pack.sh: allium-pack exists: give another name' said
