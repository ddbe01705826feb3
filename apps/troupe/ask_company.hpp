// For commands that join a running company through its gateway: ask_company sends one request and
// leaves. On the main thread, which it blocks.
#pragma once

#include "actors/node/log_backlog.hpp"
#include "actors/protocol/ask.hpp"
#include "apps/cli/words.hpp"
#include "apps/session/node/join_flags.hpp"
#include "apps/session/node/node_process.hpp"

#include <unistd.h>

namespace troupe::app {

// What this process says from now on, for the company.
inline std::shared_ptr<actors::node::LogBacklog> overheard() {
  auto log = std::make_shared<actors::node::LogBacklog>();
  cli::overhear([log](const std::string& text) { log->put(text); });
  return log;
}

// Sends a request from an admitted node to the company role.
template <class Request>
Result<typename Request::Reply> ask_from(const session::NodeGuest& guest,
                                         Request request,
                                         core::Duration deadline) {
  actors::RoleContext context = guest.context;
  context.call_deadline = deadline;
  return guest.run(actors::ask(std::move(context), "company/0", std::move(request)));
}

// Joins the company, sends the request to the company role, and leaves. `deadline`: of the request
// alone.
template <class Request>
Result<typename Request::Reply> ask_company(const session::JoinFlags& flags,
                                            Request request,
                                            core::Duration deadline) {
  TROUPE_TRY_ASSIGN(target, session::find_company(flags));
  async::IoThreads io(1);
  session::NodeSelf self;
  self.name = "node/visitor-" + std::to_string(::getpid());
  self.run_id = target.run_id;
  self.run = target.run;
  Result<typename Request::Reply> reply = fail(ErrorCode::kInternal, "not asked");
  session::NodeCalls calls;
  calls.note = [](const std::string&) {};
  calls.once_in = [&](session::NodeGuest guest) -> Result<bool> {
    reply = ask_from(guest, std::move(request), deadline);
    return false;
  };
  TROUPE_TRY(session::live_through_gateway(io, target, std::move(self), calls));
  return reply;
}

}  // namespace troupe::app
