// What becomes of the threads of coroutines when the system has too few.
#include "runtime/async/io_threads.hpp"

#include <gtest/gtest.h>
#include <sys/resource.h>
#include <unistd.h>

#include <fstream>
#include <system_error>

namespace troupe::async {
namespace {

// Asks for many under a limit on address space that takes two or three. Ends the process.
[[noreturn]] void start_too_many() {
  constexpr std::size_t kStack = std::size_t{8} << 20;
  ::alarm(20);  // a test can fail, not hang
  std::size_t pages = 0;
  std::ifstream("/proc/self/statm") >> pages;
  const rlimit stack{kStack, kStack};
  ::setrlimit(RLIMIT_STACK, &stack);
  const rlim_t bytes = pages * static_cast<std::size_t>(::sysconf(_SC_PAGESIZE)) + 3 * kStack;
  const rlimit space{bytes, bytes};
  ::setrlimit(RLIMIT_AS, &space);
  try {
    const IoThreads io(16);
  } catch (const std::system_error&) {
    ::_exit(3);
  }
  ::_exit(0);
}

}  // namespace

#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
TEST(IoThreads, TooFewThreadsAreAnErrorAndNoneIsLeftBehind) {
  EXPECT_EXIT(start_too_many(), ::testing::ExitedWithCode(3), "");
}
#endif

}  // namespace troupe::async
