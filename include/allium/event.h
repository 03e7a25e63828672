/* SPDX-License-Identifier: BSD-2-Clause */
#if defined(ALLIUM_DISABLE)
#include "allium/disabled.h"
#elif !defined(ALLIUM_EVENT_H) && !defined(__ASSEMBLER__)
#define ALLIUM_EVENT_H

/*
 * The program's own events in the trace of `allium trace`. Build with `pkg-config --cflags --libs allium`.
 *
 *     #define KINDS(X) X(BOOK, 1) X(TOY, 2)
 *     ALLIUM_EVENT(shop, order_done, ALLIUM_U64(id), ALLIUM_I32(status), ALLIUM_F64(price),
 *                  ALLIUM_ENUM(kind, KINDS), ALLIUM_STR(customer, 24), ALLIUM_HEX(block));
 *     allium_emit(shop, order_done, .id = 7, .status = 200, .customer = name);
 *
 *     ALLIUM_SPAN(shop, parse, ALLIUM_U64(bytes));
 *     allium_begin(shop, parse, .bytes = n);
 *     allium_end(shop, parse);
 *
 *     allium_log(shop, "retry %d of %s", n, name);
 *     ALLIUM_SNAPSHOT("a deadline was missed");
 *
 * ALLIUM_EVENT() and ALLIUM_SPAN() stand outside of functions, in a source or in a header. Fields that a call does not
 * name are 0. While an event is off, allium_emit() is a load and a branch: its arguments are not evaluated.
 * allium-events(7) describes how events are switched on.
 *
 * Threads: any, signal handlers included. No lock, no memory from the program's allocator.
 *
 * include/allium/ABI.md describes the layout of all memory that inline code reads and writes.
 */

#include "allium/tag.h"

#ifdef __cplusplus
extern "C" {
#endif

/** The version of struct allium_event. The library writes no event of another version. */
#define ALLIUM_EVENT_VERSION 1

/** A name for a value of ALLIUM_ENUM(). */
struct allium_event_label {
    const char *name;
    __INT64_TYPE__ value;
};

struct allium_event_field {
    const char *name;
    __UINT32_TYPE__ type; /* ALLIUM_TYPE_* */
    __UINT32_TYPE__ bytes;
    const struct allium_event_label *labels;
    __UINT64_TYPE__ n_labels;
};
#define ALLIUM_TYPE_UNSIGNED 0
#define ALLIUM_TYPE_SIGNED   1
#define ALLIUM_TYPE_HEX      2
#define ALLIUM_TYPE_BYTES    3
#define ALLIUM_TYPE_FLOAT    4
#define ALLIUM_TYPE_ENUM     5
#define ALLIUM_TYPE_TEXT     6

/**
 * What the library knows of an event. Declarations with the same name and the same fields are one event, wherever they
 * are; declarations with other fields are another event of that name.
 */
struct allium_event {
    __UINT32_TYPE__ version; /* ALLIUM_EVENT_VERSION */
    __UINT32_TYPE__ on,
        off; /* word ALLIUM_EVENTS_WORD at which it was on, or off; at another word ask the library */
    __UINT32_TYPE__ n_fields;
    __UINT64_TYPE__ known; /* the library's */
    const char *name;      /* PROVIDER:NAME */
    const struct allium_event_field *fields;
};

/*
 * The word of the control page (tag.h) for events. 0: no event of the program is on. It changes with each change of the
 * list of events that are on.
 */
#define ALLIUM_EVENTS_WORD   16
extern const volatile __UINT32_TYPE__ allium_control_page[] __attribute__((visibility("hidden")));

/* For functions that are called often: a call without the stub in the procedure linkage table, one cache line less. */
#if defined(__has_attribute)
#if __has_attribute(noplt)
#define ALLIUM_DIRECT __attribute__((noplt))
#endif
#endif
#ifndef ALLIUM_DIRECT
#define ALLIUM_DIRECT
#endif

/** Tells the library of a module with events: its control page, by the constructor below. */
void allium_event_module(const volatile void *page);
/** Decides whether the event is on, while the word is `word`, and remembers that. */
int allium_event_decide(struct allium_event *event, __UINT32_TYPE__ word);
/** Writes an event of `words` words, the first two of which the library fills in. `cut`: a text was cut. */
ALLIUM_DIRECT void allium_event_write(struct allium_event *event, __UINT64_TYPE__ *words,
                                      __UINT32_TYPE__ n_words, __UINT32_TYPE__ cut);
/** As allium_event_write(), for events without texts of 2 to 5 words: a, b and c are the words after the first two. */
ALLIUM_DIRECT void allium_event_put_0(struct allium_event *event);
ALLIUM_DIRECT void allium_event_put_1(struct allium_event *event, __UINT64_TYPE__ a);
ALLIUM_DIRECT void allium_event_put_2(struct allium_event *event, __UINT64_TYPE__ a, __UINT64_TYPE__ b);
ALLIUM_DIRECT void allium_event_put_3(struct allium_event *event, __UINT64_TYPE__ a, __UINT64_TYPE__ b,
                                      __UINT64_TYPE__ c);
/** Copies a text into a field of zeros: whole characters of UTF-8, as many as fit. Returns 1 if it was cut, else 0. */
__UINT32_TYPE__ allium_event_text(char *field, __UINT32_TYPE__ bytes, const char *text);
/** Writes the event allium:snapshot, and asks the tool for a snapshot. */
void allium_event_snapshot(struct allium_event *event, const char *reason);

static __attribute__((constructor, unused)) void allium_event_begin_module(void)
{
    allium_event_module(allium_control_page);
}

ALLIUM_INLINE int allium_event_is_on(struct allium_event *event)
{
    const __UINT32_TYPE__ word = allium_control_page[ALLIUM_EVENTS_WORD];
    if (ALLIUM_LIKELY(!word) || __atomic_load_n(&event->off, __ATOMIC_RELAXED) == word)
        return 0;
    return __atomic_load_n(&event->on, __ATOMIC_RELAXED) == word || allium_event_decide(event, word);
}

#ifdef __cplusplus
}
#endif

