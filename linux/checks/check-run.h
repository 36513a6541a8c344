/* SPDX-License-Identifier: GPL-2.0 */
/* What runs the tests of a guest program, each as a separate process. */
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

/* The kernel, or what it runs on, lacks what the test is about. */
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
 * Run the tests that @names names, or all that are not optional, each for at most
 * @limit_s seconds; print a line for each and a closing one. @after, told whether
 * a test was content, sees to what is left of it; an error goes to why. The exit
 * status.
 */
int run_tests(const struct test *tests, size_t count, char **names, unsigned limit_s, bool (*after)(bool ok));

/* Write a setting of the kernel's: true if it took all of it. */
bool put_text(const char *file, const char *text);

/* A line of /proc/vmstat, or -1. */
long vmstat(const char *name);

#endif /* CHECK_RUN_H */
