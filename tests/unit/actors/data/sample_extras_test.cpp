// Names, numbers and bounds of what rewards report beside a score.
#include "actors/data/sample_extras.hpp"

#include "actors/protocol/limits.hpp"

#include <gtest/gtest.h>

namespace troupe::actors::data {

TEST(SampleExtras, NumbersAndTextsByName) {
  SampleExtras extras;
  extras.add("right", R"({"len": 4, "ok": true, "tag": "x", "list": [1], "none": null})");
  ASSERT_EQ(extras.all().size(), 3u);
  EXPECT_EQ(extras.all()[0].name, "len");
  EXPECT_EQ(extras.all()[0].number, 4.0);
  EXPECT_EQ(extras.all()[1].number, 1.0);
  EXPECT_EQ(extras.all()[2].number, std::nullopt);
  EXPECT_EQ(extras.all()[2].json, "\"x\"");
}

TEST(SampleExtras, ANameThatIsTakenGetsTheNameOfItsReward) {
  SampleExtras extras;
  extras.add("right", R"({"len": 4})");
  extras.add("short", R"({"len": 5, "other": 6})");
  ASSERT_EQ(extras.all().size(), 3u);
  EXPECT_EQ(extras.all()[1].name, "short.len");
  EXPECT_EQ(extras.all()[2].name, "other");
}

TEST(SampleExtras, WhatIsNoObjectIsNothingAndNamesAreBounded) {
  SampleExtras extras;
  for (const char* text : {"", "[1]", "7", "{", "null"})
    extras.add("right", text);
  EXPECT_TRUE(extras.all().empty());
  std::string many = "{";
  for (int i = 0; i < 100; ++i)
    many += (i > 0 ? "," : "") + ("\"n" + std::to_string(i)) + "\":1";
  extras.add("right", many + "}");
  EXPECT_EQ(extras.all().size(), actors::limits::kRewardExtras_max);
}

}  // namespace troupe::actors::data
