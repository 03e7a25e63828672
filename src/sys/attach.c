/* SPDX-License-Identifier: BSD-2-Clause */
#include "sys/attach.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/buf.h"
#include "sys/attach_methods.h"
#include "sys/bpf_object.h"
#include "sys/live_objects.h"
#include "sys/names/cgroups_gone.h"
#include "sys/perf_programs.h"
#include "sys/privileges.h"

#define KERNEL_BTF     "/sys/kernel/btf/vmlinux"
#define LOG_LINE_MOST  300u
#define LOG_BYTES_MOST 65536u

/* What the loader complains of; libbpf hands its messages to one function for all. */
static struct buf loader_words = BUF_INIT;

static int hear_loader(enum libbpf_print_level level, const char *fmt, va_list args)
{
    char *text = NULL;
    if (level == LIBBPF_DEBUG || loader_words.len > LOG_BYTES_MOST || vasprintf(&text, fmt, args) < 0)
        return 0;
    size_t len = strlen(text), skip = len > LOG_BYTES_MOST ? len - LOG_BYTES_MOST : 0;
    buf_addstr(&loader_words, text + skip); /* a verifier's log says at its end why */
    free(text);
    return 0;
}

/* The line of the loader's words that says most: the verifier's last, or the first complaint. */
static void add_reason(struct buf *why, int error)
{
    const char *text = buf_str(&loader_words), *line = text, *best = NULL;
    size_t best_len = 0;
    while (*line) {
        size_t len = strcspn(line, "\n");
        bool counts = len && *line != ';' && !(*line >= '0' && *line <= '9') && /* the verifier's trace */
                      strncmp(line, "processed ", 10) && strncmp(line, "-- ", 3) &&
                      !memmem(line, len, "ulimit -l", 9) && !memmem(line, len, "failed to load", 14) &&
                      !memmem(line, len, "-- BEGIN", 8) && !memmem(line, len, "-- END", 6);
        if (counts)
            best = line, best_len = len;
        line += len + (line[len] == '\n');
    }
    if (best && !strncmp(best, "libbpf: ", 8))
        best += 8, best_len -= 8;
    buf_printf(why, "%s", strerror(-error));
    if (best)
        buf_printf(why, ": %.*s", (int)(best_len < LOG_LINE_MOST ? best_len : LOG_LINE_MOST), best);
}

/* Programs of this method are loaded, no others. False: its arguments are others here. */
static bool choose_programs(struct sys_session *s, const struct sys_attach_method *method,
                            const struct btf *kernel, struct buf *why)
{
    struct bpf_program *p;
    bpf_object__for_each_program(p, s->object) bpf_program__set_autoload(p, false);
    for (const struct sys_attachment *a = method->attach; a->program; a++) {
        if (a->if_type && btf__find_by_name_kind(kernel, a->if_type, BTF_KIND_STRUCT) < 0)
            continue;
        if (a->tracepoint && !attach_method_arguments_fit(kernel, a->tracepoint, a->arguments, why))
            return false;
        p = bpf_object__find_program_by_name(s->object, a->program);
        if (!p) {
            buf_printf(why, "the object has no program %s", a->program);
            return false;
        }
        if (!attach_method_program_fits(kernel, p, why))
            return false;
        bpf_program__set_autoload(p, true);
    }
    cgroups_gone_choose(s, kernel);
    return true;
}

/* One program, to what its section names, or to perf's events. 0 or -errno. */
static int attach_program(struct sys_session *s, struct bpf_program *p,
                          const struct sys_attach_method *method)
{
    for (const struct sys_attachment *a = method->attach; a->program; a++)
        if (!strcmp(a->program, bpf_program__name(p)) && (a->software_event || a->by_hand))
            return a->by_hand ? 0 : perf_attach(s, p, a->software_event);
    struct bpf_link *link = bpf_program__attach(p);
    if (!link)
        return -errno;
    *vec_push(&s->links) = link;
    return 0;
}

