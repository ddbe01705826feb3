// Distances by hand.
#include "runtime/core/edit_distance.hpp"

#include <gtest/gtest.h>

namespace troupe::core {

TEST(EditDistance, CountsInsertedDroppedReplacedAndSwapped) {
  EXPECT_EQ(edit_distance("", ""), 0u);
  EXPECT_EQ(edit_distance("q_proj", "q_proj"), 0u);
  EXPECT_EQ(edit_distance("qproj", "q_proj"), 1u);
  EXPECT_EQ(edit_distance("q_proj", "qproj"), 1u);
  EXPECT_EQ(edit_distance("k_proj", "q_proj"), 1u);
  EXPECT_EQ(edit_distance("q_porj", "q_proj"), 1u);  // neighbours swapped
  EXPECT_EQ(edit_distance("", "abc"), 3u);
  EXPECT_EQ(edit_distance("kitten", "sitting"), 3u);
}

}  // namespace troupe::core
