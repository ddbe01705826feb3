// Errors and their advice.
#include "runtime/core/error.hpp"

#include "runtime/core/error_list.hpp"
#include "runtime/core/foreign_text.hpp"

#include <gtest/gtest.h>

namespace troupe::core {
namespace {

TEST(Errors, AdviceIsAFieldAndNeverCutOutOfText) {
  const Error plain{ErrorCode::kData, "the server said \"too long; cut it\""};
  EXPECT_EQ(plain.what(), plain.message);
  EXPECT_EQ(plain.advice(), "");
  const Error told = advised(ErrorCode::kConfig, "a; b", "do c; or d");
  EXPECT_EQ(told.message, "a; b; do c; or d");
  EXPECT_EQ(told.what(), "a; b");
  EXPECT_EQ(told.advice(), "do c; or d");
  EXPECT_EQ(advised(ErrorCode::kConfig, "a", "").advice(), "");
}

TEST(Errors, PlacesFactsAndMoreAdviceKeepTheParts) {
  const Error told = advised(ErrorCode::kConfig, "it raised:" + quoted_lines("x\ny"), "mend it");
  const Error all = told.within("r.py").also("3 tries").advising("or leave it out");
  EXPECT_EQ(all.what(), "r.py: it raised; 3 tries:\n  | x\n  | y");
  EXPECT_EQ(all.advice(), "mend it; or leave it out");
  const Error plain = Error{ErrorCode::kData, "x"}.also("y").advising("z");
  EXPECT_EQ(plain.what(), "x; y");
  EXPECT_EQ(plain.advice(), "z");
}

TEST(Errors, AListKeepsEachMistakeWithItsAdvice) {
  ErrorList inner, outer;
  inner.add(ErrorCode::kConfig, "a", "do a");
  inner.add(ErrorCode::kConfig, "b");
  outer.add(inner.error().within("key"));
  outer.add(ErrorCode::kData, "c", "do c");
  const Error all = outer.error();
  EXPECT_EQ(all.code, ErrorCode::kConfig);
  const auto mistakes = single_errors(all);
  ASSERT_EQ(mistakes.size(), 3u);
  EXPECT_EQ(mistakes[0].what(), "key: a");
  EXPECT_EQ(mistakes[0].advice(), "do a");
  EXPECT_EQ(mistakes[1].what(), "key: b");
  EXPECT_EQ(mistakes[2].advice(), "do c");
  EXPECT_EQ(all.message, "key: a; do a\nerror: key: b\nerror: c; do c");
}

// What stands in a position that is none is no advice.
TEST(Errors, ABadPositionIsNone) {
  Error told{ErrorCode::kData, "short"};
  for (const std::size_t at : {1u, 5u, 100u}) {
    told.advice_at = at;
    EXPECT_EQ(told.advice(), "") << at;
    EXPECT_EQ(told.what(), "short") << at;
  }
}

}  // namespace
}  // namespace troupe::core
