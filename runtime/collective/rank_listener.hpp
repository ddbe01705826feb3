// The listening side of a rank while its gang forms: accepts connections, hears out strangers, and
// lets in the ranks that prove themselves. Bound: kRankStrangers_max connections that have not
// shown their hello; then the oldest is closed (a rank that this hits dials again). Owned by
// connect_ranks; one thread.
#pragma once

#include "runtime/collective/rank_options.hpp"
#include "runtime/collective/rendezvous.hpp"
#include "runtime/net/socket_folder.hpp"

#include <optional>
#include <set>
#include <vector>

namespace troupe::collective {

class RankListener {
 public:
  // Errors: kConfig, kResources.
  static core::Result<RankListener> open(const RankOptions& options);
  const RankAddress& address() const { return address_; }

  // A rank that has proved itself, on a connection that has got its welcome.
  struct Admission {
    int rank;
    Channel channel;
    bool shares_memory;
    net::OwnedFd socket;
  };
  // Waits for the next one for a short while. `taken(rank, channel)` says whether that connection
  // is there already; such a second one is refused. `watched`: connections whose end also ends the
  // wait. Errors: kInternal (the key is none).
  template <class Taken>
  core::Result<std::optional<Admission>> next(const std::string& key,
                                              const std::vector<int>& watched,
                                              const Taken& taken) {
    wait(watched);
    for (std::size_t i = 0; i < strangers_.size();) {
      TROUPE_TRY_ASSIGN(heard, hear(key, strangers_[i]));
      if (heard == Heard::kMore) {
        ++i;
        continue;
      }
      Stranger stranger = std::move(strangers_[i]);
      strangers_.erase(strangers_.begin() + static_cast<std::ptrdiff_t>(i));
      if (heard == Heard::kGone) continue;
      const auto rank = static_cast<int>(stranger.hello.from);
      if (taken(rank, stranger.hello.channel)) {
        TROUPE_TRY(answer(key, stranger, Admitted::kTaken));
        continue;
      }
      TROUPE_TRY(answer(key, stranger, Admitted::kWelcome));
      return std::optional<Admission>(Admission{rank, stranger.hello.channel,
                                                stranger.hello.shares_memory != 0,
                                                std::move(stranger.socket)});
    }
    return std::optional<Admission>();
  }

 private:
  enum class Heard { kMore, kGone, kWelcome };
  struct Stranger {
    net::OwnedFd socket;
    bool local = false;
    std::string from;  // where the connection comes from, for the log
    Challenge challenge;
    Hello hello;
    std::size_t bytes = 0;  // of the hello, so far
  };
  explicit RankListener(const RankOptions& options) : options_(options) {}

  void wait(const std::vector<int>& watched);
  void accept_from(const net::OwnedFd& listener, bool local);
  core::Result<Heard> hear(const std::string& key, Stranger& stranger);
  core::Result<void> answer(const std::string& key, Stranger& stranger, Admitted admitted);
  void refuse(const Stranger& stranger, const std::string& why);

  const RankOptions& options_;
  std::optional<net::SocketFolder> folder_;
  net::OwnedFd unix_, tcp_;
  RankAddress address_;
  std::vector<Stranger> strangers_;  // the oldest first
  std::set<std::string> refusals_;   // that were logged
};

}  // namespace troupe::collective
