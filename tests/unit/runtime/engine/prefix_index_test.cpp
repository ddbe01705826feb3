// The prefix index by hand, with every entry in one bucket, and against a map under random events.
#include "runtime/engine/prefix_index.hpp"

#include "runtime/core/rng.hpp"

#include <gtest/gtest.h>

#include <map>
#include <tuple>
#include <vector>

namespace troupe::engine {
namespace {

using Node = PrefixIndex::Node;
using Scope = PrefixIndex::Scope;

BlockTokens tokens_from(std::int32_t first) {
  BlockTokens tokens;
  for (std::int32_t i = 0; i < kBlockTokens; ++i)
    tokens[static_cast<std::size_t>(i)] = first + i;
  return tokens;
}

// Every entry collides with every other: only the comparison tells them apart.
class PrefixIndexTest : public testing::Test {
 protected:
  PrefixIndex index_{8, 1};
  const Scope scope_;
};

TEST_F(PrefixIndexTest, FindsAChainOfBlocks) {
  const Node a = index_.insert(scope_, {}, tokens_from(0), 3);
  const Node b = index_.insert(scope_, a, tokens_from(16), 5);
  EXPECT_EQ(index_.find(scope_, {}, tokens_from(0)).block, 3);
  EXPECT_EQ(index_.find(scope_, a, tokens_from(16)).block, 5);
  EXPECT_FALSE(index_.find(scope_, b, tokens_from(32)).found());
  EXPECT_EQ(index_.size(), 2);
  EXPECT_TRUE(index_.holds(5));
  EXPECT_FALSE(index_.holds(0));
}

TEST_F(PrefixIndexTest, EveryTokenOfABlockCounts) {
  (void)index_.insert(scope_, {}, tokens_from(0), 3);
  for (std::size_t i = 0; i < tokens_from(0).size(); ++i) {
    BlockTokens other = tokens_from(0);
    ++other[i];
    EXPECT_FALSE(index_.find(scope_, {}, other).found()) << "token " << i;
  }
}

TEST_F(PrefixIndexTest, TheSameTokensAfterAnotherBeginningAreAnotherEntry) {
  const Node a = index_.insert(scope_, {}, tokens_from(0), 0);
  const Node b = index_.insert(scope_, {}, tokens_from(1), 1);
  (void)index_.insert(scope_, a, tokens_from(16), 2);
  EXPECT_FALSE(index_.find(scope_, b, tokens_from(16)).found());
  EXPECT_FALSE(index_.find(scope_, {}, tokens_from(16)).found());
  EXPECT_EQ(index_.insert(scope_, b, tokens_from(16), 3).block, 3);
  EXPECT_EQ(index_.find(scope_, a, tokens_from(16)).block, 2);
}

TEST_F(PrefixIndexTest, WeightsAndSaltCount) {
  (void)index_.insert({1, 0}, {}, tokens_from(0), 0);
  EXPECT_FALSE(index_.find({2, 0}, {}, tokens_from(0)).found());
  EXPECT_FALSE(index_.find({1, 9}, {}, tokens_from(0)).found());
  EXPECT_TRUE(index_.find({1, 0}, {}, tokens_from(0)).found());
}

// Block 0 goes and comes back with the same tokens: what followed the old entry does not follow the
// new one.
TEST_F(PrefixIndexTest, AnEntryAfterOneThatIsGoneIsNotFound) {
  const Node a = index_.insert(scope_, {}, tokens_from(0), 0);
  (void)index_.insert(scope_, a, tokens_from(16), 1);
  EXPECT_TRUE(index_.erase(0));
  EXPECT_FALSE(index_.erase(0));
  EXPECT_FALSE(index_.alive(a));
  EXPECT_FALSE(index_.find(scope_, a, tokens_from(16)).found());
  const Node again = index_.insert(scope_, {}, tokens_from(0), 0);
  EXPECT_NE(again.serial, a.serial);
  EXPECT_FALSE(index_.find(scope_, again, tokens_from(16)).found());
  EXPECT_FALSE(index_.alive(a));
  EXPECT_TRUE(index_.alive(again));
  EXPECT_TRUE(index_.alive({}));
}

TEST_F(PrefixIndexTest, ClearForgetsAll) {
  const Node a = index_.insert(scope_, {}, tokens_from(0), 0);
  index_.clear();
  EXPECT_EQ(index_.size(), 0);
  EXPECT_FALSE(index_.alive(a));
  EXPECT_FALSE(index_.find(scope_, {}, tokens_from(0)).found());
  EXPECT_EQ(index_.insert(scope_, {}, tokens_from(0), 0).block, 0);
}

TEST(PrefixIndexDeathTest, RefusesMisuse) {
  PrefixIndex index(4);
  const Node a = index.insert({}, {}, tokens_from(0), 0);
  EXPECT_DEATH(index.insert({}, {}, tokens_from(1), 0), "entered twice");
  index.erase(0);
  EXPECT_DEATH(index.insert({}, a, tokens_from(1), 1), "one that is gone");
}

TEST(PrefixIndex, AgreesWithAMapUnderRandomEvents) {
  using Key = std::tuple<std::uint64_t, std::uint64_t, std::int32_t>;  // salt, parent, tokens
  for (std::uint64_t seed = 0; seed < 300; ++seed) {
    core::Rng rng(seed);
    const auto blocks = 1 + rng.next_below(24);
    PrefixIndex index(static_cast<std::int32_t>(blocks), seed % 3 == 0 ? 1 : 0);
    std::map<Key, Node> entries;
    std::vector<Node> parents = {{}};
    for (int event = 0; event < 300; ++event) {
      const auto block = static_cast<std::int32_t>(rng.next_below(blocks));
      const auto first = static_cast<std::int32_t>(rng.next_below(4));
      const Scope scope{0, rng.next_below(2)};
      const Node parent = parents[rng.next_below(parents.size())];
      const Key key{scope.salt, parent.serial, first};
      const bool there = parent.serial == 0 || index.alive(parent);
      const auto at = entries.find(key);
      const Node found = index.find(scope, parent, tokens_from(first));
      ASSERT_EQ(found.found(), there && at != entries.end());
      if (found.found()) {
        ASSERT_EQ(found.serial, at->second.serial);
        ASSERT_EQ(found.block, at->second.block);
      }
      if (rng.next_below(3) == 0) {
        const bool held = std::erase_if(entries, [block](const auto& entry) {
                            return entry.second.block == block;
                          }) > 0;
        ASSERT_EQ(index.erase(block), held);
      } else if (there && !found.found() && at == entries.end() && !index.holds(block)) {
        const Node made = index.insert(scope, parent, tokens_from(first), block);
        entries[key] = made;
        parents.push_back(made);
      }
      ASSERT_EQ(index.size(), static_cast<std::int64_t>(entries.size()));
    }
  }
}

}  // namespace
}  // namespace troupe::engine
