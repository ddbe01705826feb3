#include "runtime/collective/rank_peers.hpp"

#include "runtime/collective/mesh.hpp"

#include <sys/eventfd.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <utility>

namespace troupe::collective {

RankPeers::RankPeers(const RankOptions& options)
    : options_(options), woken_(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {}

core::Result<void> RankPeers::connect(Rendezvous& rendezvous) {
  TROUPE_TRY_SET(peers_, connect_ranks(options_, rendezvous, aborted_));
  return {};
}

Peer& RankPeers::of(int rank) const {
  return *peers_[static_cast<std::size_t>(rank < options_.rank ? rank : rank - 1)];
}

std::string RankPeers::own_name() const {
  return "rank " + std::to_string(options_.rank) + " of " + options_.gang.role;
}

void RankPeers::hear(std::optional<core::Duration> patience, std::vector<pollfd> others) {
  std::vector<pollfd>& entries = others;
  const std::size_t first = entries.size();
  for (const auto& peer : peers_)
    entries.push_back({peer->gone() ? -1 : peer->control(), POLLIN, 0});
  entries.push_back({woken_.get(), POLLIN, 0});
  timespec time{};
  if (patience) time = {patience->count() / 1'000'000'000, patience->count() % 1'000'000'000};
  ::ppoll(entries.data(), entries.size(), patience ? &time : nullptr, nullptr);
  for (std::size_t i = 0; i < peers_.size(); ++i)
    if (entries[first + i].revents != 0) peers_[i]->hear();
}

core::Result<void> RankPeers::check_not_aborted() const {
  if (!aborted_.load()) return {};
  return core::fail(core::ErrorCode::kClosed, own_name() + " was aborted");
}

core::Result<void> RankPeers::check(const std::function<bool(const Peer&)>& owes) const {
  for (const auto& peer : peers_) {
    if (peer->failure()) return core::fail(*peer->failure());
    if (!peer->vanished() && !(peer->gone() && owes(*peer))) continue;
    return core::fail(
        core::ErrorCode::kPeerLost,
        "rank " + std::to_string(peer->rank()) + " of " + options_.gang.role +
            (peer->vanished() ? " is gone" : " has left before all its bytes were moved"));
  }
  return {};
}

bool RankPeers::one_is_without_link() const {
  return std::any_of(peers_.begin(), peers_.end(),
                     [](const auto& peer) { return peer->without_link(); });
}

void RankPeers::say_goodbye(const core::Error* error) {
  for (const auto& peer : peers_)
    peer->say_goodbye(error);
}

void RankPeers::abort() noexcept {
  aborted_.store(true);
  const std::uint64_t one = 1;
  (void)!::write(woken_.get(), &one, sizeof one);
}

}  // namespace troupe::collective
