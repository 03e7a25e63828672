/* SPDX-License-Identifier: BSD-2-Clause */
#if defined(ALLIUM_DISABLE)
#include "allium/disabled.h"
#elif !defined(ALLIUM_TAG_H) && !defined(__ASSEMBLER__) /* -include reaches .S files, too */
#define ALLIUM_TAG_H

/*
 * Code tagging: an exact account for a place in the source. Build with `pkg-config --cflags --libs allium`.
 *
 *     struct allium_tag *tag = ALLIUM_TAG("cache", "entry");
 *     allium_account(tag, bytes);      counts an allocation of `bytes` for this place
 *     allium_unaccount(tag, bytes);    counts a release of `bytes` for this place
 *
 * `allium tags PID` reads the accounts of a process while it runs and after it has ended.
 * <allium/malloc_hooks.h> tags the calls of malloc() and its family without a change to the source.
 *
 * The compiler emits one descriptor for each copy of a place (templates, inlined functions); the reader
 * adds the copies up. Descriptors lie in the section `allium_tags`. No initialisation is needed before the
 * first use.
 *
 * Threads: any, signal handlers included. The inline functions write only to counters of the calling thread
 * and to the map of objects (below). liballium.so does everything else, without a lock and without memory from
 * the program's allocator.
 *
 * include/allium/ABI.md describes the layout of all memory that inline code reads and writes.
 */

#if !defined(__x86_64__) || defined(__ILP32__) || !defined(__linux__)
#error "allium/tag.h: 64-bit x86-64 Linux only: compile without -m32 and -mx32, or with -DALLIUM_DISABLE"
#endif

/*
 * This header includes no header of the C library: a source may define _GNU_SOURCE in its first line, and the
 * definition has no effect after such an include. So the compiler's macros for types are used.
 */
#pragma GCC diagnostic push
#ifdef __cplusplus
#pragma GCC diagnostic ignored "-Wold-style-cast"
#endif
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
/*
 * Macros of these headers use the following three in the user's file, where C++ code must not cause warnings
 * of -Wzero-as-null-pointer-constant and -Wold-style-cast.
 */