/* The loader looks for the numbers of tracepoints there. */
static bool has_tracefs(void)
{
    return !access("/sys/kernel/tracing/events", F_OK) || !access("/sys/kernel/debug/tracing/events", F_OK);
}

static int attach_programs(struct sys_session *s, const struct sys_attach_method *method, struct buf *why)
{
    struct bpf_program *p;
    bpf_object__for_each_program(p, s->object)
    {
        int error = bpf_program__autoload(p) ? attach_program(s, p, method) : 0;
        if (error) {
            buf_printf(why, "%s: ", bpf_program__section_name(p));
            if (error == -ENOENT && !has_tracefs())
                buf_addstr(why, "tracefs is not mounted: mount -t tracefs tracefs /sys/kernel/tracing");
            else
                add_reason(why, error);
            return error;
        }
    }
    return 0;
}

/* What the method cannot show on this kernel. */
static void add_lacking(struct sys_session *s, const struct sys_attach_method *method,
                        const struct btf *kernel)
{
    const struct sys_without *w = method->without;
    buf_reset(&s->lacks);
    s->lacking = method->lacking;
    if (method->lacks)
        buf_addstr(&s->lacks, method->lacks);
    if (w && !attach_method_has_member(kernel, w->type, w->member)) {
        buf_printf(&s->lacks, "%s%s", s->lacks.len ? "; " : "", w->lacks);
        s->lacking |= w->lacking;
    }
}

/* Loads and attaches the programs of one method. 0, or -errno with the reason. */
static int try_method(struct sys_session *s, const struct sys_attach_method *method, const struct btf *kernel,
                      const struct buf *bytes, struct buf *why, struct error *e)
{
    LIBBPF_OPTS(bpf_object_open_opts, open, .object_name = s->tool->name);
    buf_reset(&loader_words);
    /* What the kernel has not is looked for in modules' types, too, which takes CAP_SYS_ADMIN, unless they are
     * given. */
    if (!privileges_all())
        open.btf_custom_path = KERNEL_BTF;
    s->object = bpf_object__open_mem(buf_str(bytes), bytes->len, &open);
    if (!s->object) {
        int error = -errno;
        add_reason(why, error);
        return error;
    }
    int error = choose_programs(s, method, kernel, why) ? 0 : -EOPNOTSUPP;
    if (error)
        goto out;
    add_lacking(s, method, kernel);
    bpf_object_size_maps(s);
    struct sys_config *config = sys_variable(s, "config", sizeof(*config));
    *config = s->settings.config;
    config->casts = btf__find_by_name_kind(kernel, "bpf_rdonly_cast", BTF_KIND_FUNC) > 0;
    error = s->tool->live ? live_objects_ready(s, e) : 0;
    if (!error && s->tool->ready)
        error = s->tool->ready(s, e);
    if (error) {
        buf_addstr(why, e->text);
        if (error != -EINVAL) /* another way may do what this one cannot */
            *e = (struct error){""};
        goto out;
    }
    error = bpf_object__load(s->object);
    if (error)
        add_reason(why, error);
    else
        error = attach_programs(s, method, why);
out:
    if (error) {
        sys_stop(s);
        bpf_object_close(s);
    }
    return error;
}

/* "perf, tp: why; raw_tp: another why": what several ways lack is told once. */
static void add_refusals(const struct sys_session *s, struct buf *b)
{
    vec_each (const struct sys_refusal, r, &s->refused) {
        const struct sys_refusal *first = s->refused.at;
        while (strcmp(first->why, r->why))
            first++;
        if (first != r)
            continue;
        buf_printf(b, "%s%s", b->len ? "; " : "", r->method->name);
        for (const struct sys_refusal *same = r + 1; same < s->refused.at + s->refused.len; same++)
            if (!strcmp(same->why, r->why))
                buf_printf(b, ", %s", same->method->name);
        buf_printf(b, ": %s", r->why);
    }
}

