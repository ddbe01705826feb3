// Between the policy and a critic in another process. Processes know the roles of the head and
// their own, no others: the head is the middle of a star. So the policy's pages go to this role of
// the head, which asks the critic and hands the answer back as it came. Runs on its strand, keeps
// nothing.
#pragma once

#include "actors/protocol/ask.hpp"
#include "actors/protocol/messages_critic.hpp"
#include "actors/protocol/role_shell.hpp"

#include <string>
#include <utility>

namespace troupe::actors {

inline constexpr const char* kCriticRelay = "relay/critic";

class CriticRelay {
 public:
  CriticRelay(RoleContext context, std::string critic)
      : context_(std::move(context)), critic_(std::move(critic)) {}

  async::task<core::Result<CriticValues>> on(ScoreValues request) {
    auto reply = co_await ask(context_, critic_, std::move(request));
    co_return reply;
  }
  async::task<core::Result<Ack>> on(PutReturns request) {
    auto reply = co_await ask(context_, critic_, std::move(request));
    co_return reply;
  }
  async::task<core::Result<Trained>> on(TrainCritic request) {
    auto reply = co_await ask(context_, critic_, std::move(request));
    co_return reply;
  }

 private:
  RoleContext context_;
  std::string critic_;
};

}  // namespace troupe::actors
