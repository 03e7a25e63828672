/* SPDX-License-Identifier: BSD-2-Clause */
#include "view/formats/proto.h"

enum wire { VARINT = 0, LENGTH = 2 };

static void add_varint(struct buf *b, uint64_t value)
{
    for (; value >= 0x80; value >>= 7)
        buf_addch(b, (char)(value | 0x80));
    buf_addch(b, (char)value);
}

static void add_tag(struct buf *b, uint32_t field, enum wire wire)
{
    add_varint(b, (uint64_t)field << 3 | wire);
}

void proto_number(struct buf *b, uint32_t field, uint64_t value)
{
    if (!value)
        return;
    add_tag(b, field, VARINT);
    add_varint(b, value);
}

void proto_bytes(struct buf *b, uint32_t field, const void *bytes, size_t len)
{
    add_tag(b, field, LENGTH);
    add_varint(b, len);
    buf_add(b, bytes, len);
}

void proto_message(struct buf *b, uint32_t field, struct buf *m)
{
    proto_bytes(b, field, buf_str(m), m->len);
    buf_reset(m);
}

void proto_numbers(struct buf *b, uint32_t field, const uint64_t *values, size_t n)
{
    struct buf packed = BUF_INIT;
    for (size_t i = 0; i < n; i++)
        add_varint(&packed, values[i]);
    if (n)
        proto_message(b, field, &packed);
    buf_release(&packed);
}
