// Exceptions of Asio as errors.
#include "runtime/async/thrown.hpp"

#include <boost/system/system_error.hpp>
#include <gtest/gtest.h>

#include <cerrno>
#include <new>

namespace troupe::async {
namespace {

using core::ErrorCode;

boost::system::system_error thrown(int number) {
  const boost::system::error_code code(number, boost::system::system_category());
  return boost::system::system_error(code, "thread");
}

TEST(AsioThrown, AThreadThatCannotBeHadIsALimitOfTheSystem) {
  const core::Error error = error_of(thrown(EAGAIN));
  EXPECT_EQ(error.code, ErrorCode::kResources);
  EXPECT_NE(error.advice().find("ulimit -u"), std::string_view::npos) << error.message;
  EXPECT_EQ(error_of(std::bad_alloc()).code, ErrorCode::kResources);
}

TEST(AsioThrown, OthersKeepTheirWords) {
  const core::Error error = error_of(thrown(ENOENT), "a role");
  EXPECT_EQ(error.code, ErrorCode::kInternal);
  EXPECT_TRUE(error.message.starts_with("a role: thread: ")) << error.message;
}

}  // namespace
}  // namespace troupe::async
