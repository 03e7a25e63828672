/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Fuzz target of src/collect/kernel/trace/trace_pack and of copies of the kernel's files in kernel_state: whatever an
 * archive says, an error has a line, no text is larger than the archive may be, and the trace can be read.
 */
#include "require.h"

#include "collect/kernel/trace/trace_pack.h"

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check(struct trace_pack *p, size_t size)
{
    struct error e;
    char bytes[512];
    size_t n = 1, all = 0;
    while (p->trace && n && !packed_input_read(p->trace, bytes, sizeof(bytes), &n, &e))
        all += n;
    require(p->kallsyms.len <= size, "symbols that are not in the archive");
    vec_each (const struct kernel_text, text, &p->state.texts) {
        require(*text->path == '/' && kernel_state_text(&p->state, text->path), "a text without a name");
        all += strlen(buf_str(&text->text));
    }
    require(all < SIZE_MAX / 2, "more text than there can be");
}

/* A folder, once. */
static void open_folder(void)
{
    struct trace_pack p;
    struct error e;
    char folder[] = "/tmp/fuzz-XXXXXX", trace[32];
    require(mkdtemp(folder) != NULL, "no folder");
    require(!trace_pack_is_folder(folder) && trace_pack_open(&p, folder, &e), "a folder without a trace");
    trace_pack_release(&p);
    snprintf(trace, sizeof(trace), "%s/trace", folder);
    FILE *file = fopen(trace, "w");
    require(file && fputs("# tracer: nop\n", file) >= 0 && !fclose(file), "no file");
    require(trace_pack_is_folder(folder) && !trace_pack_open(&p, folder, &e), "a folder with a trace");
    check(&p, 0);
    trace_pack_release(&p);
    unlink(trace);
    rmdir(folder);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static bool opened;
    struct trace_pack p;
    struct packed_input *in;
    struct error e = {""};
    if (!opened)
        open_folder();
    opened = true;
    int fd = memfd_create("fuzz", MFD_CLOEXEC);
    require(fd >= 0 && write(fd, data, size) == (ssize_t)size && !lseek(fd, 0, SEEK_SET),
            "no file in memory");
    if (!packed_input_open_fd(&in, fd, "file", &e)) {
        int bad = trace_pack_read(&p, in, "file", &e);
        require(!bad == !*e.text, "an error without a line, or a line without an error");
        require(bad || p.trace, "no trace, and no error");
        check(&p, size);
        trace_pack_release(&p);
        packed_input_close(in);
    }
    return 0;
}
