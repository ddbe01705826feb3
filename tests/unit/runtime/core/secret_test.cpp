// Random keys, and comparing them.
#include "runtime/core/secret.hpp"

#include <gtest/gtest.h>

namespace {

using namespace troupe;

TEST(Secret, BytesAreWrittenInHexadecimal) {
  const unsigned char bytes[] = {0x00, 0x1f, 0xa0, 0xff};
  EXPECT_EQ(core::hex(bytes), "001fa0ff");
}

TEST(Secret, KeysAreRandomAndComparedWhole) {
  const std::string key = core::random_hex(32);
  EXPECT_EQ(key.size(), 64u);
  EXPECT_NE(key, core::random_hex(32));
  EXPECT_TRUE(core::same_secret(key, key));
  for (std::size_t i = 0; i < key.size(); ++i) {
    std::string other = key;
    other[i] = static_cast<char>(other[i] ^ 0x40);
    EXPECT_FALSE(core::same_secret(other, key)) << i;
  }
  EXPECT_FALSE(core::same_secret(key.substr(1), key));
  EXPECT_FALSE(core::same_secret(key + key, key));
  EXPECT_FALSE(core::same_secret("", key));
  EXPECT_FALSE(core::same_secret(key, ""));
}

}  // namespace
