/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef MODEL_CALL_TREE_H
#define MODEL_CALL_TREE_H

/*
 * All stacks of a profile as one tree, from the outermost function down to the one that requests memory, with the
 * values of each stack where it ends: what flame graphs draw. Stacks of several processes begin with their process.
 *
 * Runs in: the tool. Threads: one at a time; the profile must not change while a tree of it is in use.
 * Owns: strings, frames, nodes and values, until call_tree_free().
 * Invariants: a node precedes all nodes below it, and these follow it without a gap, up to its `end`. Children are in
 * the order of their names, [rest] last; so trees of the same stacks have the same nodes, whatever their values are.
 * Node 0 is the root, which has no frame. Rows are in the order of their nodes, and their values add up to the rollups'
 * totals, but for what no sample shows.
 */

#include "base/hash_map.h"
#include "model/profile/rollup.h"

enum call_tree_kind {
    CALL_TREE_CODE,
    CALL_TREE_PROCESS, /* a process image */
    CALL_TREE_MARKER,  /* where a stack could not be followed, "[cut]"; and "[rest]", see call_tree_prune() */
};

/** A function; different frames of one name differ in module, file, or whether they are inlined. */
struct call_tree_frame {
    uint32_t function, module, file; /* numbers of strings; module and file: 0, "", if not known */
    enum call_tree_kind kind;
    bool inlined;  /* into the frame above */
    bool wrapper;  /* it only passes on requests, see wrappers.h */
    bool nameless; /* "libfoo.so+0x1234" */
};

struct call_tree_node {
    uint32_t parent; /* of the root: itself */
    uint32_t frame;  /* of the root: PROFILE_NONE */
    uint32_t line;   /* in the frame's file, of the call that goes down from here; 0: not known, or several */
    uint32_t end;    /* the first node behind those below this one */
};

/** Where a stack is in the tree. */
struct call_tree_place {
    uint32_t node;  /* where it ends */
    uint32_t line;  /* in the file of the site's frame: of the call; 0: not known */
    uint32_t site;  /* the node at or above it that requested the memory, behind wrappers */
    uint32_t owner; /* the node at or above it that is responsible, see frames_owner() */
};

/** What was allocated by one stack. */
struct call_tree_row {
    struct call_tree_place at;
    const struct rollup_values *values; /* belong to the tree */
};

struct call_tree {
    struct VEC(char *) strings; /* 0 is "" */
    struct VEC(struct call_tree_frame) frames;
    struct VEC(struct call_tree_node) nodes;
    struct VEC(struct call_tree_row) rows;
    uint32_t rest_frame;                      /* of [rest]; PROFILE_NONE: there is none */
    struct VEC(struct rollup *) rollups;      /* by stack; one for each process image */
    struct VEC(struct rollup_values *) rests; /* of rows that stand for several */
    struct map string_index;
    struct map place_index; /* by image << 32 | stack: a number in `places` */
    struct VEC(struct call_tree_place) places;
};

/** `like`: which cells and samples count, as in a rollup by stack. Never NULL. */
struct call_tree *call_tree_new(const struct profile *p, const struct rollup_options *like);
void call_tree_free(struct call_tree *t);

/**
 * Raises the weight of each node to its largest share of any metric, with all that is below it. Weights of trees that
 * have the same nodes can so be combined.
 */
void call_tree_weigh(const struct call_tree *t, double *weights);
/**
 * Keeps the root and the `most` heaviest other nodes. `weights`: by node; NULL: those of call_tree_weigh(). What is
 * removed below a kept node becomes one child of it, "[rest]", with the sum of all estimates.
 * Returns by how many nodes the tree has shrunk; [rest] is one, too.
 */
uint32_t call_tree_prune(struct call_tree *t, uint32_t most, const double *weights);

/**
 * Makes the values of each row `own` times what they were, and `factor` times those of `other`, a tree of the same
 * stacks that shares no object with this one; NULL: none.
 */
void call_tree_combine(struct call_tree *t, double own, const struct call_tree *other, double factor);

/* For call_tree_prune.c only: the number of a text; rows in the order of their places; the new numbers of nodes. */
uint32_t call_tree_string(struct call_tree *t, const char *text);
void call_tree_sort_rows(struct call_tree *t);
void call_tree_move_place(struct call_tree_place *at, const uint32_t *number);

/** Returns whether the node is a [rest]. */
static inline bool call_tree_is_rest(const struct call_tree *t, uint32_t node)
{
    return node && t->nodes.at[node].frame == t->rest_frame;
}

/**
 * Returns a row at the place of the cell's stack; PROFILE_NONE: the tree was made without it. If several rows are
 * there, which differ in nothing but addresses, it is the first one.
 */
uint32_t call_tree_row(const struct call_tree *t, const struct profile *p, uint32_t cell);

static inline const char *call_tree_text(const struct call_tree *t, uint32_t string)
{
    return t->strings.at[string];
}

#endif
