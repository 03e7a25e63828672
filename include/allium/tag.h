/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef ALLIUM_TAG_H
#define ALLIUM_TAG_H

/*
 * Code tagging: an exact account for a place in the source. `pkg-config --cflags --libs allium`.
 *
 *     struct allium_tag *tag = ALLIUM_TAG("cache", "entry");
 *     allium_account(tag, bytes);      what this place holds from now on
 *     allium_unaccount(tag, bytes);    and no longer
 *
 * `allium tags PID` reads the accounts of a process at any time, and of one that has ended. <allium/malloc_hooks.h> tags the
 * calls of malloc() and its family without a change to the source.
 *
 * A place has one descriptor for each copy that the compiler makes of it (templates, inlined bodies); a reader adds them up.
 * Descriptors lie in the section `allium_tags`; nothing has to be called before the first use.
 *
 * The inline half books into the thread's own words and asks nothing but: is the tag on, has it been met, has this thread
 * words of its own? All else is the library's. It takes neither locks nor memory of the program's allocator, and may be
 * used in signal handlers.
 */

/*
 * No header of the C library before the program's own first line: it would settle what _GNU_SOURCE and its like, which sources
 * define there, make visible. So its types are the compiler's.
 */
#pragma push_macro("size_t")
#pragma push_macro("int32_t")
#pragma push_macro("uint32_t")
#pragma push_macro("uint64_t")
#pragma push_macro("uintptr_t")
#define size_t    __SIZE_TYPE__
#define int32_t   __INT32_TYPE__
#define uint32_t  __UINT32_TYPE__
#define uint64_t  __UINT64_TYPE__
#define uintptr_t __UINTPTR_TYPE__

