// Networks as users write them, and this host's address in one.
#include "runtime/net/own_address.hpp"

#include <gtest/gtest.h>

namespace troupe::net {

TEST(OwnAddress, IsTheOneInTheNetwork) {
  for (const char* network : {"127.0.0.0/8", "127.0.0.1/32", "127.0.0.0/9"}) {
    const auto address = own_address_in(network);
    ASSERT_TRUE(address) << address.error().message;
    EXPECT_EQ(*address, "127.0.0.1") << network;
  }
}

TEST(OwnAddress, ANetworkWithoutThisHostIsNamed) {
  for (const char* network : {"203.0.113.0/24", "127.0.0.2/32", "127.128.0.0/9"}) {
    const auto address = own_address_in(network);
    ASSERT_FALSE(address) << network;
    EXPECT_EQ(address.error().code, core::ErrorCode::kConfig);
    EXPECT_NE(address.error().message.find(network), std::string::npos);
  }
}

TEST(OwnAddress, WhatIsNoNetworkIsRefused) {
  for (const char* text : {"", "10.0.0.1", "10.0.0.0/", "10.0.0.0/33", "10.0.0.0/-1", "ten/8",
                           "10.0.0.0/8x", "fd00::/129"})
    EXPECT_FALSE(check_network(text)) << text;
  for (const char* text : {"10.0.0.0/8", "0.0.0.0/0", "fd00::/8", "10.1.2.3/32"})
    EXPECT_TRUE(check_network(text)) << text;
}

}  // namespace troupe::net
