/* A wall clock that a test steps, loaded by LD_PRELOAD. It shows true time plus the offset in the file SHARED, such as -1h, +10y or
   +2.5 seconds. Monotonic time stays true. Postgres reads the time in signal handlers, and tests kill processes at any line, so a
   call neither allocates nor locks. */

#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

#define SECOND 1000000000LL

/* The offset in nanoseconds. If the file cannot be opened, the last call's offset is used. */
static long long offset(void)
{
	static volatile long long last;
	char text[64], *unit;
	int before = errno, file = open(SHARED, O_RDONLY | O_CLOEXEC);
	ssize_t length = file < 0 ? -1 : read(file, text, sizeof text - 1);

	if (file >= 0)
		close(file);
	errno = before;
	if (length > 0) {
		text[length] = 0;
		double number = strtod(text, &unit) * SECOND;
		switch (*unit) {
		case 'y': number *= 365;   /* fall through */
		case 'd': number *= 24;    /* fall through */
		case 'h': number *= 60;    /* fall through */
		case 'm': number *= 60;
		}
		last = number;
	}
	return last;
}

int clock_gettime(clockid_t clock, struct timespec *shown)
{
	int failed = syscall(SYS_clock_gettime, clock, shown);

	if (!failed && (clock == CLOCK_REALTIME || clock == CLOCK_REALTIME_COARSE)) {
		long long now = shown->tv_sec * SECOND + shown->tv_nsec + offset();
		shown->tv_sec = now / SECOND;
		shown->tv_nsec = now % SECOND;
	}
	return failed;
}

int gettimeofday(struct timeval *restrict shown, void *restrict zone)
{
	struct timespec now;

	(void) zone;
	clock_gettime(CLOCK_REALTIME, &now);
	shown->tv_sec = now.tv_sec;
	shown->tv_usec = now.tv_nsec / 1000;
	return 0;
}

time_t time(time_t *shown)
{
	struct timespec now;

	clock_gettime(CLOCK_REALTIME, &now);
	if (shown)
		*shown = now.tv_sec;
	return now.tv_sec;
}
