// Decodes a request's frame, calls the role's `on(Request)` and encodes its answer. A role takes
// the requests that it has an `on` for; any other is answered with kUnsupported. Runs on the role's
// strand.
#pragma once

#include "actors/protocol/frames.hpp"
#include "actors/protocol/messages_calls.hpp"
#include "actors/protocol/messages_critic.hpp"
#include "actors/protocol/messages_node.hpp"
#include "actors/protocol/messages_rewards.hpp"
#include "actors/protocol/messages_rows.hpp"
#include "actors/protocol/role_shell.hpp"
#include "runtime/cluster/transport.hpp"

#include <memory>
#include <string>
#include <utility>

namespace troupe::actors {

template <class Role, class Request>
concept Takes = requires(Role& role, Request request) {
  role.on(std::move(request));
};

template <class Request, class Role>
async::task<core::Result<wire::Frame>> answer_request(std::shared_ptr<Role> role,
                                                      wire::Frame frame,
                                                      std::string self) {
  TROUPE_CO_TRY_ASSIGN(header, wire::read_header(frame));
  TROUPE_CO_TRY_ASSIGN(request, from_frame<Request>(std::move(frame)));
  TROUPE_CO_TRY_ASSIGN(reply, co_await role->on(std::move(request)));
  co_return to_frame(wire::reply_header(header, std::move(self)), reply);
}

inline async::task<core::Result<wire::Frame>> refuse_frame(wire::Frame frame, std::string self) {
  TROUPE_CO_TRY(wire::read_header(frame));
  co_return core::fail(core::ErrorCode::kUnsupported,
                       self + " does not answer " + wire::frame_kind(frame));
}

// The handler for Transport::serve: all `on` functions of a role in one. Keeps the role alive.
template <class Role>
cluster::Handler handler_of(std::shared_ptr<Role> role, std::string self) {
  return [role, self](wire::Frame frame) {
    switch (wire::body_arm(frame)) {
#define MESSAGE(Name, arm)                                                                      \
  case arm:                                                                                     \
    if constexpr (Takes<Role, Name>) return answer_request<Name>(role, std::move(frame), self); \
    break;
#include "schema/messages.inc"
#undef MESSAGE
      default:
        break;
    }
    return refuse_frame(std::move(frame), self);
  };
}

}  // namespace troupe::actors
