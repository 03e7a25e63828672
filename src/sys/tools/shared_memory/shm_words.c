/* SPDX-License-Identifier: BSD-2-Clause */
#include "sys/tools/shared_memory/shm_words.h"

#include "bpf/shmsnoop.h"
#include "sys/call_words.h"

#define HUGE_SHIFT 26 /* from here on: the logarithm of the size of huge pages */

/* Flags, and the size of huge pages behind them, which `huge` asks for: "SHM_HUGETLB|SHM_HUGE_2MB". */
static void add_with_huge(struct buf *b, uint32_t flags, const struct call_word *words, uint32_t huge,
                          const char *prefix)
{
    const uint32_t shift = flags & huge ? flags >> HUGE_SHIFT : 0;
    call_words_add(b, shift ? flags & ((1u << HUGE_SHIFT) - 1) : flags, words);
    if (shift >= 30)
        buf_printf(b, "|%s_HUGE_%uGB", prefix, 1u << (shift - 30));
    else if (shift >= 20)
        buf_printf(b, "|%s_HUGE_%uMB", prefix, 1u << (shift - 20));
    else if (shift)
        buf_printf(b, "|%s_HUGE_SHIFT=%u", prefix, shift);
}

static void add_open(struct buf *b, uint32_t flags)
{
    static const struct call_word words[] = {
        {0100, "O_CREAT"},        {0200, "O_EXCL"},         {0400, "O_NOCTTY"},
        {01000, "O_TRUNC"},       {02000, "O_APPEND"},      {04000, "O_NONBLOCK"},
        {04010000, "O_SYNC"},     {010000, "O_DSYNC"},      {020000, "O_ASYNC"},
        {040000, "O_DIRECT"},     {0100000, "O_LARGEFILE"}, {020200000, "O_TMPFILE"},
        {0200000, "O_DIRECTORY"}, {0400000, "O_NOFOLLOW"},  {01000000, "O_NOATIME"},
        {02000000, "O_CLOEXEC"},  {010000000, "O_PATH"},    {0, NULL}};
    static const char *const access[] = {"O_RDONLY", "O_WRONLY", "O_RDWR", "3"};
    buf_addstr(b, access[flags & 3]);
    if (flags & ~3u) {
        buf_addstr(b, "|");
        call_words_add(b, flags & ~3u, words);
    }
}

void shm_words_flags(struct buf *b, uint32_t call, uint32_t flags)
{
    static const struct call_word shmget[] = {{01000, "IPC_CREAT"},
                                              {02000, "IPC_EXCL"},
                                              {04000, "SHM_HUGETLB"},
                                              {010000, "SHM_NORESERVE"},
                                              {0, NULL}};
    static const struct call_word shmat[] = {
        {010000, "SHM_RDONLY"}, {020000, "SHM_RND"}, {040000, "SHM_REMAP"}, {0100000, "SHM_EXEC"}, {0, NULL}};
    static const struct call_word memfd[] = {{1, "MFD_CLOEXEC"}, {2, "MFD_ALLOW_SEALING"},
                                             {4, "MFD_HUGETLB"}, {8, "MFD_NOEXEC_SEAL"},
                                             {16, "MFD_EXEC"},   {0, NULL}};
    static const struct call_word unlinkat[] = {{0x200, "AT_REMOVEDIR"}, {0, NULL}};
    switch (call) {
    case SHMSNOOP_shmget:
        add_with_huge(b, flags & ~0777u, shmget, 04000, "SHM");
        break;
    case SHMSNOOP_shmat:
        call_words_add(b, flags, shmat);
        break;
    case SHMSNOOP_mmap:
        call_words_mmap(b, flags);
        break;
    case SHMSNOOP_memfd_create:
        add_with_huge(b, flags, memfd, 4, "MFD");
        break;
    case SHMSNOOP_unlinkat:
        call_words_add(b, flags, unlinkat);
        break;
    case SHMSNOOP_open:
    case SHMSNOOP_creat:
    case SHMSNOOP_openat:
    case SHMSNOOP_openat2:
        add_open(b, flags);
        break;
    default:
        break;
    }
}

void shm_words_command(struct buf *b, uint32_t command)
{
    static const char *const words[] = {
        [0] = "IPC_RMID",    [1] = "IPC_SET",   [2] = "IPC_STAT",  [3] = "IPC_INFO",     [11] = "SHM_LOCK",
        [12] = "SHM_UNLOCK", [13] = "SHM_STAT", [14] = "SHM_INFO", [15] = "SHM_STAT_ANY"};
    if (command < sizeof(words) / sizeof(*words) && words[command])
        buf_addstr(b, words[command]);
    else
        buf_printf(b, "%u", command);
}

void shm_words_key(struct buf *b, int32_t key)
{
    if (key)
        buf_printf(b, "0x%08x", (uint32_t)key);
    else
        buf_addstr(b, "IPC_PRIVATE");
}
