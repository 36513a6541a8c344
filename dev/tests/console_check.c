// SPDX-License-Identifier: GPL-2.0
/*
 * console_check: runs many commands in one boot, in the way in which trapless-init runs the job. Each command prints LENGTH
 * bytes and ends.
 *
 *	console_check LENGTH...		LENGTH: a number, or FIRST-LAST
 *
 * After the output of each command comes a line with the way in which it ended, its length and its exit status.
 * test_console.py checks the output.
 */
#include <termios.h>

#define main init_main
#include "trapless-init.c"
#undef main

#define MOST 65536

static char self[4096];

/* Print letters that identify their position, in one line: with several lines, Linux would send between the writes. */
static void text(char *to, int length)
{
	for (int at = 0; at < length; at++)
		to[at] = 'a' + (length + at) % 26;
}

static int command(const char *way, int length)
{
	static char bytes[MOST];

	text(bytes, length);
	if (!strcmp(way, "exit"))
		return fwrite(bytes, 1, length, stdout) != (size_t)length;
	if (!strcmp(way, "stopped"))
		tcflow(1, TCOOFF);
	if (write(1, bytes, length) != length)
		return 1;
	if (!strcmp(way, "kill"))
		kill(getpid(), SIGKILL);
	if (!strcmp(way, "exec"))
		execl(self, self, "command", "exit", "0", NULL);
	_exit(0);
}

static void run_all(char *const lengths[])
{
	static const char *const ways[] = { "exit", "_exit", "kill", "exec" };

	for (; *lengths; lengths++) {
		int first = 0, last = 0;

		if (sscanf(*lengths, "%d-%d", &first, &last) < 2)
			last = first;
		for (int length = first; length <= last; length++) {
			for (int way = 0; way < 4; way++) {
				char number[16];
				char *const argv[] = { self, "command", (char *)ways[way], number, NULL };

				snprintf(number, sizeof(number), "%d", length);
				int status = run("/", argv);
				drain_console();
				dprintf(1, "\n# %s %d %d\n", ways[way], length, status);
				drain_console();
			}
		}
	}
}

int main(int argc, char *argv[])
{
	if (readlink("/proc/self/exe", self, sizeof(self) - 1) < 0)
		return 1;
	if (argc == 4 && !strcmp(argv[1], "command"))
		return command(argv[2], atoi(argv[3]));

	/* A separate process, because it must be able to lead a session. Like init it has the console's own file. */
	pid_t child = fork();
	if (!child) {
		int console = open("/dev/console", O_RDWR | O_NOCTTY);
		for (int standard = 0; console >= 0 && standard < 3; standard++)
			dup2(console, standard);
		run_all(argv + 1);
		_exit(console < 0);
	}
	int status = 1;
	return child < 0 || waitpid(child, &status, 0) < 0 || status;
}
