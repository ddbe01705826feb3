// The connections of an HTTP client: those without a call wait here for the next one to their host.
// A new one is made when none waits, so there are at most as many as calls run at once. Few are
// begun at a time, since a server that takes them slowly drops what its queue cannot hold, and the
// kernel asks again only after a second.
// Internal to this room; owned by the client and its calls, all on one executor. Bounds:
// kHttpYoung_max connections to a host that are younger than kHttpYoung and have answered nothing;
// one that has had no call for kHttpKept is closed.
#pragma once

#include "runtime/async/notifier.hpp"
#include "runtime/net/http_connection.hpp"

#include <list>
#include <map>
#include <memory>
#include <string>

namespace troupe::net {

class HttpConnections : public std::enable_shared_from_this<HttpConnections> {
 public:
  class Young;  // counts a connection as young until it ends
  struct Lease {
    std::unique_ptr<HttpConnection> connection;
    std::shared_ptr<Young> young;  // null for a connection that has been used before
  };

  // An open connection to the call's host. Waits while too many are young. Errors: those of
  // HttpConnection::open, kDeadline.
  static async::task<core::Result<Lease>> take(std::shared_ptr<HttpConnections> self,
                                               const HttpCall* call);
  // After an exchange that succeeded: keeps the connection for the next call if it may be used.
  void give(const HttpCall& call, async::Executor executor, Lease lease);

  std::uint64_t opened() const noexcept { return opened_; }

 private:
  using Signal = async::Oneshot<core::Result<bool>>;
  struct Idle {
    std::unique_ptr<HttpConnection> connection;
    core::TimePoint until;
    async::Timer timer;
  };
  struct Host {
    std::list<Idle> idle;  // the one used last is at the back
    std::size_t young = 0;
    async::Listed<Signal>::List waiting;
  };

  Host& host_of(const HttpCall& call);
  std::unique_ptr<HttpConnection> idle_of(Host& host);
  void wake(Host& host);  // one waiter, if there is something for it
  void sweep(Host& host);

  async::SteadyTimers timers_;
  std::map<std::string, Host> hosts_;  // by scheme, host and port
  std::uint64_t opened_ = 0;
};

}  // namespace troupe::net