static int fail_all(struct sys_session *s, int error, struct error *e)
{
    struct buf b = BUF_INIT, called = BUF_INIT;
    if (s->tool->called)
        buf_addstr(&called, s->tool->called);
    else
        sys_tool_add_words(&called, s->tool->name, strlen(s->tool->name));
    add_refusals(s, &b);
    struct buf missing = BUF_INIT;
    privileges_missing(&missing);
    /* EACCES is how the verifier refuses, and of one method that is asked for EPERM says nothing about the others. */
    if (missing.len || (error == -EPERM && !s->settings.method)) {
        if (missing.len)
            error_set(e, EPERM, "%s lacks %s: run it as root (sudo)", buf_str(&called), buf_str(&missing));
        else
            error_set(e, EPERM, "%s may not load BPF programs here, a policy of this machine forbids it: %s",
                      buf_str(&called), buf_str(&b));
        error = -EPERM;
    } else {
        error =
            error_set(e, EOPNOTSUPP, "%s cannot attach to this kernel: %s", buf_str(&called), buf_str(&b));
    }
    buf_release(&missing);
    buf_release(&called);
    buf_release(&b);
    return error;
}

/* One name may stand for several methods, of several kernels: what all of them meet is told once. */
static void refuse(struct sys_session *s, const struct sys_attach_method *method, struct buf *why)
{
    vec_each (const struct sys_refusal, r, &s->refused)
        if (!strcmp(r->method->name, method->name) && !strcmp(r->why, buf_str(why))) {
            buf_release(why);
            return;
        }
    *vec_push(&s->refused) = (struct sys_refusal){method, buf_detach(why)};
}

static int find_method(struct sys_session *s, const struct btf *kernel, const struct buf *bytes,
                       struct error *e)
{
    int error = -EOPNOTSUPP;
    bool known = false;
    for (const struct sys_attach_method *r = s->tool->methods; r->name; r++) {
        if (s->settings.method && strcmp(r->name, s->settings.method))
            continue;
        known = true;
        struct buf why = BUF_INIT;
        error = try_method(s, r, kernel, bytes, &why, e);
        if (!error) {
            s->method = r;
            buf_release(&why);
            return 0;
        }
        refuse(s, r, &why);
        if (error == -EINVAL &&
            *e->text) /* ready() said so: what was asked for makes no sense on any method */
            return error;
    }
    if (!known) {
        struct buf b = BUF_INIT;
        for (const struct sys_attach_method *r = s->tool->methods; r->name; r++)
            if (r == s->tool->methods || strcmp(r[-1].name, r->name))
                buf_printf(&b, "%s%s", b.len ? ", " : "", r->name);
        struct buf words = BUF_INIT;
        sys_tool_add_words(&words, s->tool->name, strlen(s->tool->name));
        error = error_set(e, EINVAL, "unknown --attach of %s: %s: use %s", buf_str(&words),
                          s->settings.method, buf_str(&b));
        buf_release(&words);
        buf_release(&b);
        return error;
    }
    return fail_all(s, error, e);
}

int attach_by_best_method(struct sys_session *s, struct error *e)
{
    struct buf bytes = BUF_INIT;
    libbpf_set_print(hear_loader); /* before anything is asked of it */
    struct btf *kernel = btf__load_vmlinux_btf();
    int error = kernel ? bpf_object_inflate(s->tool->object, *s->tool->object_bytes, &bytes) : 0;
    if (!kernel)
        error = error_set(e, EOPNOTSUPP,
                          "this kernel has no BTF (/sys/kernel/btf/vmlinux): use a kernel with "
                          "CONFIG_DEBUG_INFO_BTF, which all distributions have set since 2021");
    else if (error)
        error_set(e, -error, "the BPF programs of %s are damaged in this allium: install it again",
                  s->tool->name);
    else
        error = find_method(s, kernel, &bytes, e);
    btf__free(kernel);
    buf_release(&bytes);
    return error;
}
