/* SPDX-License-Identifier: BSD-2-Clause */
#include "collect/trace/kernel_rings.h"

#include "base/sigsafe/atomic.h"

#define PAGE_BYTES       4096u
#define PACKETS          32u
#define PACKET_BYTES_MAX (256u << 10)

static uint64_t page_up(uint64_t bytes)
{
    return (bytes + PAGE_BYTES - 1) & ~(uint64_t)(PAGE_BYTES - 1);
}

void kernel_rings_plan(struct kernel_rings *r, uint32_t cpus, uint64_t ring_bytes, bool overwrites)
{
    const uint64_t part = ring_bytes / PACKETS;
    *r = (struct kernel_rings){
        .cpus = cpus, .rings = 2 * cpus, .overwrites = overwrites, .ring_bytes = ring_bytes};
    r->packet_bytes = part < RING_PACKET_BYTES_MIN ? RING_PACKET_BYTES_MIN
                      : part > PACKET_BYTES_MAX    ? PACKET_BYTES_MAX
                                                   : part;
    r->read_at = sizeof(struct ring_header) + (r->rings + 1ull) * sizeof(struct ring_cpu) +
                 RING_ANCHORS * sizeof(struct ring_anchor); /* of which there are none */
    r->data_at = page_up(r->read_at + r->rings * sizeof(uint64_t));
    /* a page more: the verifier does not see that no event goes beyond its ring */
    r->bytes = r->data_at + r->rings * ring_bytes + PAGE_BYTES;
    r->mapped_bytes = r->data_at + (r->rings + 1ull) * ring_bytes;
}

struct ring_cpu *kernel_rings_control(void *array, uint32_t ring)
{
    return (struct ring_cpu *)((struct ring_header *)array + 1) + ring;
}

void kernel_rings_took(const struct kernel_rings *r, void *array, uint32_t ring, uint64_t position)
{
    store_release((uint64_t *)((char *)array + r->read_at) + ring, position);
}

void kernel_rings_begin(const struct kernel_rings *r, void *array)
{
    struct ring_header *h = array;
    for (uint32_t ring = 0; ring < r->rings; ring++) {
        struct ring_cpu *c = kernel_rings_control(array, ring);
        c->head = ring_first_head(r->ring_bytes);
        c->ready_bytes = r->ring_bytes;
        kernel_rings_took(r, array, ring, r->ring_bytes / 8);
    }
    *h = (struct ring_header){.version = RING_VERSION,
                              .cpus = r->rings,
                              .packet_bytes = r->packet_bytes,
                              .ring_bytes = r->ring_bytes,
                              .data_at = r->data_at,
                              .overwrites = r->overwrites};
    store_release(&h->magic, RING_MAGIC);
}
