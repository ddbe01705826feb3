#include "runtime/sessions/session.hpp"

#include "runtime/core/checked_change.hpp"

#include <gtest/gtest.h>

#include <limits>

namespace troupe::sessions {
namespace {

using Ids = std::vector<std::int32_t>;

std::size_t add(Session& session,
                const Ids& prompt,
                Ids drawn,
                std::shared_ptr<Session::Request> request = nullptr) {
  if (!request) request = session.begin(prompt);
  CallPrompt at;
  at.tokens = prompt;
  at.place = session.place(prompt);
  Call call;
  call.drawn.behaviour.assign(drawn.size(), -1.0f);
  call.drawn.versions = experience::VersionRuns::all(1, drawn.size());
  call.drawn.tokens = std::move(drawn);
  return session.add(*request, at, std::move(call));
}

TEST(Session, ARetryTakesThePlaceOfWhatWasAnsweredLast) {
  Session session("s", {});
  const auto first = session.begin({1});
  add(session, {1}, {2}, first);
  const auto other = session.begin({1, 2, 3});
  const std::size_t answered = add(session, {1, 2, 3}, {5}, other);
  session.retry({1, 2, 3});
  EXPECT_TRUE(session.superseded(*other));
  EXPECT_FALSE(session.superseded(*first));
  EXPECT_TRUE(session.tree().at(answered).dropped);
  EXPECT_FALSE(session.superseded(*session.begin({1, 2, 3})))
      << "the request that asks again counts";
  session.retry({9});
  EXPECT_EQ(session.tree().leaves(), (std::vector<std::size_t>{0})) << "nobody asked for it before";
}

// The same question was asked and answered before; what is lost is the answer to the second.
TEST(Session, ARetryLeavesEarlierAnswersToTheSamePromptAlone) {
  Session session("s", {});
  const std::size_t had = add(session, {1}, {2});
  const auto cut = session.begin({1});
  session.retry({1});
  EXPECT_TRUE(session.superseded(*cut));
  EXPECT_FALSE(session.tree().at(had).dropped);
  const std::size_t again = add(session, {1}, {3});
  session.retry({1});
  EXPECT_TRUE(session.tree().at(again).dropped);
  EXPECT_FALSE(session.tree().at(had).dropped);
}

TEST(Session, WhatSomebodyWentOnFromIsNotDropped) {
  Session session("s", {});
  add(session, {1}, {2});
  add(session, {1, 2, 3}, {4});
  session.retry({1});
  EXPECT_FALSE(session.tree().at(0).dropped) << "its client has it";
}

// A retry may mean one of the latest requests; those that are being answered stay known.
TEST(Session, OldRequestsAreForgotten) {
  Session session("s", {});
  const std::size_t old = add(session, {1}, {2});
  const auto running = session.begin({2});
  for (std::size_t i = 0; i < 2 * kSessionRequests_kept; ++i)
    session.begin({7, static_cast<std::int32_t>(i)});
  EXPECT_TRUE(session.busy());
  session.retry({1});
  EXPECT_FALSE(session.tree().at(old).dropped);
  session.retry({2});
  EXPECT_TRUE(session.superseded(*running));
}

TEST(Session, RefusesCallsBeyondItsBoundsAndBehindItsEnd) {
  Session few("s", {.calls_max = 1});
  EXPECT_FALSE(few.refusal());
  add(few, {1}, {2});
  EXPECT_NE(few.refusal().value_or("").find("1 calls"), std::string::npos);
  Session small("s", {.tokens_max = 3});
  add(small, {1, 2}, {3});
  EXPECT_NE(small.refusal().value_or("").find("3 tokens"), std::string::npos);
  Session over("s", {});
  over.end();
  EXPECT_NE(over.refusal().value_or("").find("has ended"), std::string::npos);
  EXPECT_TRUE(over.reward(1, {})) << "it may come late";
  EXPECT_TRUE(over.rewarded());
  over.close();
  EXPECT_FALSE(over.reward(1, {}));
}

// A hostile client: as many forks of one prompt as there may be. Then it is told to begin another
// session, and what it has is still found.
TEST(Session, AHundredThousandCallsAreTakenAndNoMore) {
  const bool checks = core::checks_invariants();
  core::check_invariants(false);  // each looks at all calls
  Session session("s", {});
  CallPrompt prompt;
  prompt.tokens = {1};
  std::int32_t calls = 0;
  for (; !session.refusal(); ++calls) {
    Call call;
    call.drawn.tokens = {calls % 7, calls};
    call.drawn.behaviour = {-1, -1};
    call.drawn.versions = experience::VersionRuns::all(1, 2);
    session.add(*session.begin(prompt.tokens), prompt, std::move(call));
  }
  core::check_invariants(checks);
  EXPECT_EQ(static_cast<std::size_t>(calls), SessionBounds().calls_max);
  EXPECT_NE(session.refusal().value_or("").find("begin another"), std::string::npos);
  const auto place = session.place(Ids{1, 5, 5, 8});
  EXPECT_EQ(place.parent, 5u);
  EXPECT_EQ(place.shared, 3u);
}

TEST(Session, RewardsAreFiniteNumbersOfCallsThatThereAre) {
  Session session("s", {});
  const std::size_t call = add(session, {1}, {2});
  EXPECT_FALSE(session.reward(std::numeric_limits<double>::quiet_NaN(), {}));
  EXPECT_FALSE(session.reward(1, call + 1));
  EXPECT_TRUE(session.reward(0.5, call));
  EXPECT_TRUE(session.reward(0.25, {}));
  EXPECT_EQ(session.tree().at(call).reward, 0.5);
  EXPECT_EQ(session.score(), 0.25);
  session.drop(call);
  EXPECT_FALSE(session.reward(1, call)) << "its client does not have it";
}

}  // namespace
}  // namespace troupe::sessions
