/* SPDX-License-Identifier: GPL-2.0 */
/* Runs the tests of a guest program, each in a separate process. */
#ifndef CHECK_RUN_H
#define CHECK_RUN_H

#define _GNU_SOURCE
#include <errno.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

#define PAGE 4096ul
#define WHY_MAX 256

extern const char *program;	/* for messages */
extern char *why;		/* what failed, or why the test was skipped */
extern bool *skipped;

#define CHECK(cond, ...) do {						\
	if (!(cond)) {							\
		snprintf(why, WHY_MAX, __VA_ARGS__);			\
		return false;						\
	}								\
} while (0)

/* The kernel or the machine lacks what the test needs. */
#define SKIP(...) do {							\
	snprintf(why, WHY_MAX, __VA_ARGS__);				\
	*skipped = true;						\
	return true;							\
} while (0)

struct test {
	const char *name;
	bool (*run)(void);
	bool optional;		/* runs only when named */
};

/*
 * Run the tests that @names lists, or all that are not optional, each for at most
 * @limit_s seconds. Print a line for each test and a summary. @after runs after each
 * test, with the test's result. It removes what the test has left, and may fail the
 * test: then it returns false, and the reason is in why. Return the exit status.
 */
int run_tests(const struct test *tests, size_t count, char **names, unsigned limit_s, bool (*after)(bool ok));

/* Write a text to a file of the kernel. True if the kernel took all of it. */
bool put_text(const char *file, const char *text);

/* The value of a line of /proc/vmstat, or -1. */
long vmstat(const char *name);

#endif /* CHECK_RUN_H */
