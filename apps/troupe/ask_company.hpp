// Stays of a command in a running company, which it enters through the company's gateway: as long
// as the command lives, again after the company was lost, or for one question. On the main thread,
// which they block.
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

// The waits before a company is entered again; they double while it cannot be entered.
class ReentryWaits {
 public:
  // `was_in`: the last try got in. False when the user asks to stop.
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

// Asks the company from a node that is in.
template <class Request>
core::Result<typename Request::Reply> ask_from(const NodeGuest& guest,
                                               Request request,
                                               core::Duration deadline) {
  actors::RoleContext context = guest.context;
  context.call_deadline = deadline;
  return guest.run(actors::ask(std::move(context), "company/0", std::move(request)));
}

// Comes in, asks, leaves; takes at most `deadline`.
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
