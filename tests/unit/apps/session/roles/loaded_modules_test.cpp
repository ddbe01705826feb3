// What files the code of rewards has loaded: kept with the checkpoint's hashes, changes told.
#include "apps/session/roles/loaded_modules.hpp"

#include <gtest/gtest.h>

namespace troupe::session {
namespace {

using Lines = std::vector<std::string>;

std::string report_of(const std::string& file, char digit) {
  return "{\"" + file + "\": \"" + std::string(64, digit) + "\"}";
}

}  // namespace

TEST(LoadedModules, AChangeSinceTheCheckpointIsTold) {
  LoadedModules first{Hashes()};
  EXPECT_EQ(first.take("reward score", report_of("/u/a.py", 'a')), Lines{}) << "new";
  EXPECT_EQ(first.take("reward score", report_of("/u/b.py", 'b')), Lines{});
  EXPECT_EQ(first.take("the environment", report_of("/u/a.py", 'c')), Lines{}) << "another's";
  Hashes saved = {{"reward.python", std::string(64, 'f')}};
  first.add_to(saved);
  EXPECT_EQ(saved.size(), 4u);
  LoadedModules next(hashes_of_json(hashes_json(saved)));
  EXPECT_EQ(next.take("reward score", report_of("/u/b.py", 'b')), Lines{});
  EXPECT_EQ(next.take("reward score", report_of("/u/a.py", 'd')),
            Lines{"changed since the checkpoint: the SHA-256 of the module /u/a.py of reward score "
                  "was aaaaaaaaaaaa... and is dddddddddddd..."});
  EXPECT_EQ(next.take("reward score", report_of("/u/a.py", 'd')), Lines{}) << "told once";
}

TEST(LoadedModules, WhatIsNoReportIsIgnored) {
  LoadedModules modules{Hashes()};
  for (const char* none : {"", "no json", "[1]", R"({"/a": 1})", R"({"/a": "short"})"})
    EXPECT_EQ(modules.take("reward score", none), Lines{}) << none;
  EXPECT_EQ(modules.take("reward score", report_of("/a", 'Z')), Lines{});
  Hashes saved;
  modules.add_to(saved);
  EXPECT_TRUE(saved.empty());
}

}  // namespace troupe::session
