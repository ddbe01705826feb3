// How a command joins a running company through its gateway: to send one request (ask_company), or
// to stay, with retries after the company was lost (ReentryWaits). On the main thread, which they
// block.
#pragma once

#include "actors/limits.hpp"
#include "actors/protocol/ask.hpp"
#include "apps/cli/stop_signal.hpp"
#include "apps/session/node/join_flags.hpp"
#include "apps/session/node/node_process.hpp"

#include <unistd.h>

#include <algorithm>
#include <chrono>

namespace troupe::app {

// Waits before joining a company again; each failed try doubles the wait.
class ReentryWaits {
 public:
  // Waits. `was_in`: the last try got in. False when the user asks to stop.
  bool next(bool was_in) {
    wait_ = was_in ? core::Duration(actors::limits::kRestartAfter)
                   : std::min<core::Duration>(wait_ * 2, actors::limits::kRestartAfter_max);
    const auto until = std::chrono::steady_clock::now() + wait_;
    while (!stop_requested() && std::chrono::steady_clock::now() < until)
      ::usleep(20'000);
    return !stop_requested();
  }

 private:
  core::Duration wait_ = actors::limits::kRestartAfter;
};

// Sends a request to the company role from a node that has joined.
template <class Request>
core::Result<typename Request::Reply> ask_from(const NodeGuest& guest,
                                               Request request,
                                               core::Duration deadline) {
  actors::RoleContext context = guest.context;
  context.call_deadline = deadline;
  return guest.run(actors::ask(std::move(context), "company/0", std::move(request)));
}

// Joins, sends the request, leaves. `deadline`: for the request.
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
