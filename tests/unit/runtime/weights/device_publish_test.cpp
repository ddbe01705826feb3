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
  const SnapshotShape shape(params.layout());
  ASSERT_GT(shape.buckets, 1u);
  core::SerialTeam host;
  const auto expected = Snapshot::create(shape), found = Snapshot::create(shape);
  ASSERT_TRUE(expected && found);
  (*expected)->fill(host, params, 3);
  (*found)->fill(*device, there, 3);
  EXPECT_EQ(std::memcmp((*found)->bytes(), (*expected)->bytes(), shape.bytes()), 0);
}

TEST(DevicePublish, ASubscriberGetsThem) {
  std::string why;
  const auto device = model::make_device_team(why);
  if (device == nullptr) GTEST_SKIP() << why;
  model::ParamStore params(tiny());
  write_version(params, 5);
  const model::ParamStore there = params.to(device->memory());
  model::PackedWeights panels(tiny());
  core::SerialTeam host;
  // What the engine packs from the flat numbers of a snapshot.
  const SnapshotShape shape(params.layout());
  const auto snapshot = Snapshot::create(shape);
  ASSERT_TRUE(snapshot);
  (*snapshot)->fill(*device, there, 5);
  const auto* const flat =
      reinterpret_cast<const float*>((*snapshot)->bytes() + shape.data_offset());
  model::WeightPacker packer(panels, flat, 5);
  while (!packer.advance(host, kLong)) {
  }
  EXPECT_TRUE(holds_version(panels, 5));
}

}  // namespace
}  // namespace troupe::weights
