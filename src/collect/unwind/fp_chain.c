/* SPDX-License-Identifier: BSD-2-Clause */
#include "collect/unwind/fp_chain.h"

/* Returns FP_CHAIN_WHOLE if rbp leads from this frame to its caller, else the reason why it does not. */
static enum fp_chain_end judge(const struct fp_chain_frame *frame)
{
    if (!frame->file)
        return FP_CHAIN_NO_FILE;
    switch (dso_step(frame->file, frame->address)) {
    case DSO_BY_RBP:
        return FP_CHAIN_WHOLE;
    case DSO_NO_RULES:
        return FP_CHAIN_NO_RULES;
    case DSO_OTHERWISE:
        break;
    }
    return FP_CHAIN_NO_FRAME_POINTER;
}

size_t fp_chain_trusted(const struct fp_chain_frame *frames, size_t n, enum fp_chain_end *why)
{
    enum fp_chain_end end = FP_CHAIN_WHOLE;
    size_t trusted = n ? 1 : 0;
    for (; trusted < n; trusted++) {
        end = judge(&frames[trusted - 1]);
        if (end != FP_CHAIN_WHOLE)
            break;
    }
    if (why)
        *why = end;
    return trusted;
}
