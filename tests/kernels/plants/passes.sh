# SPDX-License-Identifier: BSD-2-Clause

echo 1..2
echo ok 1 - one
pidof sleep >/dev/null && printf 'not '
echo ok 2 - nothing is left of those before
