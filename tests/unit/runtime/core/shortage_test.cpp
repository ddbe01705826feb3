// How a process ends that finds no memory or no thread where nobody catches it.
#include "runtime/core/shortage.hpp"

#include <gtest/gtest.h>
#include <signal.h>

#include <cerrno>
#include <new>
#include <stdexcept>
#include <system_error>
#include <thread>

namespace troupe::core {
namespace {

using testing::ExitedWithCode;
using testing::KilledBySignal;

template <class Thrown>
void throw_on_a_thread(const Thrown& thrown) {
  end_for_want_on_terminate();
  std::thread([&thrown] { throw thrown; }).join();
}

}  // namespace

TEST(Shortage, AnExceptionThatNobodyCatchesEndsWithCodeThree) {
  EXPECT_EXIT(throw_on_a_thread(std::bad_alloc()), ExitedWithCode(3),
              "^error: out of memory\n  hint: raise `ulimit -v`[^\n]*\n$");
  EXPECT_EXIT(throw_on_a_thread(std::system_error(EAGAIN, std::system_category())),
              ExitedWithCode(3), "^error: Resource temporarily unavailable\n  hint: no thread");
  EXPECT_EXIT(throw_on_a_thread(std::system_error(EMFILE, std::generic_category())),
              ExitedWithCode(3), "ulimit -n");
}

TEST(Shortage, ABugStillAborts) {
  EXPECT_EXIT(throw_on_a_thread(std::runtime_error("of no limit")), KilledBySignal(SIGABRT),
              "of no limit");
}

}  // namespace troupe::core
