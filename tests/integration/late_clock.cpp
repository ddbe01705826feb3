// Preloaded into a process: its wall clock is an hour ahead of everybody else's.
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

extern "C" int clock_gettime(clockid_t clock, timespec* time) noexcept {
  const auto status = static_cast<int>(::syscall(SYS_clock_gettime, clock, time));
  if (status == 0 && clock == CLOCK_REALTIME) time->tv_sec += 3600;
  return status;
}
