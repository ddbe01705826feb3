// The controller's pure decisions, worked out by hand: routing, order of tickets, oldest weights.
#include "actors/controller/failure_book.hpp"
#include "actors/controller/router.hpp"
#include "actors/controller/run_plan.hpp"
#include "actors/controller/ticket_queue.hpp"
#include "actors/controller/update_metrics.hpp"
#include "actors/controller/version_starts.hpp"
#include "actors/data/data_role.hpp"

#include <gtest/gtest.h>

namespace troupe::actors::controller {
namespace {

TicketWork training(std::uint64_t update, std::uint32_t slot, std::uint32_t attempt = 0) {
  TicketWork work;
  work.ticket = {update, slot, attempt};
  work.samples = 4;
  return work;
}

TicketWork evaluation(std::uint32_t slot) {
  TicketWork work;
  work.ticket = {experience::kFirstEvaluation, slot, 0};
  work.kind = WorkKind::kEvaluation;
  return work;
}

std::optional<TicketWork> pop(TicketQueue& queue, WorkKind kind) {
  std::optional<TicketWork> first;
  queue.offer(kind, [&first](const TicketWork& work) {
    if (first) return TicketQueue::Offer::kEnough;
    first = work;
    return TicketQueue::Offer::kTaken;
  });
  return first;
}

Router fresh_router() {
  Router router(8, 128);
  for (const char* name : {"a", "b"}) {
    router.up(name);
    router.holds(name, 0);
  }
  return router;
}

}  // namespace

TEST(Router, PicksTheLeastLoadedByNameWhenEqual) {
  Router router = fresh_router();
  EXPECT_EQ(router.pick(training(0, 0), 4), "a");
  router.sent("a", training(0, 0));
  EXPECT_EQ(router.pick(training(0, 1), 4), "b");
  router.sent("b", training(0, 1));
  router.sent("b", training(0, 2));
  EXPECT_EQ(router.pick(training(0, 3), 4), "a");
  router.ended("b", training(0, 1));
  router.ended("b", training(0, 2));
  EXPECT_EQ(router.pick(training(0, 3), 4), "b");
}

TEST(Router, SendsNothingToStaleFullBlockedOrLostGenerators) {
  Router router(8, 128);
  router.up("a");
  EXPECT_EQ(router.pick(training(0, 0), 4), std::nullopt) << "stale";
  router.holds("a", 0);
  EXPECT_EQ(router.pick(training(0, 0), 4), "a");
  router.sent("a", training(0, 0));
  EXPECT_EQ(router.pick(training(0, 1), 1), std::nullopt) << "at its capacity";
  EXPECT_EQ(router.pick(evaluation(0), 1), "a") << "evaluations have a capacity of their own";
  router.block("a", true);
  EXPECT_EQ(router.pick(training(0, 1), 2), std::nullopt) << "blocked";
  router.block("a", false);
  router.down("a");
  EXPECT_EQ(router.pick(training(0, 1), 2), std::nullopt) << "lost";
  router.up("a");
  router.holds("a", 0);
  EXPECT_EQ(router.samples("a"), 0) << "a new life begins without load";
}

TEST(Router, ATicketWaitsForOneThatHoldsItsWeightsAndAvoidsWhereItFailed) {
  Router router = fresh_router();
  TicketWork next = training(1, 0);
  next.version_min = 5;
  EXPECT_EQ(router.pick(next, 4), std::nullopt) << "both would only hold it";
  router.holds("b", 5);
  EXPECT_EQ(router.pick(next, 4), "b");
  EXPECT_EQ(router.pick(training(0, 0), 4), "a");
  EXPECT_EQ(router.pick(training(0, 0), 4, {"a"}), "b");
  EXPECT_EQ(router.pick(next, 4, {"b"}), std::nullopt);
  EXPECT_TRUE(router.others_for(next, {"a"}));
  EXPECT_FALSE(router.others_for(next, {"b"}));
  EXPECT_TRUE(router.others_for(training(0, 0), {"b"}));
}

TEST(Router, AKnownPromptStaysWithItsGeneratorWithinTheMargin) {
  Router router = fresh_router();
  router.sent("b", evaluation(3));
  router.ended("b", evaluation(3));
  EXPECT_EQ(router.pick(evaluation(3), 64), "b");
  router.sent("b", training(0, 0));
  router.sent("b", training(0, 1));
  EXPECT_EQ(router.pick(evaluation(3), 64), "b") << "8 samples above is within the margin";
  router.sent("b", evaluation(9));
  EXPECT_EQ(router.pick(evaluation(3), 64), "a") << "9 above is not";
  EXPECT_EQ(router.pick(evaluation(4), 64), "a") << "a prompt that nobody has seen";
}

TEST(TicketQueue, GivesEvaluationsThenUpdatesThenFreshAttemptsThenSlots) {
  TicketQueue queue;
  queue.put(training(1, 0));
  queue.put(training(0, 2));
  queue.put(training(0, 0));
  queue.put(training(0, 7, 1));
  queue.put(evaluation(5));
  EXPECT_EQ(pop(queue, WorkKind::kEvaluation)->ticket.slot, 5u);
  std::vector<experience::Ticket> order;
  while (const auto work = pop(queue, WorkKind::kTraining))
    order.push_back(work->ticket);
  const std::vector<experience::Ticket> wanted = {{0, 7, 1}, {0, 0, 0}, {0, 2, 0}, {1, 0, 0}};
  EXPECT_EQ(order, wanted);
}

TEST(TicketQueue, ATicketThatComesBackIsFirstAgainAndOnlyOnce) {
  TicketQueue queue;
  for (std::uint32_t slot = 0; slot < 3; ++slot)
    queue.put(training(0, slot));
  const TicketWork taken = *pop(queue, WorkKind::kTraining);
  queue.put(taken);
  queue.put(taken);
  EXPECT_EQ(queue.size(), 3u);
  EXPECT_EQ(pop(queue, WorkKind::kTraining)->ticket.slot, 0u);
  queue.forget(0);
  EXPECT_EQ(queue.size(), 0u);
}

TEST(TicketQueue, OffersEachInOrderUntilThereIsEnough) {
  using Offer = TicketQueue::Offer;
  TicketQueue queue;
  for (std::uint32_t slot = 0; slot < 4; ++slot)
    queue.put(training(0, slot));
  std::vector<std::uint32_t> offered;
  queue.offer(WorkKind::kTraining, [&](const TicketWork& work) {
    offered.push_back(work.ticket.slot);
    if (work.ticket.slot == 2) return Offer::kEnough;
    return work.ticket.slot == 0 ? Offer::kLeft : Offer::kTaken;
  });
  EXPECT_EQ(offered, (std::vector<std::uint32_t>{0, 1, 2}));
  EXPECT_EQ(queue.size(), 3u);
  EXPECT_EQ(pop(queue, WorkKind::kTraining)->ticket.slot, 0u) << "what was left keeps its place";
  EXPECT_EQ(pop(queue, WorkKind::kTraining)->ticket.slot, 2u);
}

TEST(FailureBook, CountsFailuresAndRemembersWhere) {
  FailureBook book;
  EXPECT_EQ(book.where({0, 1, 0}), nullptr);
  EXPECT_EQ(book.add({0, 1, 0}, "a"), 1u);
  EXPECT_EQ(book.add({0, 1, 0}, "b"), 2u);
  EXPECT_EQ(book.add({0, 1, 0}, "a"), 3u);
  EXPECT_EQ(*book.where({0, 1, 0}), (std::set<std::string>{"a", "b"}));
  EXPECT_EQ(book.add({0, 1, 1}, "a"), 1u) << "another attempt is another ticket";
  EXPECT_EQ(book.add({1, 0, 0}, "a"), 1u);
  book.forget_update(0);
  EXPECT_EQ(book.where({0, 1, 0}), nullptr);
  book.forget({1, 0, 0});
  EXPECT_TRUE(book.empty());
}

TEST(VersionStarts, TheOldestWeightsOfAnUpdateAreThoseOfTheBound) {
  VersionStarts starts(2);
  starts.record(0, 0);
  EXPECT_EQ(starts.min_for(0), 0u);
  EXPECT_EQ(starts.min_for(2), 0u);
  starts.record(1, 4);
  starts.record(2, 8);
  EXPECT_EQ(starts.min_for(2), 0u);
  EXPECT_EQ(starts.min_for(3), 4u);
  EXPECT_EQ(starts.min_for(4), 8u);
  EXPECT_EQ(starts.window(1), (std::vector<core::Version>{0, 4}));
  starts.record(3, 12);
  starts.record(4, 16);
  EXPECT_EQ(starts.window(4), (std::vector<core::Version>{4, 8, 12, 16})) << "bound plus two";
}

TEST(VersionStarts, AResumedRunKnowsNothingOlderThanItsFirstUpdate) {
  VersionStarts starts(3);
  starts.record(10, 40);
  EXPECT_EQ(starts.min_for(10), 40u);
  EXPECT_EQ(starts.min_for(13), 40u);
}

TEST(VersionStarts, WithoutStalenessOnlyTheWeightsOfTheUpdateWillDo) {
  VersionStarts starts(0);
  starts.record(0, 0);
  starts.record(1, 3);
  EXPECT_EQ(starts.min_for(1), 3u);
}

TEST(RunPlan, IssuesAsFarAheadAsTheBound) {
  RunPlan plan;
  plan.updates = 10;
  plan.staleness_max = 2;
  EXPECT_TRUE(plan.may_issue(5, 3));
  EXPECT_FALSE(plan.may_issue(6, 3));
  EXPECT_FALSE(plan.may_issue(10, 9)) << "no tickets beyond the last update";
}

TEST(UpdateMetrics, AgesAreWeightedByTokens) {
  GroupStatuses statuses;
  statuses.staleness = {30, 10, 0, 0};
  statuses.crossed = 2;
  Metrics metrics = {{"async/staleness_mean", 9.0}};
  add_staleness_metrics(statuses, metrics);
  const Metrics wanted = {
      {"async/staleness_mean", 0.25}, {"async/staleness_max", 1.0}, {"async/crossed", 2.0}};
  EXPECT_EQ(metrics, wanted);
}

}  // namespace troupe::actors::controller
