// Which server gets the next request: by load, window, failures and silence, on a clock of numbers.
#include "actors/reward/server_board.hpp"

#include "actors/reward/limits.hpp"

#include <gtest/gtest.h>

namespace troupe::actors::reward {
namespace {

using std::chrono_literals::operator""ms;
using std::chrono_literals::operator""s;
constexpr core::Duration kLimit = 30s;

core::TimePoint moment(core::Duration since_start) {
  return core::TimePoint{} + std::chrono::hours(1) + since_start;
}

const ServerBoard::Tried kNone2(2, false);

// Sends as many requests as there is room for at `now`; says to which servers.
std::string fill(ServerBoard& board, core::TimePoint now) {
  std::string places;
  while (const auto place = board.pick(ServerBoard::Tried(board.size(), false), now)) {
    places += std::to_string(*place);
    board.sent(*place);
  }
  return places;
}

}  // namespace

TEST(ServerBoard, EachServerBeginsWithOneRequestAndTheLeastLoadedIsNext) {
  ServerBoard board(3);
  EXPECT_EQ(fill(board, moment(0s)), "012");
  board.answered(1, moment(0s), moment(5s), kLimit);
  EXPECT_EQ(board.window(1), 2u) << "two answers of 5 s in a third of 30 s";
  EXPECT_EQ(fill(board, moment(5s)), "11");
}

TEST(ServerBoard, TheWindowGrowsWithEachQuickAnswerAndShrinksWithSlowOnes) {
  ServerBoard board(1);
  board.sent(0);
  board.answered(0, moment(0s), moment(1s), kLimit);
  EXPECT_EQ(board.window(0), 10u);
  EXPECT_EQ(fill(board, moment(1s)).size(), 10u);
  for (int i = 0; i < 4; ++i)
    board.answered(0, moment(1s), moment(2s), kLimit);
  EXPECT_EQ(board.window(0), 14u);
  board.answered(0, moment(1s), moment(13s), kLimit);
  EXPECT_EQ(board.window(0), 14u) << "12 s: neither";
  board.answered(0, moment(1s), moment(17s), kLimit);
  EXPECT_EQ(board.window(0), 13u) << "more than half of the deadline";
}

TEST(ServerBoard, AllServersTogetherHaveABound) {
  ServerBoard board(2);
  for (const std::size_t place : {0, 1}) {
    board.sent(place);
    board.answered(place, moment(0s), moment(1ms), kLimit);
    EXPECT_EQ(board.window(place), limits::kRewardRequests_max);
  }
  EXPECT_EQ(fill(board, moment(1s)).size(), limits::kRewardRequests_max);
  EXPECT_EQ(board.in_flight(0), limits::kRewardRequests_max / 2);
}

TEST(ServerBoard, AServerThatFailedIsProbedWithCopiesAtGrowingPauses) {
  ServerBoard board(2);
  EXPECT_EQ(fill(board, moment(0s)), "01");
  board.answered(1, moment(0s), moment(10ms), kLimit);
  board.failed(0, moment(20ms));
  EXPECT_FALSE(board.well(0));
  EXPECT_EQ(board.pick(kNone2, moment(20ms)), 1u);
  EXPECT_FALSE(board.probe(kNone2, moment(119ms)));
  ASSERT_EQ(board.probe(kNone2, moment(120ms)), 0u);
  board.sent(0);
  EXPECT_FALSE(board.probe(kNone2, moment(10s))) << "one at a time";
  board.failed(0, moment(130ms));
  EXPECT_FALSE(board.probe(kNone2, moment(329ms)));
  ASSERT_EQ(board.probe(kNone2, moment(330ms)), 0u);
  EXPECT_FALSE(board.probe({true, false}, moment(330ms))) << "it has had this request";
  board.sent(0);
  board.answered(0, moment(330ms), moment(340ms), kLimit);
  EXPECT_TRUE(board.well(0));
}

TEST(ServerBoard, ASilentServerIsSuspectUntilItAnswers) {
  ServerBoard board(2);
  EXPECT_EQ(board.patience(kLimit), kLimit) << "nobody knows yet how long an answer takes";
  EXPECT_EQ(fill(board, moment(0s)), "01");
  board.answered(1, moment(0s), moment(1s), kLimit);
  EXPECT_EQ(board.patience(kLimit), 1500ms);
  EXPECT_FALSE(board.suspect(0, moment(0s), moment(1400ms), kLimit));
  EXPECT_TRUE(board.suspect(0, moment(0s), moment(2s), kLimit));
  EXPECT_EQ(fill(board, moment(2s)), "1111111111") << "nothing for the silent one";
  EXPECT_EQ(board.in_flight(), 10u) << "its requests do not count";
  board.late(0, moment(0s), moment(30s), kLimit);
  EXPECT_FALSE(board.well(0));
  board.sent(0);
  board.answered(0, moment(30s), moment(31s), kLimit);
  EXPECT_TRUE(board.well(0));
  EXPECT_FALSE(board.suspect(0, moment(28s), moment(32s), kLimit)) << "it has answered since";
  EXPECT_TRUE(board.suspect(0, moment(28s), moment(33s), kLimit)) << "and then fell silent";
}

TEST(ServerBoard, OneLateAnswerAmongOthersIsNoFailure) {
  ServerBoard board(1);
  board.sent(0);
  board.answered(0, moment(0s), moment(1s), kLimit);
  board.sent(0);
  board.sent(0);
  board.answered(0, moment(30s), moment(31s), kLimit);
  board.late(0, moment(2s), moment(32s), kLimit);
  EXPECT_TRUE(board.well(0));
  EXPECT_EQ(board.window(0), 5u) << "half of 11";
}

TEST(ServerBoard, WithoutAWellServerEachIsTriedOnceARequest) {
  ServerBoard board(2);
  board.sent(0);
  board.sent(1);
  board.failed(0, moment(1s));
  board.failed(1, moment(1s));
  bool busy = false;
  EXPECT_FALSE(board.may_have_room(kNone2, moment(2s)));
  EXPECT_FALSE(board.last_resort(kNone2, moment(500ms), moment(2s), busy))
      << "they failed while this request waited";
  EXPECT_EQ(board.last_resort(kNone2, moment(2s), moment(2s), busy), 0u);
  EXPECT_FALSE(busy);
  board.sent(0);
  EXPECT_EQ(board.last_resort({false, true}, moment(2s), moment(2s), busy), 0u);
  EXPECT_TRUE(busy) << "one request at a time";
  board.silence(1, moment(60s));
  EXPECT_FALSE(board.last_resort({true, false}, moment(2s), moment(3s), busy));
  EXPECT_EQ(board.last_resort({true, false}, moment(2s), moment(61s), busy), 1u);
}

TEST(ServerBoard, AServerThatAskedForSilenceGetsNothingThoughItAnsweredOthers) {
  ServerBoard board(1);
  board.sent(0);
  board.answered(0, moment(0s), moment(1s), kLimit);
  board.silence(0, moment(10s));
  EXPECT_FALSE(board.pick({false}, moment(9s)));
  EXPECT_FALSE(board.may_have_room({false}, moment(9s)));
  EXPECT_TRUE(board.pick({false}, moment(10s)));
}

}  // namespace troupe::actors::reward
