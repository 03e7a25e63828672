/* SPDX-License-Identifier: BSD-2-Clause */
/* Events that several sources declare by this header, as C and as C++. */
#ifndef TEST_EVENTS_H
#define TEST_EVENTS_H

#include <allium/event.h>

#define EVENT_KINDS(X) X(BOOK, 1) X(TOY, -2147483647 - 1) X(FOOD, 2147483647)

ALLIUM_EVENT(shop, limits, ALLIUM_U8(u8), ALLIUM_I8(i8), ALLIUM_U16(u16), ALLIUM_I16(i16), ALLIUM_U32(u32),
             ALLIUM_I32(i32), ALLIUM_U64(u64), ALLIUM_I64(i64), ALLIUM_F32(f32), ALLIUM_F64(f64),
             ALLIUM_HEX(hex), ALLIUM_PTR(ptr), ALLIUM_BYTES(size), ALLIUM_ENUM(kind, EVENT_KINDS),
             ALLIUM_STR(text, 5));
ALLIUM_EVENT(shop, tick, ALLIUM_U32(thread), ALLIUM_U64(count));
ALLIUM_EVENT(shop, empty);
ALLIUM_EVENT(shop, noisy, ALLIUM_U8(n));
/* Keywords of CTF, which are none of C. */
ALLIUM_EVENT(stream, event, ALLIUM_U8(clock), ALLIUM_U8(env), ALLIUM_U8(event), ALLIUM_U8(stream),
             ALLIUM_U8(trace), ALLIUM_U8(string), ALLIUM_U8(integer), ALLIUM_U8(floating_point),
             ALLIUM_U8(typealias), ALLIUM_U8(variant), ALLIUM_U8(align), ALLIUM_U8(callsite), ALLIUM_U8(id),
             ALLIUM_U8(timestamp));
ALLIUM_EVENT(shop, large, ALLIUM_STR(head, 4000), ALLIUM_U8(n), ALLIUM_STR(tail, 79));
ALLIUM_SPAN(shop, parse, ALLIUM_U64(bytes));

#ifdef __cplusplus
extern "C" {
#endif
void other_events(void);
#ifdef __cplusplus
}
#endif

#endif
