// How clusters are written, and what is refused.
#include "runtime/plan/cluster.hpp"

#include <gtest/gtest.h>

namespace troupe::plan {
namespace {

TEST(Cluster, IsNodesDevicesAndACard) {
  const auto large = parse_cluster("16x8xA100-80");
  ASSERT_TRUE(large);
  EXPECT_EQ(large->nodes, 16);
  EXPECT_EQ(large->devices_each, 8);
  EXPECT_EQ(large->devices(), 128);
  EXPECT_EQ(large->card, "A100-80");
  EXPECT_EQ(large->device_bytes, 80'000'000'000);
  EXPECT_EQ(large->name_of(17), "node 2 device 1");
  EXPECT_EQ(large->text(), "16 nodes of 8 A100-80");
  const auto small = parse_cluster("4xRTX-3090-24");
  ASSERT_TRUE(small);
  EXPECT_EQ(small->nodes, 1);
  EXPECT_EQ(small->device_bytes, 24'000'000'000);
  EXPECT_EQ(parse_cluster("1x1xT4-14.5")->device_bytes, 14'500'000'000);
}

TEST(Cluster, NonsenseIsRefusedWithWhatIsExpected) {
  for (const char* text :
       {"", "8", "x", "H100-80", "8x8", "8x8xH100", "8x8xH100-", "8x8x-80", "0x8xH100-80",
        "8x0xH100-80", "-1x8xH100-80", "8x8x8xH100-80", "8x8xH100-0", "8x8xH100-nan",
        "8x8xH100-80GB", "8 x8xH100-80", "99999999999999999999x8xH100-80", "8x8xH100-1e99"}) {
    const auto cluster = parse_cluster(text);
    ASSERT_FALSE(cluster) << text;
    EXPECT_EQ(cluster.error().code, core::ErrorCode::kConfig);
    EXPECT_NE(cluster.error().message.find("--cluster " + std::string(text)), std::string::npos);
    EXPECT_NE(cluster.error().message.find("8x8xH100-80"), std::string::npos);
  }
}

TEST(Cluster, ProcessorsAreOneHost) {
  const Cluster host = processors(0);
  EXPECT_TRUE(host.on_host());
  EXPECT_EQ(host.name_of(0), "the host");
  EXPECT_EQ(host.device_bytes, 0);
}

}  // namespace
}  // namespace troupe::plan
