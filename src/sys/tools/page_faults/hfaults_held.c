/* SPDX-License-Identifier: BSD-2-Clause */
#include "sys/tools/page_faults/hfaults_held.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/read_file.h"
#include "collect/kernel/proc_text.h"

#define TEXT_BYTES_MAX (1u << 20)

bool huge_splits_read(struct huge_splits *out)
{
    struct buf text = BUF_INIT;
    char line[PROC_TEXT_BYTES];
    unsigned found = 0;
    if (!file_read("/proc/vmstat", TEXT_BYTES_MAX, &text))
        for (const char *at = buf_str(&text); proc_text_next(&at, line);)
            found += proc_text_value(line, "thp_split_page", &out->pages) ||
                     proc_text_value(line, "thp_split_pmd", &out->mappings);
    buf_release(&text);
    return found == 2;
}

bool huge_hugetlb_read(uint32_t pid, uint64_t *bytes)
{
    struct buf text = BUF_INIT;
    char path[64], line[PROC_TEXT_BYTES];
    bool found = false;
    snprintf(path, sizeof(path), "/proc/%u/status", pid);
    if (!file_read(path, TEXT_BYTES_MAX, &text))
        for (const char *at = buf_str(&text); !found && proc_text_next(&at, line);)
            found = proc_text_value(line, "HugetlbPages", bytes);
    buf_release(&text);
    return found;
}

uint32_t huge_order_read(void)
{
    struct buf text = BUF_INIT;
    uint64_t bytes = 0, page = (uint64_t)sysconf(_SC_PAGESIZE);
    uint32_t order = 0;
    if (!file_read("/sys/kernel/mm/transparent_hugepage/hpage_pmd_size", 64, &text))
        bytes = strtoull(buf_str(&text), NULL, 10);
    buf_release(&text);
    for (; page && page < bytes; page <<= 1)
        order++;
    return order;
}

const char *huge_result_words(const char *name)
{
    static const struct {
        const char *name, *words;
    } known[] = {
        {"fail", "failed"},
        {"succeed", "collapsed"},
        {"pmd_null", "nothing is mapped there"},
        {"pmd_none", "nothing is mapped there any more"},
        {"pmd_mapped", "a huge page already"},
        {"exceed_none_pte", "too many pages not touched yet"},
        {"exceed_swap_pte", "too many pages swapped out"},
        {"exceed_shared_pte", "too many pages shared"},
        {"pte_non_present", "a page is not present"},
        {"pte_uffd_wp", "a page is write-protected by userfaultfd"},
        {"pte_mapped_hugepage", "a huge page mapped in small parts"},
        {"page_ro", "no page is writable"},
        {"lack_referenced_page", "too few pages used lately"},
        {"page_null", "no page there"},
        {"scan_abort", "pages of a distant node"},
        {"page_count", "a page is in use by the kernel (pinned)"},
        {"page_lru", "a page is not on the LRU lists"},
        {"page_lock", "a page is locked"},
        {"page_anon", "a page is not anonymous"},
        {"page_compound", "a page is part of a larger one"},
        {"any_process", "the process is ending"},
        {"vma_null", "the mapping is gone"},
        {"vma_check", "the mapping may have no huge pages"},
        {"address_range", "the mapping is too small"},
        {"swap_cache_page", "a page is in the swap cache"},
        {"del_page_lru", "a page cannot leave the LRU lists"},
        {"alloc_huge_page_fail", "no free huge page"},
        {"cgroup_charge_fail", "no room in the cgroup"},
        {"truncated", "the file was truncated"},
        {"page_has_private", "a page's file system data cannot be released"},
        {"store_failed", "no memory for the page cache's tree"},
        {"copy_mc", "a page has a memory error"},
        {"page_filled", "another thread filled the range"},
    };
    for (size_t i = 0; i < sizeof(known) / sizeof(*known); i++)
        if (!strcmp(known[i].name, name))
            return known[i].words;
    return name;
}
