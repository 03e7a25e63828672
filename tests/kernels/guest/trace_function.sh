# SPDX-License-Identifier: BSD-2-Clause
#
# `allium trace --function`: each call of three functions, with argument and result; beside events of the kernel.
#: programs steps

. /tests/tap.sh
plan 9
rounds=200

allium trace --function :main --function libc.so.6:usleep --function libc.so.6:pipe --kernel sched -o /tmp/t -- \
    steps $rounds >/tmp/out 2>/tmp/said
equal "the program runs" $? 0
holds "the price comes first" \
    "^allium: probes: main entry at .[0-9]+ .[a-z]+, [0-9.]+ us a call., return [0-9.]+ us; usleep entry" /tmp/said
holds "nothing is lost" "^allium: [1-9][0-9]* events of the kernel and of functions, 0 lost" /tmp/said
allium events /tmp/t --json >/tmp/rows

rows() { grep -c "\"event\":\"function:$1\".*$2" /tmp/rows; }

equal "main() begins" "$(rows main_begin '"arg1":"0x2"')" 1
equal "main() ends" "$(rows main_end '"result":"0x0"')" 1
equal "each usleep() begins" "$(rows usleep_begin '"arg1":"0x64"')" $rounds
equal "each usleep() ends" "$(rows usleep_end '"result":"0x0"')" $rounds
equal "each pipe() ends" "$(rows pipe_end '"result":"0x0"')" $rounds
allium events /tmp/t --by call >/tmp/calls
holds "calls are added up" "^function:usleep  *$rounds " /tmp/calls
