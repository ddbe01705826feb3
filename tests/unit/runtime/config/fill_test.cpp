// Structs whose members are rows of keys.
#include "runtime/config/key_types.hpp"

#include <gtest/gtest.h>

namespace troupe::config {
namespace {

struct First {
#define KEYS "tests/unit/runtime/config/fill_rows.def"
#include "runtime/config/fill.def"
};
struct Second {
#define KEYS "tests/unit/runtime/config/fill_rows.def"
#define TAKE take_words
#define SECOND
#include "runtime/config/fill.def"
};
struct Whole {
#define KEYS "tests/unit/runtime/config/fill_rows.def"
#define BOTH
#include "runtime/config/fill.def"
  Int own = 9;
};

// A section of a configuration: its members stand in another order, and there are more.
struct Section {
  Text word = "b";
  struct {
    Float more = 1, share = 0.25;
  } inner;
  Int count = 8;
};

}  // namespace

TEST(Fill, RowsAreMembersWithTheirDefaults) {
  const First first;
  EXPECT_EQ(first.count, 3);
  EXPECT_EQ(first.inner.share, 0.5);
  EXPECT_EQ(Second().word, "a");
  const Whole whole;
  EXPECT_EQ(whole.count, 3);
  EXPECT_EQ(whole.inner.share, 0.5);
  EXPECT_EQ(whole.word, "a");
}

TEST(Fill, ASectionFillsTheMembersThatItNames) {
  First first;
  first.take(Section());
  EXPECT_EQ(first.count, 8);
  EXPECT_EQ(first.inner.share, 0.25);
  Second second;
  second.take_words(Section());
  EXPECT_EQ(second.word, "b");
  Whole whole;
  whole.take(Section());
  EXPECT_EQ(whole.count, 8);
  EXPECT_EQ(whole.inner.share, 0.25);
  EXPECT_EQ(whole.word, "b");
  EXPECT_EQ(whole.own, 9) << "what is no row stays";
}

}  // namespace troupe::config
