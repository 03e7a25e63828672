# SPDX-License-Identifier: BSD-2-Clause
# Nobody is left to run: the first process stands still.
#: seconds 2

echo 1..1
mkdir /sys/fs/cgroup/cold
echo 1 >/sys/fs/cgroup/cold/cgroup.procs
echo 1 >/sys/fs/cgroup/cold/cgroup.freeze
sleep 1000
