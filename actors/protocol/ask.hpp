// Makes one typed call to another role: encodes the request, sends it, waits for the answer until
// the deadline and decodes it.
// Runs on the caller's strand. Errors are those of Transport::call and of the peer's handler.
#pragma once

#include "actors/protocol/frames.hpp"
#include "actors/protocol/limits.hpp"
#include "actors/protocol/role_shell.hpp"

#include <string>

namespace troupe::actors {

// A peer's error without the peer's name in front, for messages that name the peer already.
inline core::Error without_name(const core::Error& error, const std::string& peer) {
  const std::string front = peer + ": ";
  if (!error.message.starts_with(front)) return error;
  return {error.code, error.message.substr(front.size())};
}

template <class Request>
async::task<core::Result<typename Request::Reply>> ask(RoleContext context,
                                                       std::string peer,
                                                       Request request) {
  const async::Deadline deadline = async::Deadline::after(*context.timers, context.call_deadline);
  TROUPE_CO_TRY_ASSIGN(frame, to_frame(context.transport->new_request(deadline), request));
  TROUPE_CO_TRY_ASSIGN(
      reply, co_await context.transport->call(std::move(peer), std::move(frame), deadline));
  co_return from_frame<typename Request::Reply>(std::move(reply));
}

// Asks again while the peer has no room for the request, a pause apart.
template <class Request>
async::task<core::Result<typename Request::Reply>> ask_until_taken(RoleContext context,
                                                                   std::string peer,
                                                                   Request request) {
  for (;;) {
    auto answer = co_await ask(context, peer, request);
    if (answer || answer.error().code != core::ErrorCode::kOverloaded) co_return answer;
    co_await async::sleep_for(*context.timers, limits::kOverloadBackoff);
  }
}

}  // namespace troupe::actors
