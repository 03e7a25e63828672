# SPDX-License-Identifier: BSD-2-Clause
#
# `allium doctor` on a kernel that it was not built on.

. /tests/tap.sh
plan 4

allium doctor >/tmp/doctor 2>&1
equal "it finds all that allium needs" $? 0
holds "it finds the agent" '^agent +yes +/allium/liballium-agent\.so' /tmp/doctor
holds "it finds a way to let ledgers grow" '^growing ledgers safely +yes' /tmp/doctor
holds "it finds uprobes" '^probes +yes' /tmp/doctor
