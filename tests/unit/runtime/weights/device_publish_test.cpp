// Weights on a device are published as those of the host are: the same bytes, the same checksums.
#include "runtime/weights/snapshot.hpp"
#include "tests/unit/runtime/model/device_team.hpp"
#include "tests/unit/runtime/weights/fixture.hpp"

#include <gtest/gtest.h>

namespace troupe::weights {
namespace {

TEST(DevicePublish, ASnapshotHasTheBytesOfTheHosts) {
  std::string why;
  const auto device = model::make_device_team(why);
  if (device == nullptr) GTEST_SKIP() << why;
  model::ParamStore params(wide());
  write_version(params, 3);
  const model::ParamStore there = params.to(device->memory());
  constexpr auto kType = kernels::PanelDtype::kBf16;
  ImageWriter here(wide(), kType), on_device(wide(), kType, device->memory());
  ASSERT_GT(here.shape().buckets, 1u);
  core::SerialTeam host;
  const auto expected = Snapshot::create(here.shape()), found = Snapshot::create(here.shape());
  ASSERT_TRUE(expected && found);
  fill(**expected, host, here, params, 3);
  fill(**found, *device, on_device, there, 3);
  EXPECT_EQ(std::memcmp((*found)->bytes(), (*expected)->bytes(), here.shape().bytes()), 0);
}

}  // namespace
}  // namespace troupe::weights
