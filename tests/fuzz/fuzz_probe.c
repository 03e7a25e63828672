/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Fuzz target of src/symbol/probe: whatever a file says of static probes, their texts lie in it; an operand that is
 * read is one that can be recorded; and the place of a probe lies in the function, and is what it is said to be. The
 * first byte says what the rest is: 'o', operands; 'p', code; else an ELF file, with that byte.
 */
#include "require.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "symbol/probe/probe_place.h"
#include "symbol/probe/static_probe.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void read_operands(const uint8_t *data, size_t size)
{
    char *text = mem_strndup((const char *)data, size);
    struct static_operand found[STATIC_PROBE_OPERANDS];
    const char *bad;
    size_t len;
    const int n = static_operands_parse(text, found, &bad, &len);
    require(bad >= text && bad + len <= text + strlen(text), "the rest is elsewhere");
    require(n >= -1 && n <= (int)STATIC_PROBE_OPERANDS, "%d operands", n);
    for (int i = 0; i < n; i++) {
        const struct static_operand *o = &found[i];
        require(o->bytes == 1 || o->bytes == 2 || o->bytes == 4 || o->bytes == 8, "%d bytes", o->bytes);
        require(o->base >= -1 && o->base < 20 && o->index >= -1 && o->index < 20, "no register");
        require(o->place != STATIC_REGISTER || o->base >= 0, "a register without one");
        require(o->index < 0 || o->scale, "an index without a scale");
    }
    free(text);
}

static void choose_place(const uint8_t *code, size_t size)
{
    if (size < 2)
        return;
    const size_t entry = code[0] % (size - 1), bytes = size - 1;
    const struct probe_place p = probe_place_choose(code + 1, bytes, entry, code[0] / 8);
    require(entry + p.after < bytes && p.after < 64, "outside");
    const struct probe_place there = probe_place_at(code + 1 + entry + p.after, bytes - entry - p.after);
    require(there.kind == p.kind && !strcmp(there.instruction, p.instruction), "another instruction");
    require(!p.after || p.kind != PROBE_PLACE_STEPPED, "for nothing");
}

struct file {
    size_t size;
    unsigned probes;
};

static void take_probe(void *arg, const struct static_probe *p)
{
    struct file *f = arg;
    require(strlen(p->provider) + strlen(p->name) + strlen(p->operands) + 3 <= f->size,
            "longer than the file");
    f->probes++;
}

static void read_file(const uint8_t *data, size_t size)
{
    struct file f = {.size = size};
    char *copy = mem_alloc(size);
    memcpy(copy, data, size);
    elf_version(EV_CURRENT);
    Elf *elf = elf_memory(copy, size);
    if (elf && elf_kind(elf) == ELF_K_ELF)
        static_probes_read(elf, take_probe, &f);
    elf_end(elf);
    free(copy);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size && data[0] == 'o')
        read_operands(data + 1, size - 1);
    else if (size && data[0] == 'p')
        choose_place(data + 1, size - 1);
    else if (size)
        read_file(data, size);
    return 0;
}
