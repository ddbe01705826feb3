// Carries the questions of ranks that look for their gang from the threads of roles to the company,
// while there is one. Owned by the node's process.
#pragma once

#include "actors/gang/company_rendezvous.hpp"
#include "actors/protocol/role_shell.hpp"
#include "runtime/async/task.hpp"

#include <future>
#include <memory>

namespace troupe::session {

class MeetCalls {
 public:
  // `strand`: of the node's role.
  explicit MeetCalls(async::Executor strand) : strand_(std::move(strand)) {}

  // The node's role is in a company, or leaves it. On the thread of the strand.
  void enable(const actors::RoleContext& context) { context_ = context; }
  void disable() { context_ = {}; }

  // A function that asks the company, on any thread but the strand's, as long as this object lives.
  // Error kPeerLost: there is no company, or it went away.
  actors::gang::AskToMeet asking();

 private:
  using Answer = std::promise<core::Result<actors::GangMet>>;
  static async::task<void> ask_company(actors::RoleContext context,
                                       actors::MeetGang request,
                                       std::shared_ptr<Answer> answer);
  core::Result<actors::GangMet> meet(actors::MeetGang request, const std::atomic<bool>& given_up);

  const async::Executor strand_;
  actors::RoleContext context_;  // without a scope: there is no company
};

}  // namespace troupe::session
