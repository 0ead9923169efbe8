/* Loaded into a redis-server (LD_PRELOAD): its clock of the day is off by what stands in a file, in microseconds. Its monotonic clock is left alone. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

static volatile int64_t *offset;

__attribute__((constructor)) static void open_offset(void) {
  const char *file = getenv("CLOCK_OFFSET_FILE");
  int opened = file ? open(file, O_RDONLY) : -1;
  if (opened < 0) return;
  void *mapped = mmap(NULL, sizeof *offset, PROT_READ, MAP_SHARED, opened, 0);
  close(opened);
  if (mapped != MAP_FAILED) offset = mapped;
}

static int64_t now_us(void) {
  static int (*real)(clockid_t, struct timespec *);
  if (!real) real = (int (*)(clockid_t, struct timespec *))dlsym(RTLD_NEXT, "clock_gettime");
  struct timespec now;
  real(CLOCK_REALTIME, &now);
  return (int64_t)now.tv_sec * 1000000 + now.tv_nsec / 1000 + (offset ? *offset : 0);
}

int clock_gettime(clockid_t id, struct timespec *result) {
  static int (*real)(clockid_t, struct timespec *);
  if (!real) real = (int (*)(clockid_t, struct timespec *))dlsym(RTLD_NEXT, "clock_gettime");
  if (id != CLOCK_REALTIME && id != CLOCK_REALTIME_COARSE) return real(id, result);
  int64_t now = now_us();
  result->tv_sec = now / 1000000;
  result->tv_nsec = now % 1000000 * 1000;
  return 0;
}

int gettimeofday(struct timeval *restrict result, void *restrict zone) {
  (void)zone;
  int64_t now = now_us();
  result->tv_sec = now / 1000000;
  result->tv_usec = now % 1000000;
  return 0;
}

time_t time(time_t *result) {
  time_t now = now_us() / 1000000;
  if (result) *result = now;
  return now;
}
