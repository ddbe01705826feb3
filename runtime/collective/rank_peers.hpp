// The other ranks of a gang, as one of them sees them: waits for their words, says which of them is
// gone or has failed, and takes leave of all. The thread that is in a collective uses it; `abort`
// may be called by any.
#pragma once

#include "runtime/collective/peer.hpp"
#include "runtime/collective/rank_options.hpp"
#include "runtime/collective/rendezvous.hpp"
#include "runtime/core/clock.hpp"

#include <poll.h>

#include <atomic>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace troupe::collective {

class RankPeers {
 public:
  explicit RankPeers(const RankOptions& options);  // they outlive the object

  // Waits until all are connected with all. Errors: as connect_ranks.
  core::Result<void> connect(Rendezvous& rendezvous);

  const std::vector<std::unique_ptr<Peer>>& all() const { return peers_; }  // by rank
  Peer& of(int rank) const;
  // "rank 1 of policy": this one, in errors.
  std::string own_name() const;

  // Waits at most `patience` for words of the peers, `abort` or one of `others`, and reads the
  // words.
  void hear(std::optional<core::Duration> patience, std::vector<pollfd> others = {});
  // Error kClosed: `abort` was called.
  core::Result<void> check_not_aborted() const;
  // Error kPeerLost: a peer is gone, or has left though it owes something; or its own error.
  core::Result<void> check(const std::function<bool(const Peer&)>& owes) const;
  // Some peer's end of the device link does not come up.
  bool one_is_without_link() const;

  // Tells all that this rank leaves: in order without an error, or because of it.
  void say_goodbye(const core::Error* error);
  void close() { peers_.clear(); }
  void abort() noexcept;

 private:
  const RankOptions& options_;
  std::vector<std::unique_ptr<Peer>> peers_;  // without this rank
  core::OwnedFd woken_;                       // an eventfd for `abort`
  std::atomic<bool> aborted_{false};
};

}  // namespace troupe::collective
