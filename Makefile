# SPDX-License-Identifier: BSD-2-Clause
#
# The front door. Meson and ninja do the work, in parallel; `make -j` is safe and changes nothing.

BUILD   ?= build
PREFIX  ?= /usr/local
DESTDIR ?=
WERROR  ?=

# Set only when asked for: a build directory keeps what it was configured with.
options := $(if $(WERROR),-Dwerror=true) $(if $(filter-out file,$(origin PREFIX)),'-Dprefix=$(PREFIX)')

.NOTPARALLEL:
.PHONY: build demo check check-long check-kernels bench install uninstall format clean help

build:
	@tools/setup build
	@tools/build '$(BUILD)' $(options)

demo: build
	@tools/demo '$(BUILD)'

# CI also compiles the benchmarks, which nobody runs there.
check:
	@tools/setup check
	@tools/build '$(BUILD)' $(options) -Dtests=true $(if $(CI),-Dbenchmarks=true)
	@tests/run '$(BUILD)'

# The same tests, then the slow ones, then what other compilers and sanitizers see. Sanitizers refuse a preloaded
# allocator, so that they only run the unit tests. Last the same tests on Debian 13.
check-long:
	@tools/setup long
	@tools/build '$(BUILD)' $(options) -Dtests=true
	@CC=clang CXX=clang++ tools/build '$(BUILD)-clang' -Dwerror=true -Dtests=true
	@tools/build '$(BUILD)-asan' -Db_sanitize=address,undefined -Dtests=true
	@tools/build '$(BUILD)-tsan' -Db_sanitize=thread -Dtests=true
	@tests/run '$(BUILD)' '$(BUILD) --setup long --suite long' '$(BUILD)-clang --no-suite checks --no-suite kernels' \
		'$(BUILD)-asan --suite unit' '$(BUILD)-tsan --suite unit'
	@tests/debian/run

# Every kernel and every test on it; `make check` boots the newest only.
check-kernels:
	@tools/setup check
	@tools/build '$(BUILD)' $(options) -Dtests=true
	@tests/kernels/run --build '$(BUILD)'

bench:
	@tools/setup bench
	@tools/build '$(BUILD)' $(options) -Dbenchmarks=true
	@meson test -C '$(BUILD)' --benchmark --verbose --num-processes 1

install:
	@tools/setup build
	@tools/build '$(BUILD)' $(if $(WERROR),-Dwerror=true) '-Dprefix=$(PREFIX)'
	@tools/install '$(BUILD)' '$(DESTDIR)' '$(PREFIX)'

uninstall:
	@tools/install --remove '$(DESTDIR)' '$(PREFIX)'

format:
	@tests/checks/format --fix

clean:
	rm -rf '$(BUILD)' '$(BUILD)-clang' '$(BUILD)-asan' '$(BUILD)-tsan'

help:
	@echo 'make             build the command, build/allium'
	@echo 'make demo        show it at work on a small program'
	@echo 'make check       build, and run all tests but the slow ones'
	@echo 'make check-long  all tests, also with clang, under sanitizers and on Debian 13'
	@echo 'make check-kernels  boot other kernels in qemu, and test there'
	@echo 'make bench       measure the cost, against a floor and against peers'
	@echo 'make install     [PREFIX=/usr/local] [DESTDIR=]'
	@echo 'make uninstall   the same, the other way'
	@echo 'make format      clang-format 14, the whole tree'
	@echo 'make clean       remove the build directories'
	@echo
	@echo 'What is missing is installed first, through apt (tools/setup says what).'
	@echo 'WERROR=1 makes warnings errors; BUILD=dir builds elsewhere.'