/*
 * Fields. Each is a list in parentheses: what the macros below make of it, name, type in C, ALLIUM_TYPE_*, and its
 * bytes, or the list of its labels.
 */
#define ALLIUM_U8(field)             (allium_number, field, __UINT8_TYPE__, ALLIUM_TYPE_UNSIGNED, 1)
#define ALLIUM_U16(field)            (allium_number, field, __UINT16_TYPE__, ALLIUM_TYPE_UNSIGNED, 2)
#define ALLIUM_U32(field)            (allium_number, field, __UINT32_TYPE__, ALLIUM_TYPE_UNSIGNED, 4)
#define ALLIUM_U64(field)            (allium_number, field, __UINT64_TYPE__, ALLIUM_TYPE_UNSIGNED, 8)
#define ALLIUM_I8(field)             (allium_number, field, __INT8_TYPE__, ALLIUM_TYPE_SIGNED, 1)
#define ALLIUM_I16(field)            (allium_number, field, __INT16_TYPE__, ALLIUM_TYPE_SIGNED, 2)
#define ALLIUM_I32(field)            (allium_number, field, __INT32_TYPE__, ALLIUM_TYPE_SIGNED, 4)
#define ALLIUM_I64(field)            (allium_number, field, __INT64_TYPE__, ALLIUM_TYPE_SIGNED, 8)
#define ALLIUM_F32(field)            (allium_number, field, float, ALLIUM_TYPE_FLOAT, 4)
#define ALLIUM_F64(field)            (allium_number, field, double, ALLIUM_TYPE_FLOAT, 8)
/** A number that is printed in hexadecimal. */
#define ALLIUM_HEX(field)            (allium_number, field, __UINT64_TYPE__, ALLIUM_TYPE_HEX, 8)
/** An address of any object. */
#define ALLIUM_PTR(field)            (allium_pointer, field, const volatile void *, ALLIUM_TYPE_HEX, 8)
/** A number of bytes of memory. */
#define ALLIUM_BYTES(field)          (allium_number, field, __UINT64_TYPE__, ALLIUM_TYPE_BYTES, 8)
/** A number with names: `list` is a macro, list(X) is X(NAME, value) X(NAME, value) ... */
#define ALLIUM_ENUM(field, list)     (allium_enum, field, __INT32_TYPE__, ALLIUM_TYPE_ENUM, list)
/** A text of up to `bytes` bytes, in UTF-8. Longer ones are cut, which is marked and counted. */
#define ALLIUM_STR(field, bytes)     (allium_text, field, const char *, ALLIUM_TYPE_TEXT, bytes)
#define ALLIUM_LAST_FIELD            (allium_last, , , , )

