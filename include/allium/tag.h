/* SPDX-License-Identifier: BSD-2-Clause */
#if !defined(ALLIUM_TAG_H) && !defined(__ASSEMBLER__) /* -include reaches .S files, too */
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

#if !defined(__x86_64__) || defined(__ILP32__) || !defined(__linux__)
#error "allium/tag.h: 64-bit x86-64 Linux only: compile without -m32, -mx32 and this header"
#endif

/*
 * No header of the C library before the program's own first line: it would settle what _GNU_SOURCE and its like, which sources
 * define there, make visible. So its types are the compiler's.
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
/* In macros, where C's ways would be warned of: -Wzero-as-null-pointer-constant, -Wold-style-cast. */
#define ALLIUM_NULL       nullptr
#define ALLIUM_NUMBER(n)  static_cast<unsigned long>(n)
#define ALLIUM_ADDRESS(p) reinterpret_cast<unsigned long>(static_cast<const volatile void *>(p))
extern "C" {
#else
#define ALLIUM_NULL       0
#define ALLIUM_NUMBER(n)  ((unsigned long)(n))
#define ALLIUM_ADDRESS(p) ((unsigned long)(p))
#endif

/** What the library and inlined code agree on; another number: a descriptor of another version, which is left alone. */
#define ALLIUM_TAG_VERSION 2

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
/* What a call adds to a count beside its bytes; from memory, since a constant of that size takes an instruction more. */
extern const uint64_t allium_one_call __attribute__((visibility("hidden")));

/* What a thread knows. `objects` leads nowhere until the thread has words of its own, and in a child that was forked. */
struct allium_thread {
    char *words;
    uintptr_t *objects; /* by GiB of addresses: where the entry of address 0 would lie, or 0 */
};

extern __thread struct allium_thread allium_thread __attribute__((tls_model("initial-exec")));
/** Not 0 once an object has been booked: before that, no free concerns anybody. */
extern uint32_t allium_objects_booked;

/* The cold halves: what the inline ones do, in every case. */
void allium_account_cold(struct allium_tag *tag, size_t bytes, int sign);
void allium_born_cold(struct allium_tag *tag, const void *object, size_t bytes);
void allium_gone_cold(const void *object);
/** A count that a call of so many bytes was added to has as many calls as it can have, and hands them on. */
void allium_carry_cold(uint64_t *count, uint64_t bytes);
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
void *allium_realloc_tagged(struct allium_tag *tag, void *old, size_t bytes);
/** The same by that function; the new object is charged to whom the old one was, if to anybody. */
void *allium_realloc_by(void *(*real)(void *, size_t), void *old, size_t bytes);
/** posix_memalign(): clang leaves inline functions alone that call themselves by another name, but for some it knows. */
int allium_real_posix_memalign(void **out, size_t alignment, size_t bytes);

#define ALLIUM_LIKELY(x)   __builtin_expect(!!(x), 1)
#define ALLIUM_UNLIKELY(x) __builtin_expect(!!(x), 0)
#define ALLIUM_GIB_SHIFT   30
#define ALLIUM_BYTES_BITS  12
#define ALLIUM_BYTES_MOST  4095u       /* that inline code books */
#define ALLIUM_BYTES_OF(e) ((e)&4095u) /* of an entry; 0: the library knows */
#define ALLIUM_WORDS_OF(e) ((e) >> 7 & ~31u)

/* As fortified functions are: no copy of it is ever emitted, and other inline functions may use it. */
#define ALLIUM_INLINE extern __inline__ __attribute__((gnu_inline, always_inline, artificial))

/*
 * The descriptor of the place where this stands, and of each copy of it. It has a section of its own, of the group that the code is in
 * if it is in one ("?"), and only the code refers to it: it goes where the code goes, and keeps nothing.
 */
#define ALLIUM_DESCRIBE(line, text)                                                                          \
    "771:\t{leaq 772f(%%rip), %0|lea %0, 772f[rip]}\n"                                                       \
    "\t.pushsection allium_tags,\"aw?\",@progbits,unique,%=\n"                                               \
    "\t.balign 8\n"                                                                                          \
    "772:\t.long 2, -1, 1, 0\n"                                                                              \
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

/* One instruction: a signal handler never finds it half done. Nobody else writes to the thread's own words. */
ALLIUM_INLINE void allium_add(char *count, uint64_t bytes)
{
    uint64_t *at = (uint64_t *)(void *)count, more = bytes + allium_one_call;
    char full;
    __asm__ __volatile__("{addq %2, %1|add %1, %2}" : "=@ccs"(full), "+m"(*at) : "r"(more));
    if (ALLIUM_UNLIKELY(full))
        allium_carry_cold(at, bytes);
}

/** Above 0: the tag is on; 0: it is off; below: the library knows what to do, or finds out. */
ALLIUM_INLINE int allium_way(const struct allium_tag *tag)
{
    int32_t state = __atomic_load_n(&tag->state, __ATOMIC_ACQUIRE), now = allium_control;
    return state == now ? 0 : state > now ? 1 : -1;
}

/** This place holds so many bytes more. */
ALLIUM_INLINE void allium_account(struct allium_tag *tag, size_t bytes)
{
    int way = allium_way(tag);
    if (ALLIUM_LIKELY(way > 0 && allium_thread.objects[0] && bytes <= ALLIUM_BYTES_MOST))
        allium_add(allium_thread.words + tag->words, bytes);
    else if (way)
        allium_account_cold(tag, bytes, 1);
}

/** So many bytes less. */
ALLIUM_INLINE void allium_unaccount(struct allium_tag *tag, size_t bytes)
{
    int way = allium_way(tag);
    if (ALLIUM_LIKELY(way > 0 && allium_thread.objects[0] && bytes <= ALLIUM_BYTES_MOST))
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

/*
 * The map of objects: an entry of 4 bytes for each 16 of addresses, in tables, each from where address 0 would have its own. The
 * shift, which gives the entry's index, has as its carry that the address is a multiple of 8 alone: such a one lies elsewhere.
 */
#define ALLIUM_TABLE_OF(object) allium_thread.objects[(uintptr_t)(object) >> ALLIUM_GIB_SHIFT]
#define ALLIUM_SHIFT(at, odd)   __asm__("{shrq $4, %1|shr %1, 4}" : "=@ccc"(odd), "+r"(at))

/** allium_born() of a tag that is on. */
ALLIUM_INLINE void allium_born_on(struct allium_tag *tag, const void *object, size_t bytes)
{
    uintptr_t table = ALLIUM_TABLE_OF(object), at = (uintptr_t)object;
    uint32_t *entries = (uint32_t *)table;
    char odd;
    if (ALLIUM_UNLIKELY(!table) || ALLIUM_UNLIKELY(bytes > ALLIUM_BYTES_MOST)) {
        allium_born_cold(tag, object, bytes);
        return;
    }
    ALLIUM_SHIFT(at, odd);
    if (ALLIUM_UNLIKELY(odd) || ALLIUM_UNLIKELY(__atomic_load_n(entries + at, __ATOMIC_RELAXED))) {
        allium_born_cold(tag, object, bytes);
        return;
    }
    __atomic_store_n(entries + at, tag->entry | (uint32_t)bytes, __ATOMIC_RELAXED);
    allium_add(allium_thread.words + tag->words, bytes);
}

/** An object of an allocator: whoever frees it, allium_gone() knows its tag and its bytes. */
ALLIUM_INLINE void allium_born(struct allium_tag *tag, const void *object, size_t bytes)
{
    int way = allium_way(tag);
    if (ALLIUM_LIKELY(!way))
        return;
    if (ALLIUM_LIKELY(way > 0))
        allium_born_on(tag, object, bytes);
    else
        allium_born_cold(tag, object, bytes);
}

/** Before an object goes back to its allocator; one that nobody tagged is none of ours. */
ALLIUM_INLINE void allium_gone(const void *object)
{
    uintptr_t table, at = (uintptr_t)object;
    uint32_t *entries, entry, bytes;
    char odd;
    if (ALLIUM_LIKELY(!__atomic_load_n(&allium_objects_booked, __ATOMIC_RELAXED)))
        return;
    table = ALLIUM_TABLE_OF(object);
    entries = (uint32_t *)table;
    if (ALLIUM_UNLIKELY(!table)) {
        allium_gone_cold(object);
        return;
    }
    ALLIUM_SHIFT(at, odd);
    if (ALLIUM_UNLIKELY(odd)) {
        allium_gone_cold(object);
        return;
    }
    entry = __atomic_load_n(entries + at, __ATOMIC_RELAXED);
    bytes = ALLIUM_BYTES_OF(entry);
    if (ALLIUM_UNLIKELY(!bytes)) {
        if (entry)
            allium_gone_cold(object);
        return;
    }
    __atomic_store_n(entries + at, 0, __ATOMIC_RELAXED);
    allium_add(allium_thread.words + ALLIUM_WORDS_OF(entry) + 16, bytes);
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
