// The commands of a gang reach the other ranks with all their bits.
#include "actors/gang/gang_command.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

namespace troupe::actors::gang {
namespace {

GangCommand full_command() {
  GangCommand command{GangCall::kTrain, "/run/ckpt/step_3", "/model"};
  for (std::uint32_t slot = 0; slot < 3; ++slot) {
    experience::Group group;
    group.ticket = {7, slot, slot + 1};
    group.prompt = {1, -2, 3};
    for (int i = 0; i < 2; ++i) {
      experience::Trajectory sample;
      sample.tokens = {4, 5, 6};
      sample.behaviour = {-0.25f, -1e-38f, -std::numeric_limits<float>::denorm_min()};
      sample.versions.add(3, 1);
      sample.versions.add(4, 2);
      sample.finish = experience::FinishReason::kLength;
      sample.text = std::string("a\0b", 3);
      sample.reference = {-0.5f, -0.125f, -0.0f};
      sample.values = {1.5f, 2.5f, std::nextafter(3.5f, 4.0f)};
      if (i == 0) sample.score = 0.1;
      group.samples.push_back(sample);
    }
    command.groups.push_back(group);
    command.old.push_back({{0.5f, -0.0f}, {}});
    command.returns.push_back({{1.0f, std::numeric_limits<float>::quiet_NaN()}, {2.0f}});
  }
  command.rows = {{4, {1}, {2, 3}, {-4}, {}, 0.1, true, "a.jsonl", 7},
                  {5, {}, {2, 3}, {}, {0, 1}, -0.0, false, "b.json", 1}};
  return command;
}

}  // namespace

TEST(GangCommand, ArrivesWithAllItsBits) {
  const GangCommand command = full_command();
  const auto bytes = to_bytes(command);
  ASSERT_TRUE(bytes);
  const auto read = command_of(*bytes);
  ASSERT_TRUE(read) << read.error().message;
  EXPECT_EQ(read->call, GangCall::kTrain);
  EXPECT_EQ(read->folder, command.folder);
  EXPECT_EQ(read->other_folder, command.other_folder);
  ASSERT_EQ(read->groups.size(), 3u);
  const experience::Trajectory& sample = read->groups[2].samples[0];
  EXPECT_EQ(read->groups[2].ticket, command.groups[2].ticket);
  EXPECT_EQ(sample.text, command.groups[2].samples[0].text);
  EXPECT_EQ(sample.score, 0.1);
  EXPECT_FALSE(read->groups[2].samples[1].score.has_value());
  ASSERT_EQ(read->rows.size(), 2u);
  EXPECT_EQ(read->rows[1].learn, command.rows[1].learn);
  EXPECT_EQ(read->rows[0].file, "a.jsonl");
  const auto again = to_bytes(*read);
  ASSERT_TRUE(again);
  EXPECT_EQ(*again, *bytes) << "every field and bit";
}

TEST(GangCommand, EveryCallArrivesAsItself) {
  for (std::uint32_t call = 0; call < kGangCalls; ++call) {
    const auto bytes = to_bytes({static_cast<GangCall>(call)});
    const auto read = command_of(*bytes);
    ASSERT_TRUE(read);
    EXPECT_EQ(static_cast<std::uint32_t>(read->call), call);
    EXPECT_NE(std::string(word_of(read->call)), "");
  }
}

TEST(GangCommand, TornBytesAreAnError) {
  const auto bytes = to_bytes(full_command());
  ASSERT_TRUE(bytes);
  for (std::size_t size = 0; size < bytes->size(); size += size < 256 ? 1 : 37)
    EXPECT_FALSE(command_of(std::span(*bytes).first(size))) << size;
  auto longer = *bytes;
  longer.push_back(std::byte{0});
  EXPECT_FALSE(command_of(longer));
  auto unknown = *bytes;
  unknown[0] = std::byte{kGangCalls};
  EXPECT_FALSE(command_of(unknown));
}

}  // namespace troupe::actors::gang
