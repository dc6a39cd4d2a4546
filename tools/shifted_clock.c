/*
 * Shifts the wall clock of a program and its children by SHIFTED_CLOCK_S seconds, for `make test-dates` (tools/other_dates.py).
 *
 *     cc -shared -fPIC -O2 -o shifted_clock.so shifted_clock.c -ldl
 *     SHIFTED_CLOCK_S=86400 LD_PRELOAD=./shifted_clock.so date
 *
 * The monotonic clocks, sleeps and the times of files are the kernel's own. Static programs (those written in Go) read
 * the kernel's wall clock, too. libfaketime does more, and in Debian 12 (0.9.10) fails every time.sleep of Python 3.11
 * when it leaves the monotonic clock alone (github.com/wolfcw/libfaketime/issues/426).
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdlib.h>
#include <sys/time.h>
#include <time.h>

static int (*real_clock_gettime)(clockid_t, struct timespec *);
static long shift_s;

__attribute__((constructor)) static void read_shift(void)
{
    const char *text = getenv("SHIFTED_CLOCK_S");
    shift_s = text == NULL ? 0 : strtol(text, NULL, 10);
    real_clock_gettime = dlsym(RTLD_NEXT, "clock_gettime");
}

int clock_gettime(clockid_t clock, struct timespec *at)
{
    if (real_clock_gettime == NULL) /* another library's constructor runs before ours */
        read_shift();
    int failed = real_clock_gettime(clock, at);
    if (failed == 0 && (clock == CLOCK_REALTIME || clock == CLOCK_REALTIME_COARSE))
        at->tv_sec += shift_s;
    return failed;
}

int gettimeofday(struct timeval *restrict at, void *restrict zone)
{
    struct timespec now;
    (void)zone;
    clock_gettime(CLOCK_REALTIME, &now);
    at->tv_sec = now.tv_sec;
    at->tv_usec = now.tv_nsec / 1000;
    return 0;
}

time_t time(time_t *at)
{
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    if (at != NULL)
        *at = now.tv_sec;
    return now.tv_sec;
}

int timespec_get(struct timespec *at, int base)
{
    return base == TIME_UTC && clock_gettime(CLOCK_REALTIME, at) == 0 ? base : 0;
}
