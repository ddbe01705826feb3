// Who feeds whom: levels, copies and children of a tree drawn by hand, and what is never so.
#include "runtime/weights/relay_tree.hpp"

#include <gtest/gtest.h>

namespace troupe::weights {
namespace {

// 0 feeds 1 and 2; 1 feeds 3, which feeds 4; 5 gets an older version from 1; 6 was fed by one that
// has left.
class ATree : public testing::Test {
 protected:
  ATree() {
    add(1, 0, 60);
    add(2, 0, 100);
    add(3, 1, 40);
    add(4, 3, 20);
    add(5, 1, 10);
    tree_.of(5).content.version = 1;
    add(6, 9, 30);
  }
  void add(std::uint32_t number, std::uint32_t parent, std::uint32_t buckets) {
    RelayEntry& entry = tree_.of(number);
    entry.place.number = number;
    entry.content = content_;
    entry.parent = parent;
    entry.buckets = buckets;
  }
  std::size_t level(std::uint32_t number) const { return tree_.level(*tree_.find(number)); }
  bool feeds(std::uint32_t above, std::uint32_t number) const {
    return tree_.is_fed_by(*tree_.find(number), above);
  }

  const RelayContent content_{kernels::PanelDtype::kF32, 2, 100};
  RelayTree tree_;
};

TEST_F(ATree, CountsStepsToAWholeCopy) {
  EXPECT_EQ(level(1), 0u) << "the publisher's";
  EXPECT_EQ(level(3), 1u);
  EXPECT_EQ(level(4), 2u);
  EXPECT_EQ(level(5), 0u) << "1 has another version";
  EXPECT_EQ(level(6), 0u);
  tree_.of(3).buckets = 100;
  EXPECT_EQ(level(3), 0u);
  EXPECT_EQ(level(4), 1u);
}

TEST_F(ATree, KnowsWhoIsAbove) {
  EXPECT_TRUE(feeds(1, 4));
  EXPECT_TRUE(feeds(3, 4));
  EXPECT_FALSE(feeds(2, 4));
  EXPECT_FALSE(feeds(4, 3));
  EXPECT_TRUE(feeds(9, 6)) << "though it has left";
}

TEST_F(ATree, CountsCopiesChildrenAndComplaints) {
  EXPECT_EQ(tree_.copies(content_), 2u);
  tree_.of(4).wrong = {3};
  tree_.of(6).wrong = {3, 1};
  RelayTree::Counts counts = tree_.count(content_);
  EXPECT_EQ(counts.children[1], 1u) << "5 gets another version";
  EXPECT_EQ(counts.children[3], 1u);
  EXPECT_EQ(counts.children[0], 0u);
  EXPECT_EQ(counts.complaints[3], 2u);
  EXPECT_EQ(counts.complaints[1], 1u);
  tree_.of(4).reads_other = true;
  EXPECT_EQ(tree_.count(content_).children[3], 0u);
}

TEST_F(ATree, NamesWhatIsBroken) {
  EXPECT_EQ(tree_.check_invariants(), "");
  tree_.of(1).parent = 4;
  EXPECT_EQ(tree_.check_invariants(), "receiver 1 is fed in a circle");
  tree_.of(4).buckets = 100;
  EXPECT_EQ(tree_.check_invariants(), "") << "whoever has all is fed no more";
  tree_.of(2).buckets = 101;
  EXPECT_EQ(tree_.check_invariants(), "receiver 2 has more than all");
}

}  // namespace
}  // namespace troupe::weights
