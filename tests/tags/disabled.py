# SPDX-License-Identifier: BSD-2-Clause
"""Programs with tags that are built without allium: with -DALLIUM_DISABLE, and with the headers in share/allium/stub."""
import os
import re
import shutil
import sys

sys.dont_write_bytecode = True
import tap
from tap import check, equal, private_dir, run, succeed

ROOT = os.path.realpath(os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", ".."))
INCLUDE = ROOT + "/include"
HEADERS = "tag.h", "event.h", "helper.h", "malloc_hooks.h", "operator_new.hh"
SOURCE = """
#include <stdlib.h>
#include <allium/tag.h>
#include <allium/helper.h>
#include <allium/event.h>
ALLIUM_EVENT(shop, order, ALLIUM_U64(id));
ALLIUM_SPAN(shop, parse);
static void *grow(void *p, size_t n)
{
    ALLIUM_HELPER(grow);
    return realloc(p, n);
}
int main(void)
{
    struct allium_tag *tag = ALLIUM_TAG("cache", "entry");
    struct allium_tag *with = ALLIUM_TAG_FIELDS("cache", "entry", "size");
    uint64_t began = allium_latency_start(tag);
    void *p = grow(malloc(10), 20);
    allium_account(tag, 10);
    allium_track(with, p, 20);
    if (allium_should_fail(tag) || allium_tag_state(tag))
        allium_failed(tag);
    allium_untrack(p);
    allium_unaccount(tag, 10);
    allium_latency_stop(tag, began);
    allium_emit(shop, order, .id = abort());
    allium_begin(shop, parse);
    allium_end(shop, parse);
    allium_log(shop, "%d", abort());
    free(p);
    return 0;
}
"""
# -m32 and sanitizers are what the real headers refuse or cost; MSVC is not here
BUILDS = [(["gcc", "-std=" + std], "c") for std in ("c89", "c99", "c11", "gnu17")] + [
    (["clang", "-std=c11"], "c"), (["g++", "-std=c++11"], "cc"), (["g++", "-std=c++20", "-fno-exceptions"], "cc"),
    (["clang++", "-std=c++17"], "cc"), (["gcc", "-fsanitize=address,undefined"], "c")
]
STRICT = ["-Wall", "-Wextra", "-Wshadow", "-Wno-long-long", "-Werror"]


def build(folder, words, suffix, options):
    source, out = "%s/three.%s" % (folder, suffix), folder + "/three"
    with open(source, "w") as file:
        file.write(SOURCE)
    succeed([*words, "-g", *STRICT, *options, source, "-o", out])
    equal(run([out]).returncode, 0, "code of the program")
    names = succeed(["nm", out]).stdout.decode()
    left = [name for name in re.findall(r" [TDBRWVU] (\w*allium\w*)", names)]
    equal(left, [], "symbols of allium in it")
    check("allium_tags" not in succeed(["readelf", "-SW", out]).stdout.decode(), "it has descriptors of tags")


def disabled():
    with private_dir() as folder:
        for words, suffix in BUILDS:
            hooks = ["-include", "allium/malloc_hooks.h"]
            if suffix == "cc":
                hooks += ["-include", "allium/operator_new.hh"]
            build(folder, words, suffix, ["-DALLIUM_DISABLE", "-I", INCLUDE, *hooks])


def stubbed():
    with private_dir() as folder:
        os.makedirs(folder + "/stub/allium")
        for name in HEADERS:
            shutil.copy(INCLUDE + "/allium/disabled.h", folder + "/stub/allium/" + name)
        for words, suffix in BUILDS:
            build(folder, words, suffix, ["-I", folder + "/stub", "-include", "allium/malloc_hooks.h"])


def complete():
    """Each function and macro that the manual or a header documents for users has a counterpart that does nothing."""
    def text(name):
        with open(INCLUDE + "/allium/" + name) as file:
            return file.read()
    page = "".join(open(ROOT + "/man/" + name).read() for name in ("allium-tags.1.scd", "allium-events.7.scd"))
    names = r"\b(allium_\w+|ALLIUM_(?:TAG|HELPER|EVENT|SPAN)\w*)\("
    offered = set(re.findall(names, page.replace("\\_", "_")))
    offered |= set(re.findall(r"^(?:ALLIUM_ONLY_ADDRESS\(\d\) )?ALLIUM_INLINE [\w *]+?(allium_\w+)\(", text("tag.h"), re.M))
    offered -= {"allium_add", "allium_table_of", "allium_track_counted"}  # for inline code alone
    missing = {name for name in offered if not re.search(r"\b%s\(" % name, text("disabled.h"))}
    equal(missing, set(), "names without a counterpart in disabled.h")
    some = {"allium_account", "allium_emit", "ALLIUM_TAG", "ALLIUM_HELPER", "ALLIUM_SPAN"}
    check(some <= offered, "what is offered:", offered)


tap.main([
    ("with -DALLIUM_DISABLE a program needs no library and has no tags", disabled),
    ("so does one with the headers of the stub", stubbed),
    ("the stub has all names", complete),
])
