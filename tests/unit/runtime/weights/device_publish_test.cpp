// Weights on a device are published as those of the host are: the same bytes, the same checksums.
#include "runtime/model/weights_gate.hpp"
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

TEST(DevicePublish, AShareOfWeightsThatComeInPartsHasThemToo) {
  std::string why;
  const auto device = model::make_device_team(why);
  if (device == nullptr) GTEST_SKIP() << why;
  model::ParamStore params(wide());
  write_version(params, 3);
  const model::ParamStore there = params.to(device->memory());
  constexpr auto kType = kernels::PanelDtype::kBf16;
  const Share share{1, 2};
  ImageWriter here(wide(), kType, core::host_memory(), share);
  ImageWriter on_device(wide(), kType, device->memory(), share);
  const std::uint32_t buckets = here.shape().buckets;
  const auto bytes = static_cast<std::int64_t>(here.shape().image_bytes_of(share));
  core::Buffer<char> expected(bytes), found(bytes);
  std::vector<std::uint32_t> expected_table(buckets), table(buckets);
  core::SerialTeam host;
  here.write(host, params, expected.data(), expected_table);
  for (const auto& ranges : model::ranges_of_parts(params.spec(), params.layout()))
    for (const core::Range range : ranges)
      on_device.write_part(*device, there.data(), range, found.data());
  on_device.finish(*device, found.data(), table);
  EXPECT_EQ(std::memcmp(found.data(), expected.data(), static_cast<std::size_t>(bytes)), 0);
  EXPECT_EQ(table, expected_table);
}

}  // namespace
}  // namespace troupe::weights
