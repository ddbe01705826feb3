// The folders of agent programs whose worker was killed: the next worker removes them, and those of
// a living one stay.
#include "actors/environment/agent_program.hpp"

#include <gtest/gtest.h>
#include <stdlib.h>

#include <filesystem>
#include <fstream>
#include <set>

namespace troupe::actors {
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
  const fs::path old = top_ / "tmp/troupe-agent-old";
  fs::create_directories(old / "episode");
  fs::permissions(old, fs::perms::owner_all);
  std::ofstream(old / "episode/task") << "text";
  fs::create_directory(top_ / "tmp/somebody-elses");
  auto first = worker();
  const auto of_first = folders();
  EXPECT_EQ(of_first.size(), 2u) << "its own, and what is no agent's";
  EXPECT_FALSE(of_first.contains(old));
  const auto second = worker();
  EXPECT_EQ(folders().size(), 3u) << "the first is alive";
  first.reset();  // kills it
  EXPECT_EQ(folders().size(), 3u) << "it could not remove its own";
  const auto third = worker();
  EXPECT_EQ(folders().size(), 3u);
  for (const fs::path& folder : of_first)
    EXPECT_EQ(fs::exists(folder), folder.filename() == "somebody-elses") << folder;
}

}  // namespace troupe::actors