/* ALLIUM_EACH(M, event, a, b, ...): M(event, a) M(event, b) ... for up to 33 fields, the last one included. */
#define ALLIUM_EACH_1(m, e, x)       m(e, x)
#define ALLIUM_EACH_2(m, e, x, ...)  m(e, x) ALLIUM_EACH_1(m, e, __VA_ARGS__)
#define ALLIUM_EACH_3(m, e, x, ...)  m(e, x) ALLIUM_EACH_2(m, e, __VA_ARGS__)
#define ALLIUM_EACH_4(m, e, x, ...)  m(e, x) ALLIUM_EACH_3(m, e, __VA_ARGS__)
#define ALLIUM_EACH_5(m, e, x, ...)  m(e, x) ALLIUM_EACH_4(m, e, __VA_ARGS__)
#define ALLIUM_EACH_6(m, e, x, ...)  m(e, x) ALLIUM_EACH_5(m, e, __VA_ARGS__)
#define ALLIUM_EACH_7(m, e, x, ...)  m(e, x) ALLIUM_EACH_6(m, e, __VA_ARGS__)
#define ALLIUM_EACH_8(m, e, x, ...)  m(e, x) ALLIUM_EACH_7(m, e, __VA_ARGS__)
#define ALLIUM_EACH_9(m, e, x, ...)  m(e, x) ALLIUM_EACH_8(m, e, __VA_ARGS__)
#define ALLIUM_EACH_10(m, e, x, ...) m(e, x) ALLIUM_EACH_9(m, e, __VA_ARGS__)
#define ALLIUM_EACH_11(m, e, x, ...) m(e, x) ALLIUM_EACH_10(m, e, __VA_ARGS__)
#define ALLIUM_EACH_12(m, e, x, ...) m(e, x) ALLIUM_EACH_11(m, e, __VA_ARGS__)
#define ALLIUM_EACH_13(m, e, x, ...) m(e, x) ALLIUM_EACH_12(m, e, __VA_ARGS__)
#define ALLIUM_EACH_14(m, e, x, ...) m(e, x) ALLIUM_EACH_13(m, e, __VA_ARGS__)
#define ALLIUM_EACH_15(m, e, x, ...) m(e, x) ALLIUM_EACH_14(m, e, __VA_ARGS__)
#define ALLIUM_EACH_16(m, e, x, ...) m(e, x) ALLIUM_EACH_15(m, e, __VA_ARGS__)
#define ALLIUM_EACH_17(m, e, x, ...) m(e, x) ALLIUM_EACH_16(m, e, __VA_ARGS__)
#define ALLIUM_EACH_18(m, e, x, ...) m(e, x) ALLIUM_EACH_17(m, e, __VA_ARGS__)
#define ALLIUM_EACH_19(m, e, x, ...) m(e, x) ALLIUM_EACH_18(m, e, __VA_ARGS__)
#define ALLIUM_EACH_20(m, e, x, ...) m(e, x) ALLIUM_EACH_19(m, e, __VA_ARGS__)
#define ALLIUM_EACH_21(m, e, x, ...) m(e, x) ALLIUM_EACH_20(m, e, __VA_ARGS__)
#define ALLIUM_EACH_22(m, e, x, ...) m(e, x) ALLIUM_EACH_21(m, e, __VA_ARGS__)
#define ALLIUM_EACH_23(m, e, x, ...) m(e, x) ALLIUM_EACH_22(m, e, __VA_ARGS__)
#define ALLIUM_EACH_24(m, e, x, ...) m(e, x) ALLIUM_EACH_23(m, e, __VA_ARGS__)
#define ALLIUM_EACH_25(m, e, x, ...) m(e, x) ALLIUM_EACH_24(m, e, __VA_ARGS__)
#define ALLIUM_EACH_26(m, e, x, ...) m(e, x) ALLIUM_EACH_25(m, e, __VA_ARGS__)
#define ALLIUM_EACH_27(m, e, x, ...) m(e, x) ALLIUM_EACH_26(m, e, __VA_ARGS__)
#define ALLIUM_EACH_28(m, e, x, ...) m(e, x) ALLIUM_EACH_27(m, e, __VA_ARGS__)
#define ALLIUM_EACH_29(m, e, x, ...) m(e, x) ALLIUM_EACH_28(m, e, __VA_ARGS__)
#define ALLIUM_EACH_30(m, e, x, ...) m(e, x) ALLIUM_EACH_29(m, e, __VA_ARGS__)
#define ALLIUM_EACH_31(m, e, x, ...) m(e, x) ALLIUM_EACH_30(m, e, __VA_ARGS__)
#define ALLIUM_EACH_32(m, e, x, ...) m(e, x) ALLIUM_EACH_31(m, e, __VA_ARGS__)
#define ALLIUM_EACH_33(m, e, x, ...) m(e, x) ALLIUM_EACH_32(m, e, __VA_ARGS__)
#define ALLIUM_EACH_N(_1, _2, _3, _4, _5, _6, _7, _8, _9, _10, _11, _12, _13, _14, _15, _16, _17, _18, _19,  \
                      _20, _21, _22, _23, _24, _25, _26, _27, _28, _29, _30, _31, _32, _33, n, ...)          \
    ALLIUM_EACH_##n
