/* SPDX-License-Identifier: BSD-2-Clause */
#include "sys/tools/swap_areas.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/read_file.h"
#include "collect/kernel/proc_text.h"

#define TEXT_BYTES_MAX (1u << 20)

/* The kernel's number of a device, from that of user space. */
static uint32_t device_of(dev_t device)
{
    return (uint32_t)(major(device) << 20 | minor(device));
}

/* "../../devices/virtual/block/zram0": what a node of the device leads to in sysfs, whatever the node is called. */
static bool is_zram(dev_t device)
{
    char link[64], to[PATH_MAX] = "";
    snprintf(link, sizeof(link), "/sys/dev/block/%u:%u", major(device), minor(device));
    ssize_t len = readlink(link, to, sizeof(to) - 1);
    return len > 0 && strstr(to, "/zram");
}

static void add_area(struct swap_areas *a, const char *word)
{
    struct stat st;
    char *path = proc_text_unescape(word, strlen(word));
    if (stat(path, &st) || swap_areas_find(a, device_of(st.st_dev), st.st_ino)) {
        free(path);
        return;
    }
    *vec_push(&a->all) = (struct swap_area){.inode = st.st_ino,
                                            .device = device_of(st.st_dev),
                                            .is_zram = S_ISBLK(st.st_mode) && is_zram(st.st_rdev),
                                            .path = path};
}

void swap_areas_read(struct swap_areas *a)
{
    struct buf text = BUF_INIT;
    char line[PROC_TEXT_BYTES], path[PROC_TEXT_BYTES];
    file_read("/proc/swaps", TEXT_BYTES_MAX, &text);
    const char *next = buf_str(&text);
    proc_text_next(&next, line); /* the line of headings */
    while (proc_text_next(&next, line)) {
        const char *at = line;
        if (proc_text_word(&at, path, sizeof(path)))
            add_area(a, path);
    }
    buf_release(&text);
}

void swap_areas_release(struct swap_areas *a)
{
    vec_each (struct swap_area, area, &a->all)
        free(area->path);
    vec_release(&a->all);
}

const struct swap_area *swap_areas_find(const struct swap_areas *a, uint32_t device, uint64_t inode)
{
    vec_each (const struct swap_area, area, &a->all)
        if (area->inode == inode && area->device == device)
            return area;
    return NULL;
}

void swap_totals_read(struct swap_totals *t)
{
    struct buf text = BUF_INIT;
    char line[PROC_TEXT_BYTES];
    *t = (struct swap_totals){0};
    file_read("/proc/vmstat", TEXT_BYTES_MAX, &text);
    const char *next = buf_str(&text);
    while (proc_text_next(&next, line))
        if (!proc_text_value(line, "pswpin", &t->device) && !proc_text_value(line, "zswpin", &t->zswap) &&
            !proc_text_value(line, "swpin_zero", &t->zero))
            proc_text_value(line, "swap_ra", &t->read_ahead);
    buf_release(&text);
}
