/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef STEP_SUBJECT_H
#define STEP_SUBJECT_H

/*
 * Code that test_step.c steps through, compiled once for each level of optimisation: SUBJECT is a suffix.
 */

#ifdef __cplusplus
extern "C" {
#endif

#define SUBJECTS(X) X(O0) X(O1) X(O2) X(O3) X(Os)

#define X(level)                                                                                             \
    int subject_c_##level(int n);                                                                            \
    int subject_cxx_##level(int n);
SUBJECTS(X)
#undef X

#ifdef __cplusplus
}
#endif

#endif
