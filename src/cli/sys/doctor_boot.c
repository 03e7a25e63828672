/* SPDX-License-Identifier: BSD-2-Clause */
#include "cli/sys/doctor_boot.h"

#include <inttypes.h>
#include <stdio.h>
#include <sys/sysinfo.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/units.h"
#include "cli/command.h"
#include "collect/kernel/slabinfo.h"
#include "collect/kernel/trace/kmem_format.h"
#include "collect/kernel/trace/trace_instance.h"
#include "model/kernel/boot_parameters.h"
#include "view/text/sink.h"
#include "view/text/text.h"

/* Exists if the kernel can keep who allocated each object (CONFIG_SLUB_DEBUG). */
#define KEEPS_USERS "/sys/kernel/slab/kmalloc-64/store_user"

/* "SYSTEM:EVENT", if this kernel has it. */
static void add_event(struct buf *b, int tracefs_fd, const char *system, const char *event)
{
    char path[96];
    snprintf(path, sizeof(path), "events/%s/%s", system, event);
    if (!faccessat(tracefs_fd, path, F_OK, 0))
        buf_printf(b, "%s%s:%s", b->len ? "," : "", system, event);
}

static struct boot_machine read_machine(void)
{
    struct sysinfo memory = {.totalram = 0};
    struct slab_caches caches = {.bad_lines = 0};
    struct error ignored;
    struct boot_machine m = {.cpus = (uint32_t)sysconf(_SC_NPROCESSORS_CONF)};
    if (!sysinfo(&memory))
        m.memory_bytes = (uint64_t)memory.totalram * memory.mem_unit;
    if (!slab_read(&caches, "", &ignored))
        vec_each (const struct slab_cache, c, &caches.all)
            m.objects += c->active;
    slab_release(&caches);
    return m;
}

static void write_reasons(struct sink *out, const struct boot_machine *m, uint32_t mib)
{
    char all[UNITS_TEXT_BYTES], memory[UNITS_TEXT_BYTES];
    struct buf events = BUF_INIT, objects = BUF_INIT;
    const uint64_t bytes = (uint64_t)mib << 20;
    text_add_number(&events, bytes / BOOT_PARAMETERS_EVENT_BYTES, "event");
    text_add_number(&objects, m->objects, "object");
    sink_printf(
        out,
        "trace_event    all allocations and frees of kernel objects, and the names of threads\n"
        "trace_buf_size the buffer of each CPU. In all %s of %s until the next boot, for which an %uth of\n"
        "               the memory is allowed. One CPU's holds some %s; the kernel has %s now.\n",
        units_format_size(all, (double)bytes * m->cpus), units_format_size(memory, (double)m->memory_bytes),
        BOOT_PARAMETERS_SHARE, buf_str(&events),
        m->objects ? buf_str(&objects) : "an unknown number of objects");
    sink_text(
        out,
        "trace_clock    one time for all CPUs, without steps while the kernel selects its clock\n"
        "trace_options  nooverwrite: if a buffer is too small, events of the end are lost, and not those of "
        "the\n"
        "               beginning\n");
    buf_release(&events);
    buf_release(&objects);
}

static void write_choices(struct sink *out)
{
    sink_text(out, "\nOptionally:\n\n");
    if (!access(KEEPS_USERS, F_OK))
        sink_text(
            out,
            "  slub_debug=U\n\n"
            "The kernel then keeps who allocated each object, also before the first event: objects that are "
            "older\nthan the trace get stacks. Objects become larger, and similar caches are not "
            "merged.\n\n");
    sink_text(out, "  trace_options=nooverwrite,nohash-ptr\n\n"
                   "Only if the trace is read as text (cat /sys/kernel/tracing/trace) and imported "
                   "elsewhere: text hides "
                   "the\naddresses of objects else. `allium sys import --boot` does not need it.\n"
                   "\nAfter the boot, as root:\n\n  allium sys import --boot -o boot.allium\n");
}

int doctor_boot(void)
{
    struct trace_instance top;
    struct error e = {""};
    if (trace_instance_open_top(&top, &e))
        return command_fail(EXIT_IMPOSSIBLE, "%s", e.text);
    struct sink out = sink_to_file(stdout);
    struct buf events = BUF_INIT;
    const struct boot_machine m = read_machine();
    const uint32_t mib = boot_parameters_buffer_mib(&m);
    for (size_t i = 0; kmem_format_events[i]; i++)
        add_event(&events, top.tracefs_fd, "kmem", kmem_format_events[i]);
    add_event(&events, top.tracefs_fd, "task", "task_rename");
    add_event(&events, top.tracefs_fd, "task", "task_newtask");
    trace_instance_remove(&top);
    sink_printf(&out,
                "Add to the kernel's command line (in Debian: GRUB_CMDLINE_LINUX in /etc/default/grub, then "
                "update-grub):\n\n"
                "  trace_event=%s trace_buf_size=%uM trace_clock=global trace_options=nooverwrite\n\n",
                buf_str(&events), mib);
    write_reasons(&out, &m, mib);
    write_choices(&out);
    buf_release(&events);
    return command_written(&out, EXIT_DONE);
}
