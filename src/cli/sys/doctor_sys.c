/* SPDX-License-Identifier: BSD-2-Clause */
#include "cli/sys/doctor_sys.h"

#include <string.h>
#include <sys/utsname.h>

#include "cli/sys/sys_vmlinux.h"
#include "sys/privileges.h"
#include "sys/session.h"
#include "sys/tested_kernels.h"

#define ADVICE_METHODS "a kernel with BTF (CONFIG_DEBUG_INFO_BTF) and tracepoints would help"

/* What a way to attach takes of the kernel; NULL: nothing that a user could change. */
static const char *takes(const char *method)
{
    if (!strcmp(method, "fentry") || !strcmp(method, "fexit"))
        return "a kernel with CONFIG_FUNCTION_TRACER and CONFIG_DYNAMIC_FTRACE_WITH_DIRECT_CALLS";
    if (!strcmp(method, "kprobe"))
        return "a kernel with CONFIG_KPROBES and CONFIG_KPROBE_EVENTS";
    return NULL;
}

/* Why the better attach methods do not work here, and what would help. */
static void add_refusals(const struct sys_session *s, struct buf *advice)
{
    vec_each (const struct sys_refusal, r, &s->refused) {
        buf_printf(advice, "%snot %s: %s", advice->len ? "; " : "", r->method->name, r->why);
        if (takes(r->method->name))
            buf_printf(advice, "; %s would help", takes(r->method->name));
    }
}

typedef bool (*add_fn)(struct table *t, const char *what, bool works, const char *found, const char *advice);

static void check_tool(struct table *t, const struct sys_tool *tool, add_fn add)
{
    struct sys_settings settings = {{0}};
    struct sys_session *s;
    struct error e = {""};
    struct buf what = BUF_INIT, found = BUF_INIT, advice = BUF_INIT;
    bool works = !sys_open(&s, tool, &settings, &e);
    buf_printf(&what, "sys %s", tool->name);
    if (works) {
        buf_printf(&found, "%s", s->method->name);
        if (s->lacks.len)
            buf_printf(&found, " (cannot show %s)", buf_str(&s->lacks));
        add_refusals(s, &advice);
    } else {
        buf_addstr(&found, e.text);
        buf_addstr(&advice, ADVICE_METHODS);
    }
    add(t, buf_str(&what), works, buf_str(&found), advice.len ? buf_str(&advice) : NULL);
    buf_release(&advice);
    sys_close(s);
    buf_release(&what);
    buf_release(&found);
}

static void check_kernel(struct table *t, add_fn add)
{
    struct utsname name;
    struct buf found = BUF_INIT;
    uname(&name);
    bool tested = kernels_tested(name.release);
    buf_printf(&found, "%s, %s", name.release,
               tested ? "tested" : "untested: tested versions are " KERNELS_TESTED);
    add(t, "kernel", true, buf_str(&found), NULL);
    buf_release(&found);
}

static void check_source(struct table *t, add_fn add)
{
    struct vmlinux v;
    struct buf advice = BUF_INIT;
    vmlinux_seek(&v, "");
    if (!v.path) {
        buf_addstr(&advice, "for files and lines of the kernel (sys kmem --by file, --lines): ");
        sys_vmlinux_add_advice(&advice);
    }
    add(t, "kernel source", v.path, v.path ? v.path : "no vmlinux with debug information",
        advice.len ? buf_str(&advice) : NULL);
    vmlinux_release(&v);
    buf_release(&advice);
}

void doctor_sys(struct table *t, add_fn add)
{
    check_kernel(t, add);
    check_source(t, add);
    struct buf missing = BUF_INIT;
    privileges_missing(&missing);
    if (missing.len) {
        struct buf found = BUF_INIT;
        buf_printf(&found, "no %s", buf_str(&missing));
        add(t, "sys", false, buf_str(&found),
            "`allium sys` observes the machine: run it, and doctor, as root");
        buf_release(&found);
    } else {
        for (const struct sys_tool *const *tool = sys_tools; *tool; tool++)
            check_tool(t, *tool, add);
    }
    buf_release(&missing);
}
