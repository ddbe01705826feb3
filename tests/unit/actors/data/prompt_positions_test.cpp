#include "actors/data/prompt_positions.hpp"

#include <gtest/gtest.h>

#include <vector>

namespace troupe::actors::data {
namespace {

std::vector<std::uint64_t> take(PromptPositions& positions, int count) {
  std::vector<std::uint64_t> taken;
  for (int i = 0; i < count; ++i)
    taken.push_back(positions.take());
  return taken;
}

}  // namespace

TEST(PromptPositions, AreGivenInOrder) {
  PromptPositions positions;
  EXPECT_EQ(take(positions, 3), (std::vector<std::uint64_t>{0, 1, 2}));
  EXPECT_EQ(positions.next(), 3u);
  EXPECT_EQ(positions.used(), 3u);
}

TEST(PromptPositions, ThoseThatAreFreeAgainComeFirst) {
  PromptPositions positions(4);
  positions.use(2);
  for (const std::uint64_t used : {8u, 4u, 9u})
    positions.use(used);
  EXPECT_EQ(positions.next(), 5u);
  EXPECT_EQ(positions.used(), 7u);
  EXPECT_TRUE(positions.is_used(8));
  EXPECT_FALSE(positions.is_used(5));
  EXPECT_EQ(take(positions, 4), (std::vector<std::uint64_t>{5, 6, 7, 10}));
  EXPECT_TRUE(positions.ahead().empty());
}

TEST(PromptPositions, ASavedStateComesBack) {
  PromptPositions positions(4, {0, 4, 6});
  EXPECT_EQ(positions.next(), 5u);
  EXPECT_EQ(positions.ahead(), std::set<std::uint64_t>{6});
  EXPECT_EQ(take(positions, 2), (std::vector<std::uint64_t>{5, 7}));
}

}  // namespace troupe::actors::data
