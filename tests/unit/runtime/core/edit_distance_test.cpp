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

TEST(NearestWord, IsCloseOrBeginsSo) {
  constexpr std::string_view kWords[] = {"train", "re-weight", "status", "score"};
  EXPECT_EQ(nearest_word("trian", kWords), "train");
  EXPECT_EQ(nearest_word("reweight", kWords), "re-weight");
  EXPECT_EQ(nearest_word("sta", kWords), "status");
  EXPECT_EQ(nearest_word("st", kWords), "");
  EXPECT_EQ(nearest_word("frobnicate", kWords), "");
  EXPECT_EQ(nearest_word("", kWords), "");
}

}  // namespace troupe::core
