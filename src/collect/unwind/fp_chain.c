/* SPDX-License-Identifier: BSD-2-Clause */
#include "collect/unwind/fp_chain.h"

/* May the step from this frame to its caller be made by rbp? */
static enum chain_end judge(const struct chain_frame *frame)
{
    if (!frame->file)
        return CHAIN_NO_FILE;
    switch (codefile_step(frame->file, frame->address)) {
    case CODEFILE_BY_RBP:
        return CHAIN_WHOLE;
    case CODEFILE_NO_RULES:
        return CHAIN_NO_RULES;
    case CODEFILE_OTHERWISE:
        break;
    }
    return CHAIN_NO_FRAME_POINTER;
}

size_t chain_trusted(const struct chain_frame *frames, size_t n, enum chain_end *why)
{
    enum chain_end end = CHAIN_WHOLE;
    size_t trusted = n ? 1 : 0;
    for (; trusted < n; trusted++) {
        end = judge(&frames[trusted - 1]);
        if (end != CHAIN_WHOLE)
            break;
    }
    if (why)
        *why = end;
    return trusted;
}
