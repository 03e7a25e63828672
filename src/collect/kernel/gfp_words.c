/* SPDX-License-Identifier: BSD-2-Clause */
#include "collect/kernel/gfp_words.h"

#include <string.h>
#include <unistd.h>

#include <bpf/btf.h>

#include "base/read_file.h"
#include "collect/kernel/mounts.h"

#define VMLINUX_BTF      "/sys/kernel/btf/vmlinux"
#define FORMAT_BYTES_MAX (1u << 20)

void gfp_words_release(struct gfp_words *w)
{
    gfp_release(&w->gfp);
    *w = (struct gfp_words){.gfp_from = GFP_WORDS_NONE};
}

/* ---- BTF ---- */

static void read_btf(struct gfp_bits *bits)
{
    struct btf *btf = btf__parse(VMLINUX_BTF, NULL);
    for (unsigned id = 1, n = btf ? btf__type_cnt(btf) : 0; id < n; id++) {
        const struct btf_type *type = btf__type_by_id(btf, id);
        const struct btf_enum *value = btf_enum(type);
        for (unsigned i = 0; btf_is_enum(type) && i < btf_vlen(type); i++) {
            const char *word = btf__name_by_offset(btf, value[i].name_off);
            if (word && value[i].val >= 0)
                gfp_bits_add(bits, word, (uint64_t)value[i].val);
        }
    }
    btf__free(btf);
}

/* ---- tracefs ---- */

static bool has_events(const char *folder)
{
    struct buf path = BUF_INIT;
    buf_printf(&path, "%s/events", folder);
    bool has = access(buf_str(&path), R_OK | X_OK) == 0;
    buf_release(&path);
    return has;
}

bool gfp_words_tracefs(struct buf *out)
{
    struct mounts mounts;
    mounts_read(&mounts);
    bool found = false;
    vec_each (const struct mount, m, &mounts.all) {
        found = !strcmp(m->type, "tracefs") && has_events(m->point);
        if (found) {
            buf_addstr(out, m->point);
            break;
        }
    }
    /* debugfs mounts tracefs there by itself, but only when the folder is accessed. */
    if (!found && (found = has_events("/sys/kernel/debug/tracing")))
        buf_addstr(out, "/sys/kernel/debug/tracing");
    mounts_release(&mounts);
    return found;
}

static bool read_format(struct gfp_words *w, const struct gfp_bits *bits)
{
    struct buf path = BUF_INIT, text = BUF_INIT;
    bool done = gfp_words_tracefs(&path);
    buf_addstr(&path, "/events/kmem/kmalloc/format");
    done = done && !file_read(buf_str(&path), FORMAT_BYTES_MAX, &text) &&
           !gfp_from_format(&w->gfp, buf_str(&text), bits);
    buf_release(&path);
    buf_release(&text);
    return done;
}

void gfp_words_read(struct gfp_words *w)
{
    struct gfp_bits bits = {0};
    *w = (struct gfp_words){.gfp_from = GFP_WORDS_NONE};
    read_btf(&bits);
    if (read_format(w, &bits))
        w->gfp_from = GFP_WORDS_FORMAT;
    else if (!gfp_from_bits(&w->gfp, &bits))
        w->gfp_from = GFP_WORDS_BTF;
    vec_release(&bits);
}
