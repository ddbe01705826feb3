// What gets past a stop filter, piece by piece, worked out by hand.
#include "runtime/dialects/stop_filter.hpp"

#include <gtest/gtest.h>

namespace troupe::dialects {
namespace {

TEST(StopFilter, LetsTextWithoutStopsThroughAtOnce) {
  StopFilter filter({});
  EXPECT_EQ(filter.push("any"), "any");
  EXPECT_EQ(filter.push("thing"), "thing");
  EXPECT_EQ(filter.finish(), "");
}

TEST(StopFilter, HoldsBackWhatMayBecomeAStop) {
  StopFilter filter({"STOP"});
  EXPECT_EQ(filter.push("a ST"), "a ");
  EXPECT_EQ(filter.push("AR"), "STAR");
  EXPECT_EQ(filter.push("S"), "");
  EXPECT_EQ(filter.push("T"), "");
  EXPECT_EQ(filter.push("O"), "");
  EXPECT_EQ(filter.push("P and more"), "");
  ASSERT_TRUE(filter.matched());
  EXPECT_EQ(*filter.matched(), "STOP");
  EXPECT_EQ(filter.push("after"), "");
  EXPECT_EQ(filter.finish(), "");
}

TEST(StopFilter, AStopThatBeginsAnewInsideItsOwnBeginning) {
  StopFilter filter({"aab"});
  EXPECT_EQ(filter.push("a"), "");
  EXPECT_EQ(filter.push("a"), "");
  EXPECT_EQ(filter.push("a"), "a");  // "aa" may still become "aab"
  EXPECT_EQ(filter.push("b"), "");
  EXPECT_TRUE(filter.matched());
}

TEST(StopFilter, GivesTheHeldTextOutAtTheEnd) {
  StopFilter filter({"\n\n"});
  EXPECT_EQ(filter.push("line\n"), "line");
  EXPECT_EQ(filter.finish(), "\n");
  EXPECT_FALSE(filter.matched());
}

TEST(StopFilter, TheFirstMatchWinsAndTheLongestOfThoseThatBeginThere) {
  StopFilter early({"cd", "bc"});
  EXPECT_EQ(early.push("abcd"), "a");
  EXPECT_EQ(*early.matched(), "bc");
  StopFilter longest({"b", "bc"});
  EXPECT_EQ(longest.push("abcd"), "a");
  EXPECT_EQ(*longest.matched(), "bc");
}

TEST(StopFilter, KeepsTheMatchWhenAskedTo) {
  StopFilter filter({"."}, true);
  EXPECT_EQ(filter.push("One. Two."), "One.");
  EXPECT_TRUE(filter.matched());
}

TEST(StopFilter, WhatEndsBeforeItMayStopIsNoMatch) {
  StopFilter filter({"ab"});
  EXPECT_EQ(filter.push("xab", false), "xab");  // min_tokens not reached
  EXPECT_EQ(filter.push("c"), "c");             // and not matched afterwards
  EXPECT_EQ(filter.push("a", false), "");       // but a beginning counts
  EXPECT_EQ(filter.push("b"), "");
  EXPECT_TRUE(filter.matched());
}

// Whatever the pieces, the same text gets out, and nothing of the stop.
TEST(StopFilter, PiecesDoNotMatter) {
  const std::string text = "abracadabra END of it";
  for (std::size_t size = 1; size <= text.size(); ++size) {
    StopFilter filter({" END", "zzz"});
    std::string out;
    for (std::size_t at = 0; at < text.size(); at += size) {
      out += filter.push(text.substr(at, size));
      ASSERT_EQ(out.find(" E"), std::string::npos) << size;
    }
    out += filter.finish();
    EXPECT_EQ(out, "abracadabra") << size;
  }
}

}  // namespace
}  // namespace troupe::dialects
