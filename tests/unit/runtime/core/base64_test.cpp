// Base64 against the examples of RFC 4648.
#include "runtime/core/base64.hpp"

#include <gtest/gtest.h>

#include <string>
#include <utility>

namespace troupe::core {

TEST(Base64, ExamplesOfRfc4648) {
  const std::pair<const char*, const char*> table[] = {{"", ""},
                                                       {"f", "Zg=="},
                                                       {"fo", "Zm8="},
                                                       {"foo", "Zm9v"},
                                                       {"foob", "Zm9vYg=="},
                                                       {"fooba", "Zm9vYmE="},
                                                       {"foobar", "Zm9vYmFy"}};
  for (const auto& [plain, encoded] : table)
    EXPECT_EQ(base64(plain), encoded);
  EXPECT_EQ(base64(std::string("\xff\xfe\x00", 3)), "//4A");
}

}  // namespace troupe::core
