#include "runtime/core/thrown.hpp"

#include <gtest/gtest.h>

#include <future>
#include <new>
#include <system_error>

namespace troupe::core {
namespace {

TEST(Thrown, ALimitOfTheSystemIsNoBug) {
  for (const auto& [error, part] : {std::pair{EAGAIN, "ulimit -u"},
                                    {ENOMEM, "ulimit -v"},
                                    {EMFILE, "ulimit -n"},
                                    {ENFILE, "ulimit -n"}}) {
    const Error told = error_of(std::system_error(error, std::system_category()), "unexpected");
    EXPECT_EQ(exit_status(told.code), 3) << error;
    EXPECT_NE(told.advice().find(part), std::string_view::npos) << told.message;
    EXPECT_EQ(told.message.find("unexpected"), std::string::npos) << told.message;
  }
  EXPECT_EQ(error_of(std::bad_alloc(), "unexpected").code, ErrorCode::kResources);
}

TEST(Thrown, OtherErrorsAre) {
  const Error told = error_of(std::system_error(EINVAL, std::system_category()), "unexpected");
  EXPECT_EQ(told.code, ErrorCode::kInternal);
  EXPECT_EQ(told.message.find("unexpected: "), 0u) << told.message;
  // The same number means something else in another category.
  const std::error_code future(EAGAIN, std::future_category());
  EXPECT_EQ(error_of(std::system_error(future), "").code, ErrorCode::kInternal);
}

}  // namespace
}  // namespace troupe::core
