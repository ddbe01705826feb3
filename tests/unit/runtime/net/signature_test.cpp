#include "runtime/net/signature.hpp"

#include <gtest/gtest.h>

namespace troupe::net {
namespace {

TEST(Signature, IsGoodForItsBytesAndItsKeyAlone) {
  const auto key = SigningKey::create(), other = SigningKey::create();
  ASSERT_TRUE(key && other);
  ASSERT_EQ(key->public_key().size(), kPublicKey_chars);
  EXPECT_NE(key->public_key(), other->public_key());
  auto signature = key->sign("a table");
  ASSERT_TRUE(signature) << signature.error().message;
  EXPECT_TRUE(is_signed("a table", *signature, key->public_key()));
  EXPECT_FALSE(is_signed("a tablf", *signature, key->public_key()));
  EXPECT_FALSE(is_signed("a table", *signature, other->public_key()));
  for (const std::string malformed : {"", "ab", "zz"})
    EXPECT_FALSE(is_signed("a table", *signature, malformed)) << malformed;
  (*signature)[17] ^= 1;
  EXPECT_FALSE(is_signed("a table", *signature, key->public_key()));
}

}  // namespace
}  // namespace troupe::net
