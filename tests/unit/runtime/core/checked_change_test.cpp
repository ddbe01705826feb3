// State machines check themselves after each change, and what is printed names the change.
#include "runtime/core/checked_change.hpp"

#include <gtest/gtest.h>

namespace troupe::core {
namespace {

// May count to 2.
class SmallCount {
 public:
  void add(int by) {
    const CheckedChange checked(*this);
    for (int i = 0; i < by; ++i)
      step(1);
  }
  // A change within a change: what it leaves is not looked at.
  void there_and_back(int by) {
    const CheckedChange checked(*this);
    step(by);
    step(-by);
  }
  std::string check_invariants() const { return count_ > 2 ? "it is more than 2" : ""; }

 private:
  void step(int by) {
    const CheckedChange checked(*this);
    count_ += by;
  }
  int count_ = 0;
};

class CheckedChanges : public testing::Test {
 protected:
  void SetUp() override { check_invariants(true); }
};

TEST_F(CheckedChanges, WhatIsBrokenIsSaidWithTheChangeThatBrokeIt) {
  SmallCount count;
  count.add(2);
  EXPECT_DEATH(count.add(1),
               "checked_change_test.cpp:[0-9]+: it is more than 2 "
               "\\(after .*SmallCount::add\\)");
}

TEST_F(CheckedChanges, OnlyWholeChangesAreLookedAt) {
  SmallCount count;
  count.there_and_back(3);
  EXPECT_EQ(count.check_invariants(), "");
}

TEST_F(CheckedChanges, NobodyLooksUnlessItIsWanted) {
  check_invariants(false);
  SmallCount count;
  count.add(3);
  EXPECT_EQ(count.check_invariants(), "it is more than 2");
}

}  // namespace
}  // namespace troupe::core
