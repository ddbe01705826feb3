// Names that are safe in files, logs and terminals.
#include "runtime/core/plain_name.hpp"

#include <gtest/gtest.h>

#include <string>

namespace troupe::core {
namespace {

TEST(PlainName, HasLettersDigitsDashesAndDots) {
  for (const char* name : {"a", "gpu1", "7", "host-a_1.2", "...", "-", "A.b"})
    EXPECT_TRUE(is_plain_name(name)) << name;
  for (const char* name :
       {"", ".", "..", "a/b", "../x", "a b", "a\n", "<b>", "a\x1b[31m", "\xc3\xa9"})
    EXPECT_FALSE(is_plain_name(name)) << name;
}

TEST(PlainName, HasABoundedLength) {
  EXPECT_TRUE(is_plain_name(std::string(kPlainName_bytes_max, 'a')));
  EXPECT_FALSE(is_plain_name(std::string(kPlainName_bytes_max + 1, 'a')));
  EXPECT_TRUE(is_plain_name(std::string(kPlainName_bytes_max + 1, 'a'), 200));
  EXPECT_FALSE(is_plain_name(std::string("a\0b", 3)));
}

}  // namespace
}  // namespace troupe::core
