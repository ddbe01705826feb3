// The folders of agent programs whose worker was killed: the next worker removes them, and those of
// a living one stay. (agent_program_test.cpp: a worker removes its own.)
#include "actors/environment/agent_program.hpp"
#include "runtime/core/owned_fd.hpp"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <stdlib.h>
#include <sys/file.h>

#include <filesystem>
#include <fstream>
#include <set>

namespace troupe::actors::environment {
namespace {

namespace fs = std::filesystem;

class AgentFolders : public testing::Test {
 protected:
  void SetUp() override {
    std::string pattern = (fs::temp_directory_path() / "places_XXXXXX").string();
    top_ = ::mkdtemp(pattern.data());
    fs::create_directory(top_ / "tmp");
    fs::create_directory(top_ / "agent");
    before_ = ::getenv("TMPDIR") == nullptr ? "" : ::getenv("TMPDIR");
    ::setenv("TMPDIR", (top_ / "tmp").c_str(), 1);
  }
  void TearDown() override {
    before_.empty() ? ::unsetenv("TMPDIR") : ::setenv("TMPDIR", before_.c_str(), 1);
    fs::remove_all(top_);
  }
  std::unique_ptr<AgentProgram> worker() {
    AgentProgramOptions options;
    options.command = "true";
    options.folder = top_ / "agent";
    options.confined = false;
    auto made = make_agent_program(options);
    EXPECT_TRUE(made) << made.error().message;
    return std::move(*made);
  }
  std::set<fs::path> folders() const {
    std::set<fs::path> found;
    for (const auto& entry : fs::directory_iterator(top_ / "tmp"))
      found.insert(entry.path());
    return found;
  }
  fs::path top_;
  std::string before_;
};

}  // namespace

TEST_F(AgentFolders, OfTheDeadAreRemovedAtTheNextStart) {
  const fs::path old = top_ / "tmp/troupe-agent-old", living = top_ / "tmp/troupe-agent-living";
  fs::create_directories(old / "episode");
  std::ofstream(old / "episode/task") << "text";
  fs::create_directory(living);
  for (const fs::path& folder : {old, living})
    fs::permissions(folder, fs::perms::owner_all);
  fs::create_directory(top_ / "tmp/somebody-elses");
  const core::OwnedFd held(::open(living.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  ASSERT_EQ(::flock(held.get(), LOCK_EX | LOCK_NB), 0);
  const auto started = worker();
  EXPECT_EQ(folders(), (std::set<fs::path>{living, top_ / "tmp/somebody-elses"}))
      << "it makes one of its own when a program runs";
}

}  // namespace troupe::actors::environment
