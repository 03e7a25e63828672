# SPDX-License-Identifier: BSD-2-Clause

echo 1..1; echo ok 1 - one; exit 3
