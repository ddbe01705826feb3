// What is left of a run beside its nodes and guests, when another run is there: locks, folders of
// sockets, shared memory. As outliving_test.cpp; what takes longer is in
// outliving_things_day_test.cpp.
#include "tests/integration/leftovers.hpp"
#include "tests/integration/outliving_support.hpp"

namespace troupe::test {

TEST_F(Outliving, LocksFoldersAndMemoryOfAnotherRunAreFreeAndNeverUsed) {
  const OwnTemporaries temporaries;
  Background a = run("a", endless());
  Background lent = node();
  ASSERT_TRUE(within(60,
                     [&] {
                       return updates_of("a") > 1 && lent.says("started generator") &&
                              !memory_of(lent.pid()).empty();
                     }))
      << a.text() << lent.text();
  const std::filesystem::path lock = files_ / "a/run.lock";
  const Ended other = ends(files_.words("a") + Words{"--resume", "off"});
  EXPECT_EQ(other.status, 3) << other.text;
  EXPECT_NE(other.text.find("error: run folder " + (files_ / "a").string() +
                            " is in use by process " + std::to_string(a.pid())),
            std::string::npos)
      << other.text;
  const std::set<std::string> sockets = folders_of(a.pid(), "/troupe-sockets-");
  ASSERT_FALSE(sockets.empty());
  std::set<ino_t> memory = memory_of(lent.pid());
  const std::set<pid_t> children = started_for(files_ / "a");
  for (const pid_t child : children)
    memory.merge(memory_of(child));

  a.kill();
  EXPECT_FALSE(is_locked(lock));
  EXPECT_TRUE(any_of_these(children, started_for(files_ / "a"))) << "they do not hold it";
  for (const std::string& folder : sockets) {
    EXPECT_TRUE(std::filesystem::exists(folder)) << "it could not be removed";
    EXPECT_FALSE(is_locked(folder));
  }
  Background b = run("b", Words{"--rollout.generators", "0"} + endless());
  ASSERT_TRUE(within(60, [&] { return updates_of("b") > 1; })) << b.text() << lent.text();
  for (const std::string& folder : sockets)
    EXPECT_FALSE(std::filesystem::exists(folder)) << "B has removed it";
  for (const std::string& folder : folders_of(b.pid(), "/troupe-sockets-"))
    EXPECT_FALSE(sockets.contains(folder));
  EXPECT_TRUE(is_locked(files_ / "b/run.lock"));
  EXPECT_FALSE(is_locked(lock));
  std::set<ino_t> used = memory_of(lent.pid());
  for (const pid_t child : started_for(files_ / "b"))
    used.merge(memory_of(child));
  EXPECT_FALSE(used.empty());
  EXPECT_TRUE(both_of(used, memory).empty()) << "memory of A's weights";
  EXPECT_TRUE(within(30, [&] { return started_for(files_ / "a").empty(); }))
      << "what A's head had started ends, and its memory with it";
  b.signal(SIGINT);
  EXPECT_EQ(b.wait(30).value_or(-1), 130) << b.text();
  EXPECT_EQ(lent.wait(30).value_or(-1), 0) << lent.text();
  EXPECT_TRUE(temporaries.folders("troupe-sockets-").empty()) << "all could remove theirs";
}

}  // namespace troupe::test
