/* SPDX-License-Identifier: BSD-2-Clause */
/* src/agent/mangled: names as c++filt has them, with template arguments left out; and no harm from what is no name. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "agent/sites/demangle.h"

static const char *const names[][2] = {
    {"xmalloc", "xmalloc"},
    {"xmalloc.part.0", "xmalloc"},
    {"xmalloc.constprop.0.isra.0", "xmalloc"},
    {".text", ".text"},
    {"_Z7xmallocm", "xmalloc"},
    {"_ZL7xmallocm", "xmalloc"},
    {"_ZL7xmallocm.part.0", "xmalloc"},
    {"_Znwm", "operator new"},
    {"_ZnamRKSt9nothrow_t", "operator new[]"},
    {"_ZN4pool4takeEm", "pool::take"},
    {"_ZN4poolIiE4takeEm", "pool<>::take"},
    {"_ZNK4poolISt6vectorIiSaIiEEE4takeILi3EEEPvm", "pool<>::take<>"},
    {"_ZN12_GLOBAL__N_13getEv", "(anonymous namespace)::get"},
    {"_ZN4poolC2Ev", "pool::pool"},
    {"_ZN4poolD1Ev", "pool::~pool"},
    {"_ZNSt6vectorIlSaIlEE17_M_realloc_insertIJlEEEvN9__gnu_cxx17__normal_iteratorIPlS1_EEDpOT_",
     "std::vector<>::_M_realloc_insert<>"},
    {"_ZNSs4_Rep9_S_createEmmRKSaIcE", "std::basic_string<>::_Rep::_S_create"},
    {"_ZNSt7__cxx1112basic_stringIcSt11char_traitsIcESaIcEE9_M_createERmm",
     "std::__cxx11::basic_string<>::_M_create"},
    {"_ZSt4moveIRiEONSt16remove_referenceIT_E4typeEOS2_", "std::move<>"},
    {"_ZN3foo3barB5cxx11Ev", "foo::bar"},
    {"_ZN3foonwEm", "foo::operator new"},
    {"_ZN3fooIA5_iLb1ELN1a1bE4EE3barEv", "foo<>::bar"},
    {"_ZN3foo1aIZNS_1bEvEUlvE0_EEvT_", "foo::a<>"},
    {"_ZZN3foo3barEvENKUlvE_clEv", "foo::bar::{local}"},
    {"_ZN5alloc5boxed12Box$LT$T$GT$3new17h0123456789abcdefE",
     "alloc::boxed::Box$LT$T$GT$::new::h0123456789abcdef"},
};

/* of those: ".text", two operators, an abbreviation, a local one, an anonymous namespace */
#define TAKE_THE_WHOLE 6

static void they_are_as_people_know_them(void **state)
{
    char name[128];
    size_t found = 0;
    (void)state;
    for (size_t i = 0; i < sizeof(names) / sizeof(*names); i++) {
        size_t len = demangle_name(names[i][0], name, sizeof(name));
        assert_string_equal(name, names[i][1]);
        assert_int_equal(len, strlen(name));
        const char *start = demangle_beginning(names[i][0]);
        assert_true(!start || (len >= 3 && !memcmp(start, name, 3)));
        found += start != NULL;
    }
    assert_int_equal(found, sizeof(names) / sizeof(*names) - TAKE_THE_WHOLE);
}

static void what_is_cut_or_damaged_ends_somewhere(void **state)
{
    char text[256], name[16];
    uint64_t seed = 1;
    (void)state;
    for (unsigned n = 0; n < 200000; n++) {
        const char *from = names[n % (sizeof(names) / sizeof(*names))][0];
        size_t len = strlen(from);
        seed = seed * 6364136223846793005u + 1442695040888963407u;
        memcpy(text, from, len + 1);
        text[2 + (seed >> 33) % len] = "0159EINSLUZ_"[(seed >> 40) % 12];
        text[2 + (seed >> 45) % len] = '\0';
        size_t length = demangle_name(text, name, sizeof(name));
        const char *start = demangle_beginning(text);
        assert_true(length < sizeof(name));
        assert_true(!start || length < 3 || !memcmp(start, name, 3));
    }
}

/* On the stack of whatever thread allocates first. */
static void what_is_nested_without_end_ends(void **state)
{
    static char text[1u << 20] = "_Z1aI";
    char name[128];
    (void)state;
    for (size_t i = 5; i + 3 < sizeof(text); i += 2)
        memcpy(text + i, "LN", 3);
    assert_int_equal(demangle_name(text, name, sizeof(name)), 3);
    assert_string_equal(name, "a<>");
    for (size_t i = 5; i + 3 < sizeof(text); i += 2)
        memcpy(text + i, "Ul", 3);
    assert_int_equal(demangle_name(text, name, sizeof(name)), 3);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(they_are_as_people_know_them),
        cmocka_unit_test(what_is_cut_or_damaged_ends_somewhere),
        cmocka_unit_test(what_is_nested_without_end_ends),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
