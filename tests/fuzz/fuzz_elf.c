/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Fuzz target of src/collect/tags_elf: whatever an ELF file says, each tag found lies in its section, has texts that
 * end within the file's bytes, and no more tags are found than there is room for.
 */
#include "require.h"

#include <stdint.h>
#include <string.h>

#include <gelf.h>

#include "allium/tag.h"
#include "base/mem.h"
#include "collect/accounts/tags_file.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* With its NUL, in one of the sections, as a file's name may be anywhere; or the constant that stands for none. */
static bool is_text(Elf *elf, const char *text)
{
    for (Elf_Scn *scn = NULL; (scn = elf_nextscn(elf, scn));) {
        const Elf_Data *d = elf_rawdata(scn, NULL);
        const char *bytes = d ? d->d_buf : NULL;
        if (bytes && text >= bytes && text < bytes + d->d_size &&
            memchr(text, '\0', d->d_size - (size_t)(text - bytes)))
            return true;
    }
    return !*text;
}

static void check_tags(const struct tags_file *f, size_t size)
{
    size_t sections = 0;
    elf_getshdrnum(f->elf, &sections);
    require(f->tags.len, "no tags, and no error");
    require(sections && f->tags.len / sections <= size / sizeof(struct allium_tag), "more tags than fit");
    vec_each (const struct tags_file_tag, t, &f->tags)
        require(is_text(f->elf, t->class) && is_text(f->elf, t->name) && is_text(f->elf, t->file),
                "a text that goes on behind its section");
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct tags_file f;
    struct error e = {""};
    char *copy = mem_alloc(size + 1);
    memcpy(copy, data, size);
    elf_version(EV_CURRENT);
    int bad = tags_file_read(&f, elf_memory(copy, size), "file", &e);
    require(!bad == !e.text[0], "an error without words, or words without an error");
    require(!strchr(e.text, '\n'), "words of several lines");
    if (!bad)
        check_tags(&f, size);
    tags_file_release(&f);
    free(copy);
    return 0;
}
