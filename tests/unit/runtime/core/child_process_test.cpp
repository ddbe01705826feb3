// Processes of the shell: what they are given, how they end, and that nothing of them stays.
#include "runtime/core/child_process.hpp"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <chrono>

namespace troupe::core {
namespace {

using namespace std::chrono_literals;

struct Pipe {
  Pipe() { EXPECT_EQ(::pipe2(ends.data(), O_CLOEXEC), 0); }
  ~Pipe() {
    ::close(ends[0]);
    close_end();
  }
  void close_end() {
    if (ends[1] >= 0) ::close(ends[1]);
    ends[1] = -1;
  }
  std::string text() {
    close_end();
    std::string all;
    char block[512];
    for (ssize_t n; (n = ::read(ends[0], block, sizeof block)) > 0;)
      all.append(block, static_cast<std::size_t>(n));
    return all;
  }
  std::array<int, 2> ends{};
};

ChildSpec shell(const std::string& script) {
  ChildSpec spec;
  spec.words = {"sh", "-c", script};
  return spec;
}

}  // namespace

TEST(ChildProcess, GetsWordsEnvironmentAndDescriptors) {
  Pipe out, answers;
  ChildSpec spec = shell("echo \"$GIVEN$HOME\"; echo there >&7; echo beside >&9");
  spec.environment = {{"GIVEN=here", "PATH=/usr/bin:/bin"}};
  // Each stands where the other is expected, so neither may be moved before the other is safe.
  spec.descriptors = {{out.ends[1], 1}, {out.ends[1], 2}, {answers.ends[1], 7}};
  auto child = ChildProcess::start("a shell", std::move(spec));
  ASSERT_TRUE(child);
  EXPECT_EQ(answers.text(), "there\n");
  const std::string said = out.text();
  EXPECT_EQ(said.substr(0, 5), "here\n") << "the environment is that which was given, no more";
  EXPECT_NE(said.find("9: Bad file descriptor"), std::string::npos) << said;
  EXPECT_TRUE(WIFEXITED(child->wait()));
}

TEST(ChildProcess, SwapsDescriptorsThatAreInEachOthersPlace) {
  Pipe one, two;
  ChildSpec spec = shell("echo one >&" + std::to_string(two.ends[1]) + "; echo two >&" +
                         std::to_string(one.ends[1]));
  spec.descriptors = {{one.ends[1], two.ends[1]}, {two.ends[1], one.ends[1]}};
  auto child = ChildProcess::start("a shell", std::move(spec));
  ASSERT_TRUE(child);
  EXPECT_EQ(one.text(), "one\n");
  EXPECT_EQ(two.text(), "two\n");
}

TEST(ChildProcess, TellsHowItEnded) {
  auto left = ChildProcess::start("a shell", shell("exit 3"));
  ASSERT_TRUE(left);
  EXPECT_EQ(how_it_ended(left->wait()), "ended with status 3");
  EXPECT_FALSE(left->running());
  auto shot = ChildProcess::start("a shell", shell("kill -9 $$"));
  ASSERT_TRUE(shot);
  EXPECT_EQ(how_it_ended(shot->wait()), "was ended by signal 9 (Killed)");
  ChildSpec none;
  none.words = {"/no/such/program"};
  auto missing = ChildProcess::start("nothing", std::move(none));
  ASSERT_TRUE(missing);
  EXPECT_EQ(WEXITSTATUS(missing->wait()), 127);
}

TEST(ChildProcess, TakesItsGroupAlongWhenItGoes) {
  Pipe out;
  ChildSpec spec = shell("sleep 1000 & echo $!; wait");
  spec.descriptors = {{out.ends[1], 1}};
  auto child = ChildProcess::start("a shell", std::move(spec));
  ASSERT_TRUE(child);
  out.close_end();
  char block[32] = {};
  ASSERT_GT(::read(out.ends[0], block, sizeof block - 1), 0);
  EXPECT_FALSE(child->wait(0ms)) << "it waits for its own child";
  *child = ChildProcess();
  // The pipe ends when the last process that holds it has ended: the sleeper.
  EXPECT_EQ(::read(out.ends[0], block, sizeof block), 0);
}

TEST(ChildProcess, KeepsToItsLimits) {
  Pipe out;
  ChildSpec spec = shell("ulimit -n");
  spec.limits = {{RLIMIT_NOFILE, 64}};
  spec.descriptors = {{out.ends[1], 1}};
  auto child = ChildProcess::start("a shell", std::move(spec));
  ASSERT_TRUE(child);
  EXPECT_EQ(out.text(), "64\n");
}

TEST(MergedEnvironment, ReplacesByName) {
  ASSERT_EQ(::setenv("TROUPE_CHILD_TEST", "old", 1), 0);
  int found = 0;
  for (const std::string& entry : merged_environment({"TROUPE_CHILD_TEST=new"})) {
    if (entry.starts_with("TROUPE_CHILD_TEST=")) {
      EXPECT_EQ(entry, "TROUPE_CHILD_TEST=new");
      ++found;
    }
  }
  EXPECT_EQ(found, 1);
}

}  // namespace troupe::core
