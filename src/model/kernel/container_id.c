/* SPDX-License-Identifier: BSD-2-Clause */
#include "model/kernel/container_id.h"

#include <ctype.h>
#include <string.h>

#define ID_DIGITS    64 /* of SHA-256, lower case */
#define SHORT_DIGITS 12

/* One folder of a path: text[0..len). */
struct part {
    const char *text;
    size_t len;
};

static bool begins(struct part p, const char *with)
{
    size_t len = strlen(with);
    return p.len >= len && !memcmp(p.text, with, len);
}

static bool is(struct part p, const char *word)
{
    return p.len == strlen(word) && begins(p, word);
}

static struct part without_end(struct part p, const char *end)
{
    size_t len = strlen(end);
    if (p.len > len && !memcmp(p.text + p.len - len, end, len))
        p.len -= len;
    return p;
}

static bool ends(struct part p, const char *end)
{
    return without_end(p, end).len < p.len;
}

static bool are_digits(const char *text, size_t len)
{
    for (size_t i = 0; i < len; i++)
        if (!isdigit((unsigned char)text[i]) && (text[i] < 'a' || text[i] > 'f'))
            return false;
    return true;
}

/* Takes the id from "ID", "docker-ID.scope", "cri-containerd-ID.scope" or "kubepods-….slice:cri-containerd:ID".
 * Returns false for other names, and for "libpod-conmon-ID": this is podman's monitor, which runs outside the
 * container. */
static bool take_id(struct part p, char *out)
{
    p = without_end(p, ".scope");
    if (p.len < ID_DIGITS || !are_digits(p.text + p.len - ID_DIGITS, ID_DIGITS))
        return false;
    struct part head = {p.text, p.len - ID_DIGITS};
    if (head.len && head.text[head.len - 1] != '-' && head.text[head.len - 1] != ':')
        return false;
    if (ends(head, "conmon-"))
        return false;
    memcpy(out, p.text + head.len, SHORT_DIGITS);
    out[SHORT_DIGITS] = '\0';
    return true;
}

/* systemd writes "-" within a name as \x2d. */
static bool take_name(struct part p, char *out)
{
    size_t n = 0;
    if (!p.len)
        return false;
    for (size_t i = 0; i < p.len && n + 1 < CONTAINER_ID_BYTES; i++) {
        char c = p.text[i];
        if (c == '\\' && p.len - i > 3 && p.text[i + 1] == 'x' && are_digits(p.text + i + 2, 2)) {
            unsigned high = (unsigned char)p.text[i + 2], low = (unsigned char)p.text[i + 3];
            c = (char)((isdigit((int)high) ? high - '0' : high - 'a' + 10) << 4 |
                       (isdigit((int)low) ? low - '0' : low - 'a' + 10));
            i += 3;
        }
        out[n++] = iscntrl((unsigned char)c) ? '?' : c;
    }
    out[n] = '\0';
    return true;
}

static struct part behind(struct part p, const char *head)
{
    size_t len = strlen(head);
    return begins(p, head) ? (struct part){p.text + len, p.len - len} : (struct part){p.text, 0};
}

static bool take_part(struct part before, struct part p, char *out)
{
    if (take_id(p, out))
        return true;
    if (is(before, "lxc") || is(before, "lxc.payload"))
        return take_name(p, out);
    if (begins(p, "machine-") && ends(p, ".scope"))
        return take_name(behind(without_end(p, ".scope"), "machine-"), out);
    if (begins(p, "systemd-nspawn@") && ends(p, ".service"))
        return take_name(behind(without_end(p, ".service"), "systemd-nspawn@"), out);
    return take_name(behind(p, "lxc.payload."), out);
}

bool container_id_of(const char *path, char out[static CONTAINER_ID_BYTES])
{
    struct part before = {path, 0};
    bool found = false;
    out[0] = '\0';
    for (const char *at = path + strspn(path, "/"); *at; at += strspn(at, "/")) {
        struct part p = {at, strcspn(at, "/")};
        found |= take_part(before, p, out);
        before = p;
        at += p.len;
    }
    return found;
}
