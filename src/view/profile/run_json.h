/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef VIEW_RUN_JSON_H
#define VIEW_RUN_JSON_H

/* The summary of `allium run` as JSON: schema "allium-run", see allium-json(5), which changes with this file. */

#include "model/profile/profile.h"
#include "view/text/sink.h"

struct run_json_options {
    int wait_status;       /* of the command, as wait(2) has it */
    const char *command;   /* the program, as it was written */
    const char *recording; /* NULL: none was kept */
};

void run_json_write(struct sink *out, const struct profile *p, const struct run_json_options *o);

#endif