#define ALLIUM_EACH(m, e, ...)                                                                               \
    ALLIUM_EACH_N(__VA_ARGS__, 33, 32, 31, 30, 29, 28, 27, 26, 25, 24, 23, 22, 21, 20, 19, 18, 17, 16, 15,   \
                  14, 13, 12, 11, 10, 9, 8, 7, 6, 5, 4, 3, 2, 1, 0)                                          \
    (m, e, __VA_ARGS__)
#define ALLIUM_OPEN(...)                                        __VA_ARGS__
#define ALLIUM_CALL(m, ...)                                     m(__VA_ARGS__)

/* The arguments of allium_emit(). */
#define ALLIUM_ARGUMENT(e, field)                               ALLIUM_CALL(ALLIUM_ARGUMENT_OF, e, ALLIUM_OPEN field)
#define ALLIUM_ARGUMENT_OF(e, shape, field, c_type, type, more) ALLIUM_ARGUMENT_##shape(field, c_type)
#define ALLIUM_ARGUMENT_allium_number(field, c_type)            c_type field;
#define ALLIUM_ARGUMENT_allium_pointer(field, c_type)           c_type field;
#define ALLIUM_ARGUMENT_allium_enum(field, c_type)              c_type field;
#define ALLIUM_ARGUMENT_allium_text(field, c_type)              c_type field;
#define ALLIUM_ARGUMENT_allium_last(field, c_type)              int allium_last_;

/* The event in memory. */
#define ALLIUM_MEMBER(e, field)                                 ALLIUM_CALL(ALLIUM_MEMBER_OF, e, ALLIUM_OPEN field)
#define ALLIUM_MEMBER_OF(e, shape, field, c_type, type, more)   ALLIUM_MEMBER_##shape(field, c_type, more)
#define ALLIUM_MEMBER_allium_number(field, c_type, more)        c_type field;
#define ALLIUM_MEMBER_allium_pointer(field, c_type, more)       c_type field;
#define ALLIUM_MEMBER_allium_enum(field, c_type, more)          c_type field;
#define ALLIUM_MEMBER_allium_text(field, c_type, more)          char field[more];
#define ALLIUM_MEMBER_allium_last(field, c_type, more)

/* Puts an argument into the event. Numbers become words in registers: a word stored in parts is read slowly. */
#define ALLIUM_SET(e, field)                               ALLIUM_CALL(ALLIUM_SET_OF, e, ALLIUM_OPEN field)
#define ALLIUM_SET_OF(e, shape, field, c_type, type, more) ALLIUM_SET_##shape(e, field, c_type)
#define ALLIUM_SET_allium_number(e, field, c_type)                                                           \
    {                                                                                                        \
        __UINT64_TYPE__ allium_bits_ = 0;                                                                    \
        __builtin_memcpy(&allium_bits_, &allium_from_->field, sizeof(c_type));                               \
        allium_to_[ALLIUM_PLACE(e, field) / 8] |= allium_bits_ << ALLIUM_PLACE(e, field) % 8 * 8;            \
    }
