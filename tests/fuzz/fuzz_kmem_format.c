/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Fuzz target of src/collect/kernel/trace/{kmem_format,task_format}: with the formats of a kernel, whatever a record
 * says, what is found in it lies in it. The input is records, each behind its length in a byte.
 */
#include "require.h"

#include "base/buf.h"
#include "base/read_file.h"
#include "collect/kernel/trace/kmem_format.h"
#include "collect/kernel/trace/page_format.h"
#include "collect/kernel/trace/task_format.h"

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void add(struct kmem_format *f, const char *name, bool is_stack)
{
    char path[512];
    struct buf text = BUF_INIT;
    snprintf(path, sizeof(path), "%s/%s-6.18.format", getenv("FORMATS"), name);
    require(!file_read(path, 1 << 20, &text), "no %s", path);
    require(!(is_stack ? kmem_format_add_stack(f, buf_str(&text), text.len, NULL)
                       : kmem_format_add(f, name, buf_str(&text), text.len, NULL)),
            "the format of %s is not known", name);
    buf_release(&text);
}

static struct task_format *tasks;
static struct page_format *pages;

static void add_pages(void)
{
    static const char alloc[] = "name: mm_page_alloc\nID: 302\nformat:\n"
                                "\tfield:unsigned short common_type;\toffset:0;\tsize:2;\tsigned:0;\n"
                                "\tfield:unsigned char common_flags;\toffset:2;\tsize:1;\tsigned:0;\n"
                                "\tfield:int common_pid;\toffset:4;\tsize:4;\tsigned:1;\n\n"
                                "\tfield:unsigned long pfn;\toffset:8;\tsize:8;\tsigned:0;\n"
                                "\tfield:unsigned int order;\toffset:16;\tsize:4;\tsigned:0;\n"
                                "\tfield:unsigned long gfp_flags;\toffset:24;\tsize:8;\tsigned:0;\n"
                                "\tfield:int migratetype;\toffset:32;\tsize:4;\tsigned:1;\n\n"
                                "print fmt: \"%d\", REC->order\n";
    pages = page_format_new();
    require(!page_format_add(pages, PAGE_EVENT_ALLOC, alloc, sizeof(alloc) - 1, NULL),
            "the format of mm_page_alloc is not known");
    require(page_format_add(pages, PAGE_EVENT_FREE, "name: x\n", 8, NULL), "a format of nothing");
}

static struct kmem_format *formats(void)
{
    static struct kmem_format *f;
    if (f)
        return f;
    f = kmem_format_new();
    for (size_t k = 0; k < KMEM_FORMAT_REQUIRED; k++)
        add(f, kmem_format_events[k], false);
    add(f, "kernel_stack", true);
    static const char task[] =
        "name: task_rename\nID: 300\nformat:\n"
        "\tfield:unsigned short common_type;\toffset:0;\tsize:2;\tsigned:0;\n\n"
        "\tfield:pid_t pid;\toffset:8;\tsize:4;\tsigned:1;\n"
        "\tfield:char newcomm[16];\toffset:12;\tsize:16;\tsigned:0;\n\nprint fmt: \"%d\", "
        "REC->pid\n";
    static const char moved[] = "name: cgroup_attach_task\nID: 301\nformat:\n"
                                "\tfield:unsigned short common_type;\toffset:0;\tsize:2;\tsigned:0;\n\n"
                                "\tfield:int dst_root;\toffset:8;\tsize:4;\tsigned:1;\n"
                                "\tfield:int pid;\toffset:12;\tsize:4;\tsigned:1;\n"
                                "\tfield:__data_loc char[] "
                                "dst_path;\toffset:16;\tsize:4;\tsigned:0;\n\nprint fmt: \"%d\", REC->pid\n";
    add_pages();
    tasks = task_format_new();
    require(!task_format_add(tasks, TASK_RENAMED, task, sizeof(task) - 1, NULL),
            "the format of task_rename is not known");
    require(!task_format_add(tasks, TASK_MOVED, moved, sizeof(moved) - 1, NULL),
            "the format of cgroup_attach_task is not known");
    return f;
}

static uint64_t read_record(const uint8_t *data, uint32_t bytes)
{
    uint64_t sum = 0;
    formats();
    struct kmem_event event;
    struct kmem_stack stack;
    struct task_event task;
    struct page_event page;
    if (page_format_decode(pages, data, bytes, &page) > 0)
        require(page.kind == PAGE_EVENT_ALLOC && bytes >= 36, "pages of a record that is too short");
    if (kmem_format_decode(formats(), data, bytes, &event) > 0) {
        const char *cache = event.cache;
        require(!*cache ||
                    (cache >= (const char *)data && cache + strlen(cache) < (const char *)data + bytes),
                "a name outside the record");
        require(event.kind == KMEM_EVENT_ALLOC || !event.allocated_bytes, "a free that allocates");
    }
    if (kmem_format_stack(formats(), data, bytes, &stack) > 0)
        for (uint32_t k = 0; k < 8 * stack.n; k++)
            sum += stack.callers[k];
    if (task_format_decode(tasks, data, bytes, &task) > 0)
        for (uint32_t k = 0; k < task.text_bytes; k++)
            sum += (uint8_t)task.text[k];
    return sum;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    uint64_t sum = 0;
    while (size) {
        const uint32_t bytes = *data < size ? *data : (uint32_t)size - 1;
        uint8_t *record = malloc(bytes + !bytes); /* the end is where the sanitizer sees it */
        memcpy(record, data + 1, bytes);
        sum += read_record(record, bytes);
        free(record);
        data += 1 + bytes;
        size -= 1 + bytes;
    }
    return sum == UINT64_MAX;
}
