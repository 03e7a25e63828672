# SPDX-License-Identifier: BSD-2-Clause
#
# Entry point for builds and tests. Meson and ninja work in parallel; `make -j` is safe and has no effect.

BUILD   ?= build
PREFIX  ?= /usr/local
DESTDIR ?=
WERROR  ?=

# Set only on request: a build directory keeps its settings.
options := $(if $(WERROR),-Dwerror=true) $(if $(filter-out file,$(origin PREFIX)),'-Dprefix=$(PREFIX)')

.NOTPARALLEL:
.PHONY: build demo check check-long check-kernels check-web bench install uninstall format clean help

build:
	@tools/setup build
	@tools/build '$(BUILD)' $(options)

demo: build
	@tools/demo '$(BUILD)'

# CI also compiles the benchmarks, but does not run them.
check:
	@tools/setup check
	@tools/build '$(BUILD)' $(options) -Dtests=true $(if $(CI),-Dbenchmarks=true)
	@tests/run '$(BUILD)'

# The same tests, then the slow ones, then other compilers and sanitizers. Sanitizers refuse a preloaded allocator, so
# only the unit tests run with them. Last the same tests on Debian 13.
check-long:
	@tools/setup long
	@tools/build '$(BUILD)' $(options) -Dtests=true
	@CC=clang CXX=clang++ tools/build '$(BUILD)-clang' -Dwerror=true -Dtests=true
	@tools/build '$(BUILD)-asan' -Db_sanitize=address,undefined -Dtests=true
	@tools/build '$(BUILD)-tsan' -Db_sanitize=thread -Dtests=true
	@tests/run '$(BUILD)' '$(BUILD) --setup long --suite long' '$(BUILD)-clang --no-suite checks --no-suite kernels' \
		'$(BUILD)-asan --suite unit' '$(BUILD)-tsan --suite unit'
	@tests/debian/run

# Every kernel and every test on it; `make check` boots only the newest one.
check-kernels:
	@tools/setup check
	@tools/build '$(BUILD)' $(options) -Dtests=true
	@tests/kernels/run --build '$(BUILD)'
	@tests/kernels/sites --build '$(BUILD)'

# The page of export --html: its script and style built anew, and a browser driven by the keyboard. Needs npm's registry.
check-web:
	@tools/setup check
	@tools/build '$(BUILD)' $(options) -Dtests=true
	@tests/web/run '$(BUILD)'

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
	@echo 'make demo        build, then profile a small program'
	@echo 'make check       build, then run all tests except the slow ones'
	@echo 'make check-long  all tests, also with clang, under sanitizers and on Debian 13'
	@echo 'make check-kernels  boot other kernels in qemu, and test there'
	@echo 'make check-web   build the script of the HTML page anew, and drive it in a browser'
	@echo 'make bench       measure the cost, against a floor and against peers'
	@echo 'make install     [PREFIX=/usr/local] [DESTDIR=]'
	@echo 'make uninstall   [PREFIX=/usr/local] [DESTDIR=]'
	@echo 'make format      clang-format 14, the whole tree'
	@echo 'make clean       remove the build directories'
	@echo
	@echo 'Missing packages are installed first through apt (tools/setup lists them).'
	@echo 'WERROR=1 makes warnings errors; BUILD=dir builds elsewhere.'
