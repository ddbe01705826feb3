// What a process and its children print, kept by another process.
#include "apps/session/node/output_keeper.hpp"

#include "actors/limits.hpp"
#include "tests/unit/runtime/store/temp_folder.hpp"

#include <gtest/gtest.h>
#include <sched.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <fstream>
#include <functional>
#include <sstream>

namespace troupe::app {
namespace {

class OutputKeeperTest : public testing::Test {
 protected:
  // Runs `work` in a process whose output is kept; returns the log once its keeper has ended.
  std::string kept(const std::function<void()>& work) {
    const pid_t pid = ::fork();
    if (pid == 0) {
      keep_output_in(log_);
      work();
      std::fflush(nullptr);
      ::_exit(0);
    }
    int status = 0;
    ::waitpid(pid, &status, 0);
    while (keeper_writes(log_))
      ::sched_yield();
    return troupe::test::read_file(log_);
  }
  // The child of this process that keeps its output.
  static pid_t keeper() {
    pid_t pid = 0;
    std::ifstream("/proc/self/task/" + std::to_string(::getpid()) + "/children") >> pid;
    return pid;
  }
  troupe::test::TempFolder folder_;
  std::filesystem::path log_ = folder_ / "reward.log";
};

}  // namespace

TEST_F(OutputKeeperTest, LinesOfAProcessAndItsChildrenAreSafeAndBounded) {
  const std::string text = kept([] {
    std::printf("plain\n\x1b]0;title\x07here\n");
    std::fflush(stdout);
    [[maybe_unused]] const int ended = std::system("printf 'of a child\\n' >&2");
    std::fputs(std::string(100'000, 'x').c_str(), stderr);  // one line without an end
  });
  EXPECT_EQ(text, "plain\n]0;titlehere\nof a child\n" +
                      std::string(actors::limits::kLogLine_bytes_max, 'x') + "\n");
}

TEST_F(OutputKeeperTest, AFloodIsCountedAndALongLogIsSetAside) {
  std::ofstream(log_) << "old";
  std::filesystem::resize_file(log_, actors::limits::kNodeLog_bytes_max);
  const std::string text = kept([] {
    const std::string line(1023, 'y');
    for (int i = 0; i < 100'000; ++i)
      std::puts(line.c_str());
  });
  EXPECT_LT(text.size(), 4u << 20);
  EXPECT_NE(text.find(" lines were dropped here: too many at a time\n"), std::string::npos);
  EXPECT_EQ(std::filesystem::file_size(log_.string() + ".1"), actors::limits::kNodeLog_bytes_max);
}

TEST_F(OutputKeeperTest, TheLastWordsOfAKilledProcessAreKept) {
  EXPECT_EQ(kept([] {
              std::fputs("terminate called", stderr);
              ::kill(::getpid(), SIGKILL);
            }),
            "terminate called\n");
}

TEST_F(OutputKeeperTest, WithoutItsKeeperAProcessReadsItself) {
  const std::string text = kept([this] {
    std::puts("before");
    std::fflush(stdout);
    while (troupe::test::read_file(log_).empty())
      ::sched_yield();
    ::kill(keeper(), SIGKILL);
    for (int i = 0; i < 2000; ++i)  // more than the pipe holds
      std::puts(std::string(1023, 'z').c_str());
    std::puts("after");
    std::fflush(stdout);
    while (troupe::test::read_file(log_).size() < 100'000)
      ::sched_yield();
  });
  EXPECT_TRUE(text.starts_with("before\nzzz")) << text.substr(0, 80);
}

}  // namespace troupe::app
