// One question to a running company: comes in through its gateway, asks, leaves. For commands that
// only want an answer. Blocks the main thread, at most for the deadline.
#pragma once

#include "actors/protocol/ask.hpp"
#include "apps/session/node/join_flags.hpp"
#include "apps/session/node/node_process.hpp"

#include <unistd.h>

#include <memory>
#include <optional>

namespace troupe::app {

// From a node that is in.
template <class Request>
core::Result<typename Request::Reply> ask_from(const NodeGuest& guest,
                                               Request request,
                                               core::Duration deadline) {
  actors::RoleContext context = guest.context;
  context.call_deadline = deadline;
  return guest.run(actors::ask(std::move(context), "company/0", std::move(request)));
}

template <class Request>
core::Result<typename Request::Reply> ask_company(const JoinFlags& flags,
                                                  Request request,
                                                  core::Duration deadline) {
  TROUPE_TRY_ASSIGN(target, find_company(flags));
  async::IoThreads io(1);
  NodeSelf self;
  self.name = "node/visitor-" + std::to_string(::getpid());
  core::Result<typename Request::Reply> reply = core::fail(core::ErrorCode::kInternal, "not asked");
  NodeCalls calls;
  calls.note = [](const std::string&) {};
  calls.once_in = [&](NodeGuest guest) -> core::Result<bool> {
    reply = ask_from(guest, std::move(request), deadline);
    return false;
  };
  TROUPE_TRY(live_through_gateway(io, target, std::move(self), calls));
  return reply;
}

}  // namespace troupe::app
