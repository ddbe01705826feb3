// Watches the client of a request until it closes or breaks the connection, sends its next request
// or has its answer. A client that speaks TLS says goodbye before it closes, which looks like a
// request, so it is looked at again every kHttpLookAgain. A coroutine on the server's strand.
#pragma once

#include "runtime/async/deadline.hpp"
#include "runtime/net/any_stream.hpp"
#include "runtime/net/http.hpp"

#include <memory>

namespace troupe::net {

// `timers` outlives the coroutine. It ends when the socket's operations are cancelled.
async::task<void> watch_client(std::shared_ptr<AnyStream> stream,
                               std::shared_ptr<HttpPresence> client,
                               async::Timers* timers);

}  // namespace troupe::net
