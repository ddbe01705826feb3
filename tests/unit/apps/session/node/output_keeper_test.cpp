// What a process and its children print, kept by another process.
#include "apps/session/node/output_keeper.hpp"

#include "actors/node/limits.hpp"
#include "apps/session/limits.hpp"
#include "tests/unit/runtime/store/temp_folder.hpp"

#include <gtest/gtest.h>
#include <sched.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <fstream>
#include <functional>
#include <sstream>

namespace troupe::session {
namespace {

class OutputKeeperTest : public testing::Test {
 protected:
  // Runs `work` in a process whose output is kept; returns the log once its keeper has ended and
  // was waited for.
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
    while (reap_keepers() == 0)
      ::sched_yield();
    EXPECT_FALSE(keeper_writes(log_));
    return troupe::test::read_file(log_);
  }
  // The process that keeps this one's output: its sister.
  static pid_t keeper() {
    const std::string parent = std::to_string(::getppid());
    std::ifstream children("/proc/" + parent + "/task/" + parent + "/children");
    for (pid_t pid = 0; children >> pid;)
      if (pid != ::getpid()) return pid;
    return 0;
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
                      std::string(actors::node::limits::kLogLine_bytes_max, 'x') + "\n");
}

TEST_F(OutputKeeperTest, AFloodIsCountedAndALongLogIsSetAside) {
  std::ofstream(log_) << "old";
  std::filesystem::resize_file(log_, limits::kNodeLog_bytes_max);
  const std::string text = kept([] {
    const std::string line(1023, 'y');
    for (int i = 0; i < 100'000; ++i)
      std::puts(line.c_str());
  });
  EXPECT_LT(text.size(), 4u << 20);
  EXPECT_NE(text.find(" lines were dropped here: too many at a time\n"), std::string::npos);
  EXPECT_EQ(std::filesystem::file_size(log_.string() + ".1"), limits::kNodeLog_bytes_max);
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

}  // namespace troupe::session
