// One typed call to another role: encode, send, wait for the answer until the deadline, decode.
// Runs on the caller's strand. Errors are those of Transport::call and of the peer's handler.
#pragma once

#include <string>

#include "actors/protocol/frames.hpp"
#include "actors/protocol/role_shell.hpp"

namespace troupe::actors {

template <class Request>
async::task<core::Result<typename Request::Reply>> ask(RoleContext context, std::string peer,
                                                       Request request) {
  const async::Deadline deadline =
      async::Deadline::after(*context.timers, context.call_deadline);
  auto frame = to_frame(context.transport->new_request(deadline), request);
  if (!frame) co_return frame.failure();
  auto reply = co_await context.transport->call(std::move(peer), std::move(*frame), deadline);
  if (!reply) co_return reply.failure();
  co_return from_frame<typename Request::Reply>(std::move(*reply));
}

}  // namespace troupe::actors
