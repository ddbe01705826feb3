#include "runtime/net/http_watch.hpp"

#include "runtime/net/await_token.hpp"
#include "runtime/net/limits.hpp"
#include "runtime/net/socket.hpp"

#include <poll.h>
#include <sys/socket.h>

#include <cerrno>

namespace troupe::net {
namespace {

// True if the client has ended its direction, even if bytes that it sent before are unread.
bool ended(int socket) {
  pollfd state{socket, POLLRDHUP, 0};
  return ::poll(&state, 1, 0) > 0 && (state.revents & (POLLRDHUP | POLLHUP | POLLERR)) != 0;
}

}  // namespace

async::task<void> watch_client(std::shared_ptr<AnyStream> stream,
                               std::shared_ptr<HttpPresence> client,
                               async::Timers* timers) {
  for (;;) {
    const auto [code] =
        co_await stream->socket().async_wait(boost::asio::ip::tcp::socket::wait_read, kToken);
    if (code || client->over()) co_return;
    const int socket = stream->socket().native_handle();
    char byte = 0;
    const auto peeked = ::recv(socket, &byte, 1, MSG_PEEK | MSG_DONTWAIT);
    const bool gone =
        peeked > 0 ? stream->encrypted() && ended(socket) : peeked == 0 || !would_block();
    if (gone) {
      client->leave();
      co_return;
    }
    if (peeked > 0 && !stream->encrypted()) co_return;
    if (peeked > 0) co_await async::sleep_for(*timers, limits::kHttpLookAgain);
    if (client->over()) co_return;
  }
}

}  // namespace troupe::net
