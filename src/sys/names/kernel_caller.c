/* SPDX-License-Identifier: BSD-2-Clause */
#include "sys/names/kernel_caller.h"

#include <string.h>

#include "base/mem.h"
#include "model/profile/wrappers.h"
#include "sys/resolver.h"

bool kernel_caller_is_helper(struct sys_session *s, uint64_t address)
{
    struct buf b = BUF_INIT;
    if (resolver_kernel_is_bpf(s->names, address))
        return true;
    resolver_add_kernel_function(s->names, &b, address);
    char *function = mem_strndup(buf_str(&b), strcspn(buf_str(&b), " "));
    bool helper = s->settings.helpers && wrappers_have(s->settings.helpers, function);
    free(function);
    buf_release(&b);
    return helper;
}

void kernel_caller_name(struct sys_session *s, struct table *t, uint32_t column, int stack)
{
    uint64_t frames[SYS_STACK_DEPTH];
    const char *name = t->columns[column].name;
    unsigned n = sys_stack_frames(s, stack, frames), i = 0;
    while (i + 1 < n && kernel_caller_is_helper(s, frames[i]))
        i++;
    if (!n) {
        const char *loss = sys_stack_loss(stack);
        char *text = loss ? mem_strndup(loss, strcspn(loss, "\n")) : mem_strdup("[no stack]");
        table_text(t, column, text);
        free(text);
    } else if (!strcmp(name, "function")) {
        resolver_kernel_function(s, t, column, frames[i]);
    } else if (!strcmp(name, "file")) {
        resolver_kernel_file(s, t, column, frames[i]);
    } else {
        resolver_kernel_directory(s, t, column, frames[i]);
    }
}
