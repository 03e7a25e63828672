/* SPDX-License-Identifier: BSD-2-Clause */
#include "collect/kernel/state/boot_log.h"

#include <ctype.h>
#include <string.h>

#include "collect/kernel/proc_text.h"

#define BOOT_MOST_US UINT64_C(300000000) /* a log without the line that ends the boot */

/* The parts of a record "PRIORITY,NUMBER,MICROSECONDS,FLAGS;TEXT". Returns NULL for another line; else its text. */
static const char *take_head(const char *line, uint64_t *priority, uint64_t *number, uint64_t *boot_us)
{
    const char *at = line, *text = strchr(line, ';');
    if (*line == ' ' || !proc_text_number(&at, priority) || *at++ != ',' || !proc_text_number(&at, number) ||
        *at++ != ',' || !proc_text_number(&at, boot_us))
        return NULL;
    return text ? text + 1 : NULL;
}

/* Addresses of the kernel have 16 digits and begin with ffff. */
static void add_without_addresses(struct buf *out, const char *line)
{
    for (const char *at = line; *at;) {
        size_t digits = 0;
        while (isxdigit((unsigned char)at[digits]))
            digits++;
        if (digits == 16 && !strncmp(at, "ffff", 4))
            buf_addstr(out, "?");
        else
            buf_add(out, at, digits ? digits : 1);
        at += digits ? digits : 1;
    }
    buf_addch(out, '\n');
}

void boot_log_add(struct buf *out, const char *records)
{
    char line[PROC_TEXT_BYTES];
    uint64_t priority, number, boot_us;
    while (proc_text_next(&records, line)) {
        const char *text = take_head(line, &priority, &number, &boot_us);
        if (!text || priority >> 3) /* a line of a record's fields; a record that a program wrote */
            continue;
        if (boot_us > BOOT_MOST_US)
            return;
        add_without_addresses(out, line);
        if (!strncmp(text, "Run /", 5) && strstr(text, " as init process"))
            return;
    }
}

/* ---- parsing ---- */

/* Reads the number behind a word of the line. */
static bool number_behind(const char *text, const char *word, uint64_t *value)
{
    const char *at = strstr(text, word);
    if (!at)
        return false;
    at += strlen(word);
    return proc_text_number(&at, value) && *value <= UINT64_C(1) << 46;
}

/* As above, of mebibytes. */
static bool mebibytes_behind(const char *text, const char *word, uint64_t *bytes)
{
    if (!number_behind(text, word, bytes) || *bytes > UINT64_C(1) << 26)
        return false;
    *bytes <<= 20;
    return true;
}

static void set_figure(struct advice_figure *f, uint64_t value)
{
    *f = (struct advice_figure){true, value};
}

/* "Dentry cache hash table entries: 4194304 (order: 13, 33554432 bytes, linear)" */
static bool take_table(struct advice_input *in, const char *text)
{
    static const char words[] = " hash table entries: ";
    const char *end = strstr(text, words), *open = end ? strchr(end, '(') : NULL;
    const char *bytes_at = open ? strstr(open, " bytes") : NULL;
    uint64_t entries, bytes;
    if (!bytes_at || end == text || !number_behind(end, words, &entries) || !entries)
        return false;
    while (bytes_at > open && isdigit((unsigned char)bytes_at[-1]))
        bytes_at--;
    if (!proc_text_number(&bytes_at, &bytes) || bytes > UINT64_C(1) << 46 || bytes < entries)
        return false;
    *vec_push(&in->tables) = (struct advice_table){
        .name = mem_strndup(text, (size_t)(end - text)), .entries = entries, .bytes = bytes};
    return true;
}

/*
 * "printk: log_buf_len: 1048576 bytes" is a buffer that was made at boot; since 6.13 this is "printk: log buffer data +
 * meta data: 131072 + 458752 = 589824 bytes", which stands for the one of the kernel's image, too. "printk: early log
 * buf free: 124536(95%)" follows if another one was made. What it was before: "printk: log_buf_len min size: 262144
 * bytes".
 */
static bool take_log(struct advice_input *in, const char *text)
{
    uint64_t value, whole;
    if (number_behind(text, "log_buf_len: ", &value)) {
        set_figure(&in->log_data, value);
        set_figure(&in->log_whole, value + value / 32 * 112);
        in->log_allocated = true;
    } else if (number_behind(text, "log buffer data + meta data: ", &value) &&
               number_behind(text, "= ", &whole)) {
        set_figure(&in->log_data, value);
        set_figure(&in->log_whole, whole > value ? whole : value);
    } else if (number_behind(text, "log_buf_len min size: ", &value)) {
        set_figure(&in->log_static, value);
    } else if (strstr(text, "early log buf free: ")) {
        in->log_allocated = true;
    } else {
        return false;
    }
    return true;
}

/*
 * "Reserving 256MB of memory at 2752MB for crashkernel (System RAM: 8191MB)" up to 6.9, "crashkernel reserved:
 * 0x00000000ac000000 - 0x00000000bc000000 (256 MB)" since; "software IO TLB: mapped [mem 0x...-0x...] (64MB)";
 * "kfence: initialized - using 2097152 bytes for 255 objects at 0x...-0x...".
 */
static bool take_reservation(struct advice_input *in, const char *text)
{
    const char *open = strrchr(text, '(');
    uint64_t bytes, objects;
    if (strstr(text, "for crashkernel") && mebibytes_behind(text, "Reserving ", &bytes))
        set_figure(&in->crash_bytes, bytes);
    else if (!strncmp(text, "crashkernel reserved: ", 22) && open && mebibytes_behind(open, "(", &bytes))
        set_figure(&in->crash_bytes, bytes);
    else if (strstr(text, "software IO TLB: mapped ") && open && mebibytes_behind(open, "(", &bytes))
        set_figure(&in->swiotlb_bytes, bytes);
    else if (number_behind(text, "kfence: initialized - using ", &bytes) &&
             number_behind(text, " bytes for ", &objects) && objects <= bytes) {
        set_figure(&in->kfence_bytes, bytes);
        set_figure(&in->kfence_objects, objects);
    } else
        return false;
    return true;
}

void boot_log_parse(struct advice_input *in, const char *text)
{
    char line[PROC_TEXT_BYTES];
    uint64_t priority, number, boot_us, bytes = 0, cpus;
    bool from_the_first = false;
    while (proc_text_next(&text, line)) {
        const char *said = take_head(line, &priority, &number, &boot_us);
        if (!said)
            continue;
        in->has_log = true;
        from_the_first = from_the_first || !number;
        bytes += strlen(said);
        if (!strncmp(said, "SLUB: ", 6) && !in->cpus && number_behind(said, "CPUs=", &cpus) && cpus <= 65536)
            in->cpus = cpus;
        else if (!take_table(in, said) && !take_log(in, said))
            take_reservation(in, said);
    }
    if (from_the_first)
        set_figure(&in->log_boot, bytes);
}