#define ALLIUM_NULL       nullptr
#define ALLIUM_NUMBER(n)  static_cast<unsigned long>(n)
#define ALLIUM_ADDRESS(p) reinterpret_cast<unsigned long>(static_cast<const volatile void *>(p))
extern "C" {
#else
#define ALLIUM_NULL       0
#define ALLIUM_NUMBER(n)  ((unsigned long)(n))
#define ALLIUM_ADDRESS(p) ((unsigned long)(p))
#endif

/**
 * The version of the ABI between inlined code and liballium.so. It is the version of descriptors, and part of
 * the library's file name and of its symbol versions; the build reads it here. The library counts nothing for
 * descriptors of another version; `allium tags PID` says how many of them were used.
 */
#define ALLIUM_TAG_VERSION 3

/**
 * The descriptor of a place. `code`, `text` and `control` are offsets in bytes from the field itself; 0: none.
 * Inline code compares `state` with allium_control: if greater, the place is counted; if equal, the place is
 * off; if less, inline code calls the library.
 */
struct allium_tag {
    uint32_t version;  /* ALLIUM_TAG_VERSION */
    int32_t state;     /* -1 at first */
    uint32_t counters; /* offset in bytes from allium_thread.counters, or one of the values below */
    uint32_t entry;    /* this | size of an object: the entry of the object in the map of objects */
    int32_t code;      /* offset of the code of the place */
    int32_t text;      /* offset of three consecutive strings: class, name and file, each with its NUL */
    int32_t control;   /* offset of the control page of the module that contains the descriptor */
    uint32_t line;     /* 0: unknown, see the debug information */
};

#define ALLIUM_TAG_UNREGISTERED 1u /* the library has not assigned an account yet */
#define ALLIUM_TAG_NO_ACCOUNT   0u /* the library could not assign an account */

/*
 * The control page. Each module with tags has one; liballium.so maps the control page of the process over it,
 * so that inline code reads allium_control like a variable of the module. The value of allium_control grows
 * each time the user changes the rules for tags.
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
        "\t.pushsection .rodata.allium_one_call,\"aG\",@progbits,allium_one_call,comdat\n"
        "\t.weak allium_one_call\n"
        "\t.hidden allium_one_call\n"
        "\t.type allium_one_call, @object\n"
        "\t.size allium_one_call, 8\n"
        "\t.balign 8\n"
        "allium_one_call:\n"
        "\t.quad -(1 << 53)\n"
        "\t.popsection\n"
        ".endif\n");
extern const volatile int32_t allium_control __attribute__((visibility("hidden")));
/*
 * Inline code adds this number and the bytes of a call to a counter. The number is in memory, because an
 * immediate of 64 bits would take another instruction.
 */
extern const uint64_t allium_one_call __attribute__((visibility("hidden")));

/*
 * State of a thread. `objects` points to a directory without tables whenever inline code must not count, but
 * call the library: until the thread's first request, also in a fork child, and for example while a helper
 * (helper.h) runs in the thread.
 */
struct allium_thread {
    char *counters;
    uintptr_t *objects; /* the directory of the map of objects: see allium_table_of() */
};

extern __thread struct allium_thread allium_thread __attribute__((tls_model("initial-exec")));
/** 0 until the process tracks its first object: before that, allium_untrack() has nothing to do. */
extern uint32_t allium_objects_tracked;

/*
 * The function uses only the address in that parameter, and does not read the object. Without this, gcc -Wall warns
 * that a new object, which the caller has not written yet, "may be used uninitialized".
 */
#if defined(ALLIUM_ONLY_ADDRESS)
/* the library itself: gcc would warn where it passes the address on */
#elif __GNUC__ >= 11
#define ALLIUM_ONLY_ADDRESS(parameter) __attribute__((access(none, parameter)))
#else
#define ALLIUM_ONLY_ADDRESS(parameter)
#endif

/* The slow paths of the inline functions below. */
void allium_account_cold(struct allium_tag *tag, size_t bytes, int sign);
ALLIUM_ONLY_ADDRESS(2) void allium_track_cold(struct allium_tag *tag, const void *object, size_t bytes);
ALLIUM_ONLY_ADDRESS(1) void allium_untrack_cold(const void *object);
/** Called when an addition of `bytes` bytes made the word at `count` negative: carries its calls to the next word. */
void allium_carry_cold(uint64_t *count, uint64_t bytes);
/** Counts a failed request for the place of the tag. */
void allium_failed(struct allium_tag *tag);
/**
 * To be called before and after a request of a tag whose state is below allium_control. If
 * allium_request_begin() returns 0, fault injection makes the request fail, and errno is ENOMEM: the caller
 * does not make the request. In both cases the caller then calls allium_request_end(), with the new object and
 * its size in bytes, or with NULL.
 */
int allium_request_begin(struct allium_tag *tag);
ALLIUM_ONLY_ADDRESS(2) void allium_request_end(struct allium_tag *tag, const void *object, size_t bytes);
uint64_t allium_latency_start_cold(struct allium_tag *tag);
void allium_latency_stop_cold(struct allium_tag *tag, uint64_t started);
int allium_should_fail_cold(struct allium_tag *tag);
/** Calls realloc(). Releases the old object from its account, and adds the new one to the account of `tag`. */
void *allium_realloc_tagged(struct allium_tag *tag, void *old, size_t bytes);
/** Calls `real` in place of realloc(); the new object stays in the account of the old one, if it has one. */
void *allium_realloc_by(void *(*real)(void *, size_t), void *old, size_t bytes);
/**
 * Calls posix_memalign(). The inline posix_memalign() needs this function, because clang does not inline a
 * function F that calls a function whose assembler name is F.
 */
int allium_real_posix_memalign(void **out, size_t alignment, size_t bytes);

#define ALLIUM_LIKELY(x)        __builtin_expect(!!(x), 1)
#define ALLIUM_UNLIKELY(x)      __builtin_expect(!!(x), 0)
#define ALLIUM_UNIT_SHIFT       22
#define ALLIUM_BYTES_BITS       12
#define ALLIUM_INLINE_BYTES_MAX 4095u       /* size of the largest object that inline code counts */
#define ALLIUM_BYTES_OF(e)      ((e)&4095u) /* size of the object in an entry; 0: the library has it */
#define ALLIUM_COUNTERS_OF(e)   ((e) >> 7 & ~31u)

/*
 * The attributes that the C library gives its fortified functions. The compiler emits no separate copy of a function
 * with these attributes, and inline functions of the C library may call such a function.
 */
#define ALLIUM_INLINE           extern __inline__ __attribute__((gnu_inline, always_inline, artificial))

/*
 * Emits the descriptor of the place where the macro is used, in a section of its own, to which only the code of
 * the place refers. If this code is in a section group, the section is in the same group ("?"). So the linker
 * keeps or discards the descriptor with the code. `text`: the assembler line of the field `text`.
 */
#define ALLIUM_DESCRIBE(line, text)                                                                          \
    "771:\t{leaq 772f(%%rip), %0|lea %0, 772f[rip]}\n"                                                       \
    "\t.pushsection allium_tags,\"aw?\",@progbits,unique,%=\n"                                               \
    "\t.balign 8\n"                                                                                          \
    "772:\t.long " ALLIUM_STRING(ALLIUM_TAG_VERSION) ", -1, 1, 0\n"                                          \
                                                     "\t.long 771b-.\n" text                                 \
                                                     "\t.long allium_control_page-.\n"                       \
                                                     "\t.long " line "\n"                                    \
                                                     "\t.popsection\n"
#define ALLIUM_DESCRIPTOR(line, text)                                                                        \
    __extension__({                                                                                          \
        struct allium_tag *allium_here_;                                                                     \
        __asm__ __volatile__(ALLIUM_DESCRIBE(line, text) : "=r"(allium_here_));                              \
        allium_here_;                                                                                        \
    })
/*
 * Like ALLIUM_DESCRIPTOR(), for places that have the same line and text. gcc would merge the code of such
 * places, if it is equal at the ends of functions or branches; but gcc does not merge `asm goto`. gcc before
 * version 11 has no `asm goto` with outputs, and may merge places. clang does not merge them.
 */
#if defined(__clang__) || __GNUC__ < 11
#define ALLIUM_DESCRIPTOR_UNIQUE(line, text) ALLIUM_DESCRIPTOR(line, text)
#else
#define ALLIUM_DESCRIPTOR_UNIQUE(line, text)                                                                 \
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
#define ALLIUM_STRING_(x) #x
#define ALLIUM_STRING(x)  ALLIUM_STRING_(x)

/* Like ALLIUM_DESCRIPTOR(), with the current line. `texts` is a string literal, so it may have any characters. */
#define ALLIUM_DESCRIPTOR_WITH(texts)                                                                        \
    __extension__({                                                                                          \
        struct allium_tag *allium_here_;                                                                     \
        __asm__ __volatile__(ALLIUM_DESCRIBE(ALLIUM_STRING(__LINE__), "\t.long %c1-.\n")                     \
                             : "=r"(allium_here_)                                                            \
                             : "i"(texts));                                                                  \
        allium_here_;                                                                                        \
    })

/** The tag of this place in the source. `class` and `name` are string literals without a NUL. */
#define ALLIUM_TAG(class, name)                ALLIUM_DESCRIPTOR_WITH(class "\0" name "\0" __FILE__)
/** Like ALLIUM_TAG(), with fields that the program chooses ("tenant=blue tier=2") after the name. */
#define ALLIUM_TAG_FIELDS(class, name, fields) ALLIUM_TAG(class, name " " fields)

/**
 * A probe for bpftrace, perf, SystemTap or gdb: usdt:PROGRAM:allium_tag:NAME with the arguments bytes and
 * address. The probe is a nop until a tracer attaches. `name` is an identifier without quotes. Use the probe
 * only in a function that calls other functions: in other functions the memory below the stack pointer is in
 * use (the red zone), and a tracer may overwrite it.
 */
#define ALLIUM_PROBE(name, bytes, address)                                                                   \
    __asm__ __volatile__("990:\tnop\n"                                                                       \
                         "\t.pushsection .note.stapsdt, \"\", \"note\"\n"                                    \
                         "\t.balign 4\n"                                                                     \
                         "\t.4byte 992f - 991f, 994f - 993f, 3\n"                                            \
                         "991:\t.asciz \"stapsdt\"\n"                                                        \
                         "992:\t.balign 4\n"                                                                 \
                         "993:\t.8byte 990b, _.stapsdt.base, 0\n"                                            \
                         "\t.asciz \"allium_tag\", \"" #name "\", \"{8@%0 8@%1|8@%%%0 8@%%%1}\"\n"           \
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
                         : "r"(ALLIUM_NUMBER(bytes)), "r"(ALLIUM_ADDRESS(address))                           \
                         : "memory")

/*
 * Adds one call of `bytes` bytes to the counter at `count` with one instruction, so that a signal handler never
 * finds the addition half done. No lock prefix, because only this thread writes to the counter.
 */
ALLIUM_INLINE void allium_add(char *count, uint64_t bytes)
{
    uint64_t *at = (uint64_t *)(void *)count, more = bytes + allium_one_call;
    char full;
    __asm__ __volatile__("{addq %2, %1|add %1, %2}" : "=@ccs"(full), "+m"(*at) : "r"(more));
    if (ALLIUM_UNLIKELY(full))
        allium_carry_cold(at, bytes);
}

/** Returns > 0: the tag is counted; 0: the tag is off; < 0: the caller must call the library. */
ALLIUM_INLINE int allium_tag_state(const struct allium_tag *tag)
{
    int32_t state = __atomic_load_n(&tag->state, __ATOMIC_ACQUIRE), now = allium_control;
    return state == now ? 0 : state > now ? 1 : -1;
}

/** Counts an allocation of `bytes` bytes for the place of the tag. */
ALLIUM_INLINE void allium_account(struct allium_tag *tag, size_t bytes)
{
    int state = allium_tag_state(tag);
    if (ALLIUM_LIKELY(state > 0 && allium_thread.objects[0] && bytes <= ALLIUM_INLINE_BYTES_MAX))
        allium_add(allium_thread.counters + tag->counters, bytes);
    else if (state)
        allium_account_cold(tag, bytes, 1);
}

/** Counts a release of `bytes` bytes for the place of the tag. */
ALLIUM_INLINE void allium_unaccount(struct allium_tag *tag, size_t bytes)
{
    int state = allium_tag_state(tag);
    if (ALLIUM_LIKELY(state > 0 && allium_thread.objects[0] && bytes <= ALLIUM_INLINE_BYTES_MAX))
        allium_add(allium_thread.counters + tag->counters + 16, bytes);
    else if (state)
        allium_account_cold(tag, bytes, -1);
}

/**
 * Starts to time a piece of work of the place. Pass the result, a time in nanoseconds, to
 * allium_latency_stop(), in any thread. The result is 0 and nothing is timed, unless
 * `allium set ... latency` has requested this for the tag.
 */
ALLIUM_INLINE uint64_t allium_latency_start(struct allium_tag *tag)
{
    if (ALLIUM_LIKELY(allium_tag_state(tag) >= 0))
        return 0;
    return allium_latency_start_cold(tag);
}

/** Ends the timing of a piece of work and records its duration. `started`: see allium_latency_start(). */
ALLIUM_INLINE void allium_latency_stop(struct allium_tag *tag, uint64_t started)
{
    if (ALLIUM_UNLIKELY(started))
        allium_latency_stop_cold(tag, started);
}

/**
 * Returns nonzero if `allium set ... fail=HOW` makes this request of the tag fail. The caller must then act as
 * after a failed allocation; the failure has been counted.
 */
ALLIUM_INLINE int allium_should_fail(struct allium_tag *tag)
{
    if (ALLIUM_LIKELY(allium_tag_state(tag) >= 0))
        return 0;
    return allium_should_fail_cold(tag);
}

/*
 * The map of objects has an entry of 4 bytes for each 16 bytes of address space, in one table for each unit of
 * 4 MiB. The directory has a word for each unit: 0 if there is no table, else the address of the table minus an
 * offset, so that the whole address of an object, divided by 16, is the index of the object's entry. The word
 * before the directory is a mask for the index of a unit; 0: there are no tables. allium_table_of() returns the
 * directory's word for an object. ALLIUM_SHIFT() divides an address by 16, and sets `odd` if the address is an
 * odd multiple of 8: the entries of such objects lie elsewhere.
 */
ALLIUM_ONLY_ADDRESS(1) ALLIUM_INLINE uintptr_t allium_table_of(const void *object)
{
    const uintptr_t *objects = allium_thread.objects;
    return objects[((uintptr_t)object >> ALLIUM_UNIT_SHIFT) & objects[-1]];
}
#define ALLIUM_SHIFT(at, odd) __asm__("{shrq $4, %1|shr %1, 4}" : "=@ccc"(odd), "+r"(at))

/* allium_track() for a tag whose state is > 0. */
ALLIUM_ONLY_ADDRESS(2)
ALLIUM_INLINE void allium_track_counted(struct allium_tag *tag, const void *object, size_t bytes)
{
    uintptr_t table = allium_table_of(object), at = (uintptr_t)object;
    uint32_t *entries = (uint32_t *)table;
    char odd;
    if (ALLIUM_UNLIKELY(!table) || ALLIUM_UNLIKELY(bytes > ALLIUM_INLINE_BYTES_MAX)) {
        allium_track_cold(tag, object, bytes);
        return;
    }
    ALLIUM_SHIFT(at, odd);
    if (ALLIUM_UNLIKELY(odd) || ALLIUM_UNLIKELY(__atomic_load_n(entries + at, __ATOMIC_RELAXED))) {
        allium_track_cold(tag, object, bytes);
        return;
    }
    __atomic_store_n(entries + at, tag->entry | (uint32_t)bytes, __ATOMIC_RELAXED);
    allium_add(allium_thread.counters + tag->counters, bytes);
}

/**
 * Counts an allocation of `bytes` bytes for the place of the tag, and stores tag and size in the map of objects, so
 * that allium_untrack() needs only the address of the object.
 */
ALLIUM_ONLY_ADDRESS(2)
ALLIUM_INLINE void allium_track(struct allium_tag *tag, const void *object, size_t bytes)
{
    int state = allium_tag_state(tag);
    if (ALLIUM_LIKELY(!state))
        return;
    if (ALLIUM_LIKELY(state > 0))
        allium_track_counted(tag, object, bytes);
    else
        allium_track_cold(tag, object, bytes);
}

/**
 * Counts the release of `object` for the place for which its allocation was counted. Call this function before the
 * object is freed. Does nothing if the object is not tracked.
 */
ALLIUM_ONLY_ADDRESS(1) ALLIUM_INLINE void allium_untrack(const void *object)
{
    uintptr_t table, at = (uintptr_t)object;
    uint32_t *entries, entry, bytes;
    char odd;
    if (ALLIUM_LIKELY(!__atomic_load_n(&allium_objects_tracked, __ATOMIC_RELAXED)))
        return;
    table = allium_table_of(object);
    entries = (uint32_t *)table;
    if (ALLIUM_UNLIKELY(!table)) {
        allium_untrack_cold(object);
        return;
    }
    ALLIUM_SHIFT(at, odd);
    if (ALLIUM_UNLIKELY(odd)) {
        allium_untrack_cold(object);
        return;
    }
    entry = __atomic_load_n(entries + at, __ATOMIC_RELAXED);
    bytes = ALLIUM_BYTES_OF(entry);
    if (ALLIUM_UNLIKELY(!bytes)) {
        if (entry)
            allium_untrack_cold(object);
        return;
    }
    __atomic_store_n(entries + at, 0, __ATOMIC_RELAXED);
    allium_add(allium_thread.counters + ALLIUM_COUNTERS_OF(entry) + 16, bytes);
}

#ifdef __cplusplus
}
#endif

#pragma pop_macro("size_t")
#pragma pop_macro("int32_t")
#pragma pop_macro("uint32_t")
#pragma pop_macro("uint64_t")
#pragma pop_macro("uintptr_t")
#pragma GCC diagnostic pop

#endif
