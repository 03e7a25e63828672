/* SPDX-License-Identifier: BSD-2-Clause */
#include "view/profile/run_json.h"

#include <signal.h>
#include <sys/wait.h>

#include "view/profile/common.h"
#include "view/profile/report_json_parts.h"

#define VERSION 2

static void write_end(struct json *j, int status)
{
    struct buf name = BUF_INIT;
    const char *signal = WIFSIGNALED(status) ? sigabbrev_np(WTERMSIG(status)) : NULL;
    buf_printf(&name, "SIG%s", signal ? signal : "RTMIN+");
    if (!signal && WIFSIGNALED(status))
        buf_printf(&name, "%d", WTERMSIG(status) - SIGRTMIN);
    common_whole_or_null(j, "exit_status", WIFEXITED(status), (uint64_t)WEXITSTATUS(status));
    json_text(j, "signal", WIFSIGNALED(status) ? buf_str(&name) : NULL);
    buf_release(&name);
}

void run_json_write(struct sink *out, const struct profile *p, const struct run_json_options *o)
{
    const struct rollup_options by_owner = {.group = ROLLUP_BY_OWNER, .sort = ROLLUP_SORT_PEAK};
    struct profile_summary f = profile_summary_of(p);
    struct rollup *r = rollup_new(p, &by_owner);
    struct rollup_values total = r->total;
    struct json j = {.out = out};
    if (f.main_image == PROFILE_NONE && !f.period_high)
        total.unknown = ~0u; /* there is no upper bound for unobserved memory */
    json_open(&j, NULL, '{');
    json_text(&j, "schema", "allium-run");
    json_whole(&j, "version", VERSION);
    json_text(&j, "command", o->command);
    write_end(&j, o->wait_status);
    json_text(&j, "recording", o->recording);
    json_flag(&j, "exact", profile_summary_exact(&f));
    common_periods_json(&j, p, &f);
    json_whole(&j, "observed_ns", f.observed_ns);
    report_json_values(&j, "total", &total);
    json_open(&j, "processes", '[');
    vec_each (const struct profile_image, i, &p->images)
        report_json_image(&j, p, i);
    json_close(&j, ']');
    report_json_whole(&j, p, &f);
    json_close(&j, '}');
    rollup_free(r);
}
