// Events of the ticket book as records: each is read back as it was; records that are none are
// refused. The bytes of one record are checked by hand against RFC 8949.
#include "actors/data/book_events.hpp"

#include <gtest/gtest.h>

#include <cmath>

namespace troupe::actors::data {
namespace {

constexpr experience::Ticket kTicket{7, 2, 1};

template <class Event>
Event again(const Event& event) {
  auto read = event_of(record_of(event));
  EXPECT_TRUE(read) << read.error().message;
  EXPECT_TRUE(std::holds_alternative<Event>(*read));
  return std::get<Event>(*read);
}

GroupTaken taken() {
  GroupTaken event{kTicket, {}, true};
  experience::Trajectory& first = event.samples.emplace_back();
  first.tokens = {5, -1, 1 << 30};
  first.behaviour = {-0.5f, -1e-42f, -INFINITY};
  first.versions = experience::VersionRuns{3, 3, 4};
  first.finish = experience::FinishReason::kLength;
  first.text = std::string("zero \0 and \xC3\xA9", 13);
  experience::Trajectory& second = event.samples.emplace_back();
  second.tokens = {9};
  second.behaviour = {0};
  second.versions = experience::VersionRuns{4};
  return event;
}

TEST(BookEvents, AGroupIsReadBackToTheBit) {
  const GroupTaken event = taken(), read = again(event);
  EXPECT_EQ(read.ticket, kTicket);
  EXPECT_TRUE(read.cut);
  ASSERT_EQ(read.samples.size(), 2u);
  for (std::size_t i = 0; i < 2; ++i) {
    EXPECT_EQ(read.samples[i].tokens, event.samples[i].tokens);
    EXPECT_EQ(read.samples[i].behaviour, event.samples[i].behaviour);
    EXPECT_EQ(read.samples[i].versions, event.samples[i].versions);
    EXPECT_EQ(read.samples[i].finish, event.samples[i].finish);
    EXPECT_EQ(read.samples[i].text, event.samples[i].text);
  }
}

TEST(BookEvents, StepsAreReadBackToTheBit) {
  const GroupScored scored = again(GroupScored{
      kTicket, 1, {0.5, std::nullopt}, {"", "lost"}, {}, "", {{{0, 0.1}, {7, -1e-300}}, {}}});
  ASSERT_EQ(scored.steps.size(), 2u);
  EXPECT_EQ(scored.steps[0], (std::vector<experience::StepReward>{{0, 0.1}, {7, -1e-300}}));
  EXPECT_TRUE(scored.steps[1].empty());
}

TEST(BookEvents, TicketsScoresLogprobsFailuresAndSetsAreReadBack) {
  const GroupsDropped dropped = again(GroupsDropped{6, 4});
  EXPECT_EQ(dropped.update, 6u);
  EXPECT_EQ(dropped.committed, 4u);

  const TicketIssued issued = again(TicketIssued{{kTicket, 40, 8, {3, 9}}, 12, 5});
  EXPECT_EQ(issued.saved, (SavedTicket{kTicket, 40, 8, {3, 9}}));
  EXPECT_EQ(issued.version_min, 12u);
  EXPECT_EQ(issued.set, 5u);

  const double third = 1.0 / 3;
  const GroupScored scored =
      again(GroupScored{kTicket, 1, {third, std::nullopt, -2}, {"", "late", ""}, {"{}", "", ""}});
  EXPECT_EQ(scored.member, 1u);
  EXPECT_EQ(scored.scores, (std::vector<std::optional<double>>{third, std::nullopt, -2}));
  EXPECT_EQ(scored.causes, (std::vector<std::string>{"", "late", ""}));
  EXPECT_EQ(scored.extras, (std::vector<std::string>{"{}", "", ""}));
  EXPECT_EQ(scored.row, "");
  EXPECT_EQ(again(GroupScored{kTicket, 1, {third}, {""}, {""}, "{\"a\":1}"}).row, "{\"a\":1}");

  const GroupReferenced referenced = again(GroupReferenced{kTicket, {{-1, -2}, {}, {-3}}});
  EXPECT_EQ(referenced.logprobs, (std::vector<std::vector<float>>{{-1, -2}, {}, {-3}}));

  EXPECT_EQ(referenced.by, FrozenModel::kReference);
  EXPECT_EQ(again(GroupReferenced{kTicket, {{-1}}, FrozenModel::kTeacher}).by,
            FrozenModel::kTeacher);

  const GroupFailed failed = again(GroupFailed{kTicket, FailureKind::kSetAside, "no engine"});
  EXPECT_EQ(failed.kind, FailureKind::kSetAside);
  EXPECT_EQ(failed.cause, "no engine");

  const EvaluationBegun begun = again(EvaluationBegun{experience::evaluation_after(9, true), "24"});
  EXPECT_EQ(begun.update, (std::uint64_t{1} << 63) + 19);
  EXPECT_EQ(begun.settings, "24");

  EXPECT_EQ(again(SetChanged{{2, 30, {{"a", "reward/a", 1}}, {}, "2 * a"}, 29}).set.formula,
            "2 * a");
  const SetChanged changed = again(SetChanged{{2, 30, {{"a", "reward/a", 0.1}}, {"b"}}, 29});
  EXPECT_EQ(changed.committed, 29u);
  EXPECT_EQ(changed.set.set, 2u);
  EXPECT_EQ(changed.set.from_update, 30u);
  ASSERT_EQ(changed.set.members.size(), 1u);
  EXPECT_EQ(changed.set.members[0].peer, "reward/a");
  EXPECT_EQ(changed.set.members[0].weight, 0.1);
  EXPECT_EQ(changed.set.lost, (std::vector<std::string>{"b"}));
}

// A map of 6 pairs (A6), keys as texts (60 + length), ids as a byte string.
TEST(BookEvents, ARecordIsAMapOfCbor) {
  const std::string record = record_of(GroupReferenced{{1, 0, 0}, {{1.0f}}});
  std::string expected = "\xA6";
  expected +=
      "\x65"
      "event\x6A"
      "referenced";
  expected +=
      "\x66"
      "update\x01";
  expected +=
      "\x64"
      "slot";
  expected += '\0';
  expected +=
      "\x67"
      "attempt";
  expected += '\0';
  expected +=
      "\x66"
      "counts\x81\x01";
  expected +=
      "\x68"
      "logprobs\x44";
  expected += std::string("\0\0\x80\x3F", 4);
  EXPECT_EQ(record, expected);
}

TEST(BookEvents, WhatIsNoEventIsRefused) {
  const std::string good = record_of(taken());
  for (std::size_t cut = 0; cut < good.size(); ++cut)
    EXPECT_FALSE(event_of(good.substr(0, cut))) << cut;
  EXPECT_FALSE(
      event_of("\xA1\x65"
               "event\x63"
               "new"));            // {"event": "new"}
  EXPECT_FALSE(event_of("\x01"));  // a number
  GroupTaken uneven = taken();
  uneven.samples[0].behaviour.pop_back();
  const auto read = event_of(record_of(uneven));
  ASSERT_FALSE(read);
  EXPECT_EQ(read.error().code, core::ErrorCode::kData);
}

}  // namespace
}  // namespace troupe::actors::data