#define ALLIUM_SET_allium_pointer(e, field, c_type) ALLIUM_SET_allium_number(e, field, c_type)
#define ALLIUM_SET_allium_enum(e, field, c_type)    ALLIUM_SET_allium_number(e, field, c_type)
#define ALLIUM_SET_allium_text(e, field, c_type)                                                             \
    allium_cut_ |= allium_event_text((char *)allium_to_ + ALLIUM_PLACE(e, field),                            \
                                     sizeof(((struct allium_words_##e *)0)->field), allium_from_->field);
#define ALLIUM_SET_allium_last(e, field, c_type)
#define ALLIUM_PLACE(e, field)                                (__builtin_offsetof(struct allium_words_##e, field))

/* Expands to +1 for a text, and to +0 for any other field. */
#define ALLIUM_TEXTS(e, field)                                ALLIUM_CALL(ALLIUM_TEXTS_OF, e, ALLIUM_OPEN field)
#define ALLIUM_TEXTS_OF(e, shape, field, c_type, type, more)  ALLIUM_TEXTS_##shape
#define ALLIUM_TEXTS_allium_number                            +0
#define ALLIUM_TEXTS_allium_pointer                           +0
#define ALLIUM_TEXTS_allium_enum                              +0
#define ALLIUM_TEXTS_allium_text                              +1
#define ALLIUM_TEXTS_allium_last                              +0

/* The descriptions of fields. */
#define ALLIUM_LABEL(label, value)                            {#label, (value)},
#define ALLIUM_LABELS(e, field)                               ALLIUM_CALL(ALLIUM_LABELS_OF, e, ALLIUM_OPEN field)
#define ALLIUM_LABELS_OF(e, shape, field, c_type, type, more) ALLIUM_LABELS_##shape(e, field, more)
#define ALLIUM_LABELS_allium_number(e, field, more)
#define ALLIUM_LABELS_allium_pointer(e, field, more)
#define ALLIUM_LABELS_allium_text(e, field, more)
#define ALLIUM_LABELS_allium_last(e, field, more)
#define ALLIUM_LABELS_allium_enum(e, field, more)                                                            \
    static const struct allium_event_label allium_labels_##e##_##field[] = {more(ALLIUM_LABEL)};

#define ALLIUM_FIELD(e, field)                               ALLIUM_CALL(ALLIUM_FIELD_OF, e, ALLIUM_OPEN field)
#define ALLIUM_FIELD_OF(e, shape, field, c_type, type, more) ALLIUM_FIELD_##shape(e, field, type, more)
#define ALLIUM_FIELD_allium_number(e, field, type, more)     {#field, type, more, ALLIUM_NULL, 0},
#define ALLIUM_FIELD_allium_pointer(e, field, type, more)    {#field, type, more, ALLIUM_NULL, 0},
#define ALLIUM_FIELD_allium_text(e, field, type, more)       {#field, type, more, ALLIUM_NULL, 0},
#define ALLIUM_FIELD_allium_enum(e, field, type, more)                                                       \
    {#field, type, 4, allium_labels_##e##_##field,                                                           \
     sizeof(allium_labels_##e##_##field) / sizeof(struct allium_event_label)},
#define ALLIUM_FIELD_allium_last(e, field, type, more)                                                       \
    {                                                                                                        \
        ALLIUM_NULL, 0, 0, ALLIUM_NULL, 0                                                                    \
    }

#ifdef __cplusplus
#define ALLIUM_IS(condition, text) static_assert(condition, text)
#else
#define ALLIUM_IS(condition, text) _Static_assert(condition, text)
#endif

/* `e`: an identifier; `text`: PROVIDER:NAME. The variables are static, so that sources may disagree about a name. */
#define ALLIUM_DECLARE(e, text, ...)                                                                         \
    struct allium_arguments_##e {                                                                            \
        ALLIUM_EACH(ALLIUM_ARGUMENT, e, __VA_ARGS__)                                                         \
    };                                                                                                       \
    struct allium_words_##e {                                                                                \
        __UINT64_TYPE__ allium_words_[2];                                                                    \
        ALLIUM_EACH(ALLIUM_MEMBER, e, __VA_ARGS__)                                                           \
    };                                                                                                       \
    ALLIUM_EACH(ALLIUM_LABELS, e, __VA_ARGS__)                                                               \
    static const struct allium_event_field allium_fields_##e[] = {                                           \
        ALLIUM_EACH(ALLIUM_FIELD, e, __VA_ARGS__)};                                                          \
    static struct allium_event __attribute__((unused))                                                       \
    allium_event_##e = {ALLIUM_EVENT_VERSION,                                                                \
                        0,                                                                                   \
                        0,                                                                                   \
                        sizeof(allium_fields_##e) / sizeof(struct allium_event_field) - 1,                   \
                        0,                                                                                   \
                        text,                                                                                \
                        allium_fields_##e};                                                                  \
    enum {                                                                                                   \
        allium_n_##e = sizeof(struct allium_words_##e) / 8,                                                  \
        allium_short_##e = allium_n_##e <= 5 && !(0 ALLIUM_EACH(ALLIUM_TEXTS, e, __VA_ARGS__))               \
    };                                                                                                       \
    static __attribute__((unused, always_inline)) inline void allium_put_##e(                                \
        const struct allium_arguments_##e *allium_from_)                                                     \
    {                                                                                                        \
        __UINT32_TYPE__ allium_cut_ = 0;                                                                     \
        __UINT64_TYPE__ allium_to_[allium_n_##e < 5 ? 5 : allium_n_##e];                                     \
        __builtin_memset(allium_to_, 0, sizeof(allium_to_));                                                 \
        (void)allium_from_;                                                                                  \
        ALLIUM_EACH(ALLIUM_SET, e, __VA_ARGS__)                                                              \
        if (!allium_short_##e)                                                                               \
            allium_event_write(&allium_event_##e, allium_to_, allium_n_##e, allium_cut_);                    \
        else if (allium_n_##e == 2)                                                                          \
            allium_event_put_0(&allium_event_##e);                                                           \
        else if (allium_n_##e == 3)                                                                          \
            allium_event_put_1(&allium_event_##e, allium_to_[2]);                                            \
        else if (allium_n_##e == 4)                                                                          \
            allium_event_put_2(&allium_event_##e, allium_to_[2], allium_to_[3]);                             \
        else                                                                                                 \
            allium_event_put_3(&allium_event_##e, allium_to_[2], allium_to_[3], allium_to_[4]);              \
    }                                                                                                        \
    static __attribute__((unused, noinline)) void allium_write_##e(                                          \
        const struct allium_arguments_##e *allium_from_)                                                     \
    {                                                                                                        \
        allium_put_##e(allium_from_);                                                                        \
    }                                                                                                        \
    ALLIUM_IS(sizeof(struct allium_words_##e) <= 4096, "an event has at most 4,080 bytes of fields")

/** Declares an event: ALLIUM_EVENT(provider, name, fields...); up to 32 fields, and 4,080 bytes of them. */
#define ALLIUM_EVENT(provider, ...) ALLIUM_EVENT_(provider, __VA_ARGS__, ALLIUM_LAST_FIELD)
#define ALLIUM_EVENT_(provider, name, ...)                                                                   \
    ALLIUM_DECLARE(provider##_e_##name, #provider ":" #name, __VA_ARGS__)

/** Declares a span of time in one thread: the events PROVIDER:NAME_begin, with the fields, and PROVIDER:NAME_end. */
#define ALLIUM_SPAN(provider, ...) ALLIUM_SPAN_(provider, __VA_ARGS__, ALLIUM_LAST_FIELD)
#define ALLIUM_SPAN_(provider, name, ...)                                                                    \
    ALLIUM_DECLARE(provider##_b_##name, #provider ":" #name "_begin", __VA_ARGS__);                          \
    ALLIUM_DECLARE(provider##_f_##name, #provider ":" #name "_end", ALLIUM_LAST_FIELD)

/*
 * In a statement that is one condition and one call. C++ before C++20 has no designators, but the compilers take them;
 * and they warn of fields that are not there, which is meant.
 */
#ifdef __cplusplus
#ifdef __clang__
#define ALLIUM_QUIET_CXX20
#else
#define ALLIUM_QUIET_CXX20                                                                                   \
    _Pragma("GCC diagnostic ignored \"-Wpragmas\"") _Pragma("GCC diagnostic ignored \"-Wc++20-extensions\"")
#endif
#define ALLIUM_QUIET                                                                                         \
    _Pragma("GCC diagnostic push") _Pragma("GCC diagnostic ignored \"-Wpedantic\"")                          \
        ALLIUM_QUIET_CXX20 _Pragma("GCC diagnostic ignored \"-Wmissing-field-initializers\"")
#define ALLIUM_LOUD _Pragma("GCC diagnostic pop")
#else
#define ALLIUM_QUIET
#define ALLIUM_LOUD
#endif
#define ALLIUM_EMIT(e, ...)                                                                                  \
    do {                                                                                                     \
        if (ALLIUM_UNLIKELY(allium_event_is_on(&allium_event_##e))) {                                        \
            ALLIUM_QUIET                                                                                     \
            const struct allium_arguments_##e allium_arguments_ = {__VA_ARGS__};                             \
            ALLIUM_LOUD                                                                                      \
            if (allium_short_##e)                                                                            \
                allium_put_##e(&allium_arguments_);                                                          \
            else                                                                                             \
                allium_write_##e(&allium_arguments_);                                                        \
        }                                                                                                    \
    } while (0)

/** Writes an event: allium_emit(provider, name, .field = value, ...). */
#define allium_emit(provider, ...)         ALLIUM_EMIT_(provider, __VA_ARGS__, .allium_last_ = 0)
#define ALLIUM_EMIT_(provider, name, ...)  ALLIUM_EMIT(provider##_e_##name, __VA_ARGS__)
/** Begin and end a span: allium_begin(provider, name, .field = value, ...), allium_end(provider, name). */
#define allium_begin(provider, ...)        ALLIUM_BEGIN_(provider, __VA_ARGS__, .allium_last_ = 0)
#define ALLIUM_BEGIN_(provider, name, ...) ALLIUM_EMIT(provider##_b_##name, __VA_ARGS__)
#define allium_end(provider, name)         ALLIUM_EMIT(provider##_f_##name, .allium_last_ = 0)

/**
 * Writes a line of text, up to 256 bytes, as the event PROVIDER:log: allium_log(provider, "format", ...). It takes as
 * long as printf(), so use it for rare events only.
 */
#define allium_log(provider, ...)                                                                            \
    do {                                                                                                     \
        static struct allium_event allium_event_ = {ALLIUM_EVENT_VERSION, 0, 0, 1, 0, #provider ":log",      \
                                                    allium_log_fields};                                      \
        if (ALLIUM_UNLIKELY(allium_event_is_on(&allium_event_))) {                                           \
            struct allium_log_words allium_log_;                                                             \
            __builtin_memset(&allium_log_, 0, sizeof(allium_log_));                                          \
            char allium_text_[ALLIUM_LOG_BYTES + 2];                                                         \
            const int allium_length_ = __builtin_snprintf(allium_text_, sizeof(allium_text_), __VA_ARGS__);  \
            const __UINT32_TYPE__ allium_cut_ =                                                              \
                allium_length_ > 0 ? allium_event_text(allium_log_.message, ALLIUM_LOG_BYTES, allium_text_)  \
                                   : 0;                                                                      \
            allium_event_write(&allium_event_, allium_log_.words, 2 + ALLIUM_LOG_BYTES / 8, allium_cut_);    \
        }                                                                                                    \
    } while (0)
#define ALLIUM_LOG_BYTES 256
struct allium_log_words {
    __UINT64_TYPE__ words[2];
    char message[ALLIUM_LOG_BYTES + 8];
};
static const struct allium_event_field allium_log_fields[]
    __attribute__((unused)) = {{"message", ALLIUM_TYPE_TEXT, ALLIUM_LOG_BYTES, ALLIUM_NULL, 0}};

/**
 * Makes `allium trace --flight` write a snapshot, for this reason, a text of up to 64 bytes. It does not wait for the
 * snapshot. Without `allium trace --flight` its event is off: it costs a load and a branch.
 */
#define ALLIUM_SNAPSHOT(reason)                                                                              \
    do {                                                                                                     \
        static struct allium_event allium_event_ = {ALLIUM_EVENT_VERSION,  0, 0, 1, 0, "allium:snapshot",    \
                                                    allium_snapshot_fields};                                 \
        if (ALLIUM_UNLIKELY(allium_event_is_on(&allium_event_)))                                             \
            allium_event_snapshot(&allium_event_, (reason));                                                 \
    } while (0)
#define ALLIUM_SNAPSHOT_BYTES 64
static const struct allium_event_field allium_snapshot_fields[]
    __attribute__((unused)) = {{"reason", ALLIUM_TYPE_TEXT, ALLIUM_SNAPSHOT_BYTES, ALLIUM_NULL, 0}};

#endif
