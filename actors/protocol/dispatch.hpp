// From a request frame to the role's `on(Request)` and back to the answer's frame. A role lists the
// requests it takes; anything else is answered with kUnsupported. Runs on the role's strand.
#pragma once

#include <memory>

#include "actors/protocol/frames.hpp"
#include "actors/protocol/role_shell.hpp"
#include "runtime/cluster/transport.hpp"

namespace troupe::actors {
namespace detail {

template <class Role>
async::task<core::Result<wire::Frame>> dispatch(std::shared_ptr<Role>,
                                                std::shared_ptr<wire::Incoming> incoming,
                                                std::string self) {
  co_return core::fail(core::ErrorCode::kUnsupported,
                       self + " does not answer " + wire::frame_kind(incoming->frame()));
}

template <class Role, class Request, class... Rest>
async::task<core::Result<wire::Frame>> dispatch(std::shared_ptr<Role> role,
                                                std::shared_ptr<wire::Incoming> incoming,
                                                std::string self) {
  auto kind = [](schema::Envelope::Reader envelope) -> core::Result<bool> {
    return Codec<Request>::is(envelope);
  };
  auto matches = incoming->read(kind);
  if (!matches) co_return matches.failure();
  if (!*matches) {
    co_return co_await dispatch<Role, Rest...>(std::move(role), std::move(incoming),
                                               std::move(self));
  }
  auto request = incoming->read(read_body<Request>);
  if (!request) co_return request.failure();
  auto reply = co_await role->on(std::move(*request));
  if (!reply) co_return reply.failure();
  co_return to_frame(wire::reply_header(incoming->header(), std::move(self)), *reply);
}

template <class Role, class... Requests>
async::task<core::Result<wire::Frame>> open_and_dispatch(std::shared_ptr<Role> role,
                                                         wire::Frame frame, std::string self) {
  auto incoming = wire::Incoming::open(std::move(frame));
  if (!incoming) co_return incoming.failure();
  auto shared = std::make_shared<wire::Incoming>(std::move(*incoming));
  co_return co_await dispatch<Role, Requests...>(std::move(role), std::move(shared),
                                                 std::move(self));
}

}  // namespace detail

// What Transport::serve wants: the role's handlers behind one function. Keeps the role alive.
template <class... Requests, class Role>
cluster::Handler handler_of(std::shared_ptr<Role> role, std::string self) {
  return [role, self](wire::Frame frame) {
    return detail::open_and_dispatch<Role, Requests...>(role, std::move(frame), self);
  };
}

}  // namespace troupe::actors
