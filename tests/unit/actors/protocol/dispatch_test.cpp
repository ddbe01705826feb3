// A request reaches the handler of its kind; what a role does not take, or nobody can read, is
// refused.
#include "actors/protocol/dispatch.hpp"

#include "runtime/async/io_threads.hpp"
#include "runtime/wire/envelope.hpp"

#include <gtest/gtest.h>

namespace troupe::actors {

struct SmallRole {
  async::task<core::Result<Ack>> on(DrainReward request) {
    drained.push_back(request.name);
    co_return Ack{};
  }
  async::task<core::Result<Trained>> on(TrainCritic request) {
    if (request.groups == 0) co_return core::fail(core::ErrorCode::kNumeric, "no groups");
    co_return Trained{request.update + 1, {{"loss", 0.5}}};
  }
  std::vector<std::string> drained;
};
static_assert(Takes<SmallRole, DrainReward> && Takes<SmallRole, TrainCritic>);
static_assert(!Takes<SmallRole, DetachReward> && !Takes<SmallRole, Ack>);

namespace {

wire::Header request_header() {
  wire::Header header;
  header.run = core::RunId{7};
  header.request = core::RequestId{5};
  header.budget_ms = 100;
  header.sender = "controller/0";
  return header;
}

class Dispatch : public ::testing::Test {
 protected:
  core::Result<wire::Frame> answer_to(wire::Frame frame) {
    const cluster::Handler handler = handler_of(role_, "small/0");
    return io_.run(handler(std::move(frame)));
  }

  async::IoThreads io_{1};
  std::shared_ptr<SmallRole> role_ = std::make_shared<SmallRole>();
};

TEST_F(Dispatch, ARequestReachesItsHandlerAndTheAnswerItsAsker) {
  ASSERT_TRUE(answer_to(*to_frame(request_header(), DrainReward{"format"})));
  EXPECT_EQ(role_->drained, std::vector<std::string>{"format"});
  const auto reply = answer_to(*to_frame(request_header(), TrainCritic{3, 8}));
  ASSERT_TRUE(reply) << reply.error().message;
  const auto head = wire::read_header(*reply);
  EXPECT_TRUE(head->reply);
  EXPECT_EQ(head->sender, "small/0");
  EXPECT_EQ(head->request.value, 5u);
  const auto trained = from_frame<Trained>(*reply);
  ASSERT_TRUE(trained);
  EXPECT_EQ(trained->version, 4u);
  EXPECT_EQ(trained->metrics[0].first, "loss");
}

TEST_F(Dispatch, AHandlersErrorIsTheAnswer) {
  const auto reply = answer_to(*to_frame(request_header(), TrainCritic{3, 0}));
  ASSERT_FALSE(reply);
  EXPECT_EQ(reply.error().code, core::ErrorCode::kNumeric);
}

TEST_F(Dispatch, WhatARoleDoesNotTakeIsUnsupported) {
  for (const auto& frame :
       {*to_frame(request_header(), DetachReward{"format"}), *to_frame(request_header(), Ack{}),
        wire::ping_frame(request_header())}) {
    const auto reply = answer_to(frame);
    ASSERT_FALSE(reply);
    EXPECT_EQ(reply.error().code, core::ErrorCode::kUnsupported);
    EXPECT_EQ(reply.error().message, "small/0 does not answer " + wire::frame_kind(frame));
  }
  EXPECT_TRUE(role_->drained.empty());
}

TEST_F(Dispatch, AFrameThatNobodyCanReadIsBadData) {
  // One segment of one word, which is a struct pointer far outside.
  const auto frame = wire::Frame::from_words({std::uint64_t{1} << 32, 0xFFFF'FFFF'7FFF'FFFC});
  ASSERT_TRUE(frame);
  const auto reply = answer_to(*frame);
  ASSERT_FALSE(reply);
  EXPECT_EQ(reply.error().code, core::ErrorCode::kData);
}

}  // namespace
}  // namespace troupe::actors
