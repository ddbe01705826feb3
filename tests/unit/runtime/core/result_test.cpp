// Result, its macros, and the exit statuses that scripts rely on.
#include "runtime/core/result.hpp"

#include <gtest/gtest.h>

#include <memory>

namespace troupe::core {
namespace {

Result<int> half(int x) {
  if (x % 2 != 0) return fail(ErrorCode::kInvalidArgument, "odd");
  return x / 2;
}
Result<int> quarter(int x) {
  TROUPE_TRY_ASSIGN(first, half(x));
  return half(first);
}
Result<void> only_even(int x) {
  TROUPE_TRY(half(x));
  return {};
}

}  // namespace

TEST(Result, CarriesValueOrError) {
  EXPECT_EQ(half(4).value(), 2);
  EXPECT_FALSE(half(3));
  EXPECT_EQ(half(3).error().message, "odd");
}

TEST(Result, MacrosPassTheFirstErrorOn) {
  EXPECT_EQ(quarter(8).value(), 2);
  EXPECT_EQ(quarter(6).error().code, ErrorCode::kInvalidArgument);
  EXPECT_TRUE(only_even(2));
  EXPECT_FALSE(only_even(1));
}

TEST(Result, MovesWhatCannotBeCopied) {
  Result<std::unique_ptr<int>> result(std::make_unique<int>(3));
  auto value = std::move(result).value();
  EXPECT_EQ(*value, 3);
}

TEST(Error, WithinNamesThePlace) {
  EXPECT_EQ((Error{ErrorCode::kData, "bad"}.within("file.json").message), "file.json: bad");
}

TEST(ExitStatus, IsFixedByKind) {
  EXPECT_EQ(exit_status(ErrorCode::kConfig), 2);
  EXPECT_EQ(exit_status(ErrorCode::kResources), 3);
  EXPECT_EQ(exit_status(ErrorCode::kData), 4);
  EXPECT_EQ(exit_status(ErrorCode::kPeerLost), 5);
  EXPECT_EQ(exit_status(ErrorCode::kNumeric), 6);
  EXPECT_EQ(exit_status(ErrorCode::kInterrupted), 130);
  EXPECT_EQ(exit_status(ErrorCode::kInternal), 1);
}

TEST(ResultDeathTest, ValueOfAFailureIsABug) {
  EXPECT_DEATH(static_cast<void>(half(3).value()), "failed Result");
}

}  // namespace troupe::core
