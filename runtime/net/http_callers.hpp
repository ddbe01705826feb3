// The connections of an HTTP server, and which of them gives way when others wait: one that has
// said nothing for kHttpSilence, those first that never sent a request. Used on the server's
// strand.
#pragma once

#include "runtime/core/clock.hpp"
#include "runtime/net/any_stream.hpp"

#include <cstddef>
#include <list>
#include <memory>

namespace troupe::net {

struct HttpCaller {
  HttpCaller(boost::asio::ip::tcp::socket socket,
             boost::asio::ssl::context* tls,
             core::TimePoint now)
      : stream(std::make_shared<AnyStream>(std::move(socket), tls)), since(now) {}

  // From now on the server waits for the client's header, or has just got it.
  void is_awaited(core::TimePoint now) {
    since = now;
    awaited = true;
  }
  void has_asked() {
    awaited = false;
    asked = true;
  }

  const std::shared_ptr<AnyStream> stream;
  core::TimePoint since;  // when its silence while `awaited` can have begun
  bool awaited = true;
  bool asked = false;  // it has sent a request before
};

class HttpCallers {
 public:
  using Caller = std::shared_ptr<HttpCaller>;

  void add(Caller caller) { list_.push_back(std::move(caller)); }
  void remove(const Caller& caller) { list_.remove(caller); }
  // How many have not been cut.
  std::size_t size() const noexcept { return list_.size(); }
  bool any_awaited() const;
  // Cuts one that has been silent; false if there is none.
  bool cut_silent(core::TimePoint now);

 private:
  std::list<Caller> list_;  // the oldest first
};

}  // namespace troupe::net