#ifdef __cplusplus
extern "C" {
#endif

#if !defined(__x86_64__) || !defined(__linux__)
#error "allium/tag.h: x86-64 Linux only so far"
#endif

/** What the library and inlined code agree on; another number: a descriptor of another version, which is left alone. */
#define ALLIUM_TAG_VERSION 1

/** Descriptor of a place. Offsets are in bytes from the field itself; 0: there is none. */
struct allium_tag {
    uint32_t version; /* ALLIUM_TAG_VERSION */
    int32_t
        state; /* above allium_control: on; the same: off; below: the library knows what to do, or finds out */
    uint32_t words; /* where they lie, in bytes from the thread's; ALLIUM_TAG_NOT_MET, or ALLIUM_TAG_UNKEPT */
    uint32_t entry; /* what stands in the map of objects for one of 0 bytes */
    int32_t code;   /* the place in the code */
    int32_t text;   /* class, name and file, each NUL-terminated, one behind the other; or ALLIUM_TEXT_FAR */
    int32_t control; /* the page of allium_control of this module */
    uint32_t line;   /* 0: not known, the debug information has it */
};

#define ALLIUM_TAG_NOT_MET 1u
#define ALLIUM_TAG_UNKEPT  0u /* there is no account for it */
#define ALLIUM_TEXT_FAR                                                                                      \
    '\1' /* all of a file's name: it lies as many bytes from the int32_t behind this as that says */

/*
 * What stands in the control page: a change of what is asked of tags is a greater number. Each module has a page for it, in which
 * the library shows that of the process, so that it is read like a variable of one's own.
 */
__asm__(".ifndef allium_control_page\n"
        "\t.pushsection .bss.allium_control_page,\"awG\",@nobits,allium_control_page,comdat\n"
        "\t.weak allium_control_page, allium_control\n"
        "\t.hidden allium_control_page, allium_control\n"
        "\t.type allium_control_page, @object\n"
        "\t.size allium_control_page, 4096\n"
        "\t.balign 4096\n"
        "allium_control_page:\n"
        "\t.set allium_control, allium_control_page + 16\n"
        "\t.zero 4096\n"
        "\t.popsection\n"
        ".endif\n");
extern const volatile int32_t allium_control __attribute__((visibility("hidden")));

/* What a thread knows. `objects` leads nowhere until the thread has words of its own, and in a child that was forked. */
struct allium_thread {
    char *words;
    uint32_t **objects; /* by GiB of addresses: tables of an entry for each 16 bytes, or NULL */
};

extern __thread struct allium_thread allium_thread __attribute__((tls_model("initial-exec")));
/** Not 0 once an object has been booked: before that, no free concerns anybody. */
extern uint32_t allium_objects_booked;

/* The cold halves: what the inline ones do, in every case. */
void allium_account_cold(struct allium_tag *tag, size_t bytes, int sign);
void allium_born_cold(struct allium_tag *tag, const void *object, size_t bytes);
void allium_gone_cold(const void *object);
/** A request of this place failed. */
void allium_failed(struct allium_tag *tag);
/**
 * Around a request of a tag that is neither on nor off. 0: it shall not be made, but fail with ENOMEM, which is in errno.
 * allium_end() gets the object that came of it, or NULL.
 */
int allium_begin(struct allium_tag *tag);
void allium_end(struct allium_tag *tag, const void *object, size_t bytes);
uint64_t allium_latency_start_cold(struct allium_tag *tag);
void allium_latency_stop_cold(struct allium_tag *tag, uint64_t started);
int allium_should_fail_cold(struct allium_tag *tag);
/** realloc(), with the account of the old object and that of the new one. */
void *allium_realloc(struct allium_tag *tag, void *old, size_t bytes);
/** The same by that function; the new object is charged to whom the old one was, if to anybody. */
void *allium_realloc_by(void *(*real)(void *, size_t), void *old, size_t bytes);
/** posix_memalign(): clang leaves inline functions alone that call themselves by another name, but for some it knows. */
int allium_real_posix_memalign(void **out, size_t alignment, size_t bytes);

#define ALLIUM_LIKELY(x)    __builtin_expect(!!(x), 1)
#define ALLIUM_UNLIKELY(x)  __builtin_expect(!!(x), 0)
#define ALLIUM_GIB_SHIFT    30
#define ALLIUM_BYTES_BITS   12
#define ALLIUM_BYTES_INLINE 4094u
#define ALLIUM_BYTES_BEYOND 4095u /* in an entry: the library has the size elsewhere, by page */
#define ALLIUM_ENTRY_AT(a)  (((uint32_t)(a) & ((1u << ALLIUM_GIB_SHIFT) - 1)) >> 4)
#define ALLIUM_ENTRY_IS(e)  ((e) >> ALLIUM_BYTES_BITS)
#define ALLIUM_IS_ODD(a)    ((a)&8) /* a multiple of 8 alone: the tables have such ones in their second half */
#define ALLIUM_WORDS_OF(e)  (((e) >> 19) << 16 | ((e) >> 7 & 0xfe0u)) /* of an entry: 128 accounts in 64 KiB */

/* As fortified functions are: no copy of it is ever emitted, and other inline functions may use it. */
#define ALLIUM_INLINE extern __inline__ __attribute__((gnu_inline, always_inline, artificial))

/*
 * The descriptor of the place where this stands, and of each copy of it. It has a section of its own, of the group that the code is in
 * if it is in one ("?"), and only the code refers to it: it goes where the code goes, and keeps nothing.
 */
#define ALLIUM_DESCRIBE(line, text)                                                                          \
    "771:\tleaq 772f(%%rip), %0\n"                                                                           \
    "\t.pushsection allium_tags,\"aw?\",@progbits,unique,%=\n"                                               \
    "\t.balign 8\n"                                                                                          \
    "772:\t.long 1, -1, 1, 0\n"                                                                              \
    "\t.long 771b-.\n" text "\t.long allium_control_page-.\n"                                                \
    "\t.long " line "\n"                                                                                     \
    "\t.popsection\n"
#define ALLIUM_DESCRIPTOR(line, text)                                                                        \
    __extension__({                                                                                          \
        struct allium_tag *allium_here_;                                                                     \
        __asm__ __volatile__(ALLIUM_DESCRIBE(line, text) : "=r"(allium_here_));                              \
        allium_here_;                                                                                        \
    })
/*
 * The same, where several places have the same text. gcc makes one of functions, and of ends of branches, that have the same code:
 * not if it might jump, as far as gcc knows. Other compilers do no such thing; gcc before 11 cannot be kept from it.
 */
#if defined(__clang__) || __GNUC__ < 11
#define ALLIUM_DESCRIPTOR_APART(line, text) ALLIUM_DESCRIPTOR(line, text)
#else
#define ALLIUM_DESCRIPTOR_APART(line, text)                                                                  \
    __extension__({                                                                                          \
        __label__ allium_next_;                                                                              \
        struct allium_tag *allium_here_;                                                                     \
        __asm__ goto(ALLIUM_DESCRIBE(line, text) : "=r"(allium_here_) : : : allium_next_);                   \
    allium_next_:                                                                                            \
        allium_here_;                                                                                        \
    })
#endif
#define ALLIUM_TEXT(class, name)                                                                             \
    "\t.long 773f-.\n"                                                                                       \
    "\t.pushsection allium_texts,\"a?\",@progbits\n"                                                         \
    "773:\t.asciz \"" class "\", \"" name "\", \"\"\n"                                                       \
                            "\t.popsection\n"
/* The same with the file's name, which may have anything in it, as operand 1. */
#define ALLIUM_TEXT_OF(class, name)                                                                          \
    "\t.long 773f-.\n"                                                                                       \
    "\t.pushsection allium_texts,\"a?\",@progbits\n"                                                         \
    "773:\t.asciz \"" class "\", \"" name "\", \"\\1\"\n"                                                    \
                            "\t.long %c1-.\n"                                                                \
                            "\t.popsection\n"
#define ALLIUM_STRING_(x) #x
#define ALLIUM_STRING(x)  ALLIUM_STRING_(x)

/** The tag of this spot. `class` and `name` are literals, of letters, digits, spaces and - _ . : / = alone. */
#define ALLIUM_TAG(class, name)                                                                              \
    __extension__({                                                                                          \
        struct allium_tag *allium_here_;                                                                     \
        __asm__ __volatile__(ALLIUM_DESCRIBE(ALLIUM_STRING(__LINE__), ALLIUM_TEXT_OF(class, name))           \
                             : "=r"(allium_here_)                                                            \
                             : "i"(__FILE__));                                                               \
        allium_here_;                                                                                        \
    })
/** The same with fields of the program's own: "tenant=blue tier=2", words that stand behind the name. */
#define ALLIUM_TAG_FIELDS(class, name, fields) ALLIUM_TAG(class, name " " fields)

/**
 * A probe for bpftrace, perf, SystemTap or gdb: usdt:PROGRAM:allium_tag:NAME, whose arguments are the bytes and the address. It
 * is a nop until somebody listens. `name` is a word, without quotes, such as cache_entry. In a function that calls others:
 * where none does, the kernel's way to listen may overwrite what lies below the stack pointer.
 */
#define ALLIUM_PROBE(name, bytes, address)                                                                   \
    __asm__ __volatile__("990:\tnop\n"                                                                       \
                         "\t.pushsection .note.stapsdt, \"\", \"note\"\n"                                    \
                         "\t.balign 4\n"                                                                     \
                         "\t.4byte 992f - 991f, 994f - 993f, 3\n"                                            \
                         "991:\t.asciz \"stapsdt\"\n"                                                        \
                         "992:\t.balign 4\n"                                                                 \
                         "993:\t.8byte 990b, _.stapsdt.base, 0\n"                                            \
                         "\t.asciz \"allium_tag\", \"" #name "\", \"8@%0 8@%1\"\n"                           \
                         "994:\t.balign 4\n"                                                                 \
                         "\t.popsection\n"                                                                   \
                         "\t.ifndef _.stapsdt.base\n"                                                        \
                         "\t.pushsection .stapsdt.base, \"aG\", \"progbits\", .stapsdt.base, comdat\n"       \
                         "\t.weak _.stapsdt.base\n"                                                          \
                         "\t.hidden _.stapsdt.base\n"                                                        \
                         "_.stapsdt.base:\t.space 1\n"                                                       \
                         "\t.size _.stapsdt.base, 1\n"                                                       \
                         "\t.popsection\n"                                                                   \
                         "\t.endif\n"                                                                        \
                         :                                                                                   \
                         : "nr"((unsigned long)(bytes)), "nr"((unsigned long)(address))                      \
                         : "memory")

/* One instruction each: a signal handler never finds it half done. Nobody else writes to the thread's own words. */
ALLIUM_INLINE void allium_add(char *calls, uint64_t bytes)
{
    __asm__ __volatile__("incq (%0)\n\taddq %1, 8(%0)" : : "r"(calls), "er"(bytes) : "memory", "cc");
}

/** Above 0: the tag is on; 0: it is off; below: the library knows what to do, or finds out. */
ALLIUM_INLINE int allium_way(const struct allium_tag *tag)
{
    return __atomic_load_n(&tag->state, __ATOMIC_ACQUIRE) - allium_control;
}

/** This place holds so many bytes more. */
ALLIUM_INLINE void allium_account(struct allium_tag *tag, size_t bytes)
{
    int way = allium_way(tag);
    if (ALLIUM_LIKELY(way > 0 && allium_thread.objects[0]))
        allium_add(allium_thread.words + tag->words, bytes);
    else if (way)
        allium_account_cold(tag, bytes, 1);
}

/** So many bytes less. */
ALLIUM_INLINE void allium_unaccount(struct allium_tag *tag, size_t bytes)
{
    int way = allium_way(tag);
    if (ALLIUM_LIKELY(way > 0 && allium_thread.objects[0]))
        allium_add(allium_thread.words + tag->words + 16, bytes);
    else if (way)
        allium_account_cold(tag, bytes, -1);
}

/**
 * A deed of this place begins: what comes of it goes to allium_latency_stop(), in any thread. `allium set ... latency` asks for
 * times; while nobody does it is 0, and nothing happens.
 */
ALLIUM_INLINE uint64_t allium_latency_start(struct allium_tag *tag)
{
    if (ALLIUM_LIKELY(allium_way(tag) >= 0))
        return 0;
    return allium_latency_start_cold(tag);
}

/** It is done. */
ALLIUM_INLINE void allium_latency_stop(struct allium_tag *tag, uint64_t started)
{
    if (ALLIUM_UNLIKELY(started))
        allium_latency_stop_cold(tag, started);
}

/** Shall this place do as if it had failed? `allium set ... fail=HOW` asks for that. The failure is counted. */
ALLIUM_INLINE int allium_should_fail(struct allium_tag *tag)
{
    if (ALLIUM_LIKELY(allium_way(tag) >= 0))
        return 0;
    return allium_should_fail_cold(tag);
}

/** allium_born() of a tag that is on. */
ALLIUM_INLINE void allium_born_on(struct allium_tag *tag, const void *object, size_t bytes)
{
    uintptr_t a = (uintptr_t)object;
    uint32_t *objects = allium_thread.objects[a >> ALLIUM_GIB_SHIFT];
    if (ALLIUM_UNLIKELY(bytes - 1 >= ALLIUM_BYTES_INLINE || ALLIUM_IS_ODD(a) || !objects ||
                        __atomic_load_n(objects + ALLIUM_ENTRY_AT(a), __ATOMIC_RELAXED))) {
        allium_born_cold(tag, object, bytes);
        return;
    }
    __atomic_store_n(objects + ALLIUM_ENTRY_AT(a), tag->entry | (uint32_t)bytes, __ATOMIC_RELAXED);
    allium_add(allium_thread.words + tag->words, bytes);
}

/** An object of an allocator: whoever frees it, allium_gone() knows its tag and its bytes. */
ALLIUM_INLINE void allium_born(struct allium_tag *tag, const void *object, size_t bytes)
{
    int way = allium_way(tag);
    if (ALLIUM_LIKELY(way > 0))
        allium_born_on(tag, object, bytes);
    else if (way)
        allium_born_cold(tag, object, bytes);
}

/** Before an object goes back to its allocator; one that nobody tagged is none of ours. */
ALLIUM_INLINE void allium_gone(const void *object)
{
    uintptr_t a = (uintptr_t)object;
    if (!__atomic_load_n(&allium_objects_booked, __ATOMIC_RELAXED))
        return;
    uint32_t *objects = allium_thread.objects[a >> ALLIUM_GIB_SHIFT];
    if (ALLIUM_UNLIKELY(!objects || ALLIUM_IS_ODD(a))) {
        allium_gone_cold(object);
        return;
    }
    uint32_t *at = objects + ALLIUM_ENTRY_AT(a), entry = __atomic_load_n(at, __ATOMIC_RELAXED);
    if (!ALLIUM_ENTRY_IS(entry))
        return;
    if (ALLIUM_UNLIKELY((entry & ALLIUM_BYTES_BEYOND) == ALLIUM_BYTES_BEYOND)) {
        allium_gone_cold(object);
        return;
    }
    __atomic_store_n(at, 0, __ATOMIC_RELAXED);
    allium_add(allium_thread.words + ALLIUM_WORDS_OF(entry) + 16, entry & ALLIUM_BYTES_BEYOND);
}

#ifdef __cplusplus
}
#endif

#pragma pop_macro("size_t")
#pragma pop_macro("int32_t")
#pragma pop_macro("uint32_t")
#pragma pop_macro("uint64_t")
#pragma pop_macro("uintptr_t")

#endif
