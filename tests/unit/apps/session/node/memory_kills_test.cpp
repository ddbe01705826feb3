// What is said of a process that was ended by SIGKILL, by the counters of its group and the
// machine.
#include "apps/session/node/memory_kills.hpp"

#include "tests/unit/runtime/store/temp_folder.hpp"

#include <gtest/gtest.h>
#include <unistd.h>

#include <fstream>
#include <sstream>

namespace troupe::session {
namespace {

class MemoryKillsTest : public testing::Test {
 protected:
  // The folder that stands for this process's group of memory, of the version that it has.
  std::filesystem::path group() const {
    std::ifstream groups("/proc/self/cgroup");
    std::filesystem::path found;
    for (std::string line; std::getline(groups, line);) {
      const std::string path = line.substr(line.rfind(':') + 2);
      if (line.find(":memory:") != line.npos) return folder_ / "memory" / path;
      if (line.starts_with("0::")) found = folder_ / path;
    }
    return found;
  }
  void put_group(int kills) const {
    std::filesystem::create_directories(group());
    for (const char* name : {"memory.oom_control", "memory.events"})
      std::ofstream(group() / name) << "under_oom 0\noom 7\noom_kill " << kills << "\n";
  }
  void put_machine(int kills) const {
    std::ofstream(folder_ / "vmstat") << "pgfault 12\noom_kill " << kills << "\ndrop_slab 3\n";
  }
  MemoryKills watch() const { return MemoryKills(::getpid(), folder_ / "", folder_ / "vmstat"); }

  troupe::test::TempFolder folder_;
};

}  // namespace

TEST_F(MemoryKillsTest, TheCounterOfItsGroupIsAFact) {
  put_group(3);
  put_machine(5);
  const MemoryKills kills = watch();
  put_machine(9);  // of other groups
  EXPECT_FALSE(kills.of_killed().memory);
  EXPECT_NE(kills.of_killed().text.find("the kernel has killed none"), std::string::npos);
  put_group(4);
  EXPECT_TRUE(kills.of_killed().memory);
  EXPECT_NE(kills.of_killed().text.find("the kernel killed it for want of memory"),
            std::string::npos);
  EXPECT_NE(kills.of_killed().text.find("went from 3 to 4"), std::string::npos);
}

TEST_F(MemoryKillsTest, WithoutAGroupTheMachineSaysWhatIsLikely) {
  put_machine(5);
  const MemoryKills kills = watch();
  EXPECT_FALSE(kills.of_killed().memory);
  put_machine(6);
  EXPECT_TRUE(kills.of_killed().memory);
  EXPECT_NE(kills.of_killed().text.find("most likely by the kernel for want of memory: it has "
                                        "killed 1 processes"),
            std::string::npos)
      << kills.of_killed().text;
}

TEST_F(MemoryKillsTest, WithoutAnyCounterItMayHaveBeenMemory) {
  EXPECT_TRUE(watch().of_killed().memory);
}

}  // namespace troupe::session
