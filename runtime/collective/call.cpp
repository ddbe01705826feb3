#include "runtime/collective/call.hpp"

#include <immintrin.h>
#include <poll.h>

#include <algorithm>
#include <thread>

namespace troupe::collective {

bool Transfer::write_some() {
  bool moved = false;
  if (head_sent < sizeof mine) {
    const std::size_t n =
        peer->pipe().write(core::host_memory(), reinterpret_cast<const char*>(&mine) + head_sent,
                           sizeof mine - head_sent);
    head_sent += n;
    return n > 0;
  }
  flushed = peer->pipe().flush(moved);
  if (unsent == 0 || !flushed) return moved;
  const std::size_t n = peer->pipe().write(*memory, from, unsent);
  from += n;
  unsent -= n;
  flushed = peer->pipe().flush(moved);
  return moved || n > 0;
}

core::Result<bool> Transfer::read_some(int my_rank) {
  if (head_got < sizeof theirs) {
    const std::size_t n = peer->pipe().read(
        core::host_memory(), reinterpret_cast<char*>(&theirs) + head_got, sizeof theirs - head_got);
    head_got += n;
    if (head_got == sizeof theirs) TROUPE_TRY(check_same_call(my_rank, mine, peer->rank(), theirs));
    return n > 0;
  }
  if (missing == 0) return false;
  const std::size_t n = peer->pipe().read(*memory, to, missing);
  to += n;
  missing -= n;
  return n > 0;
}

void Call::add(int rank, Kind kind, int root, Source out, Place in) {
  Transfer transfer;
  transfer.peer = &peers_.of(rank);
  transfer.memory = &memory_;
  transfer.mine.call = transfer.peer->calls++;
  transfer.mine.kind = kind;
  transfer.mine.root = static_cast<std::uint32_t>(root);
  transfer.mine.way = link_ != nullptr ? Way::kLink : Way::kPipe;
  transfer.mine.sends = out.bytes;
  transfer.mine.expects = in.bytes;
  transfer.unsent = link_ != nullptr ? 0 : out.bytes;
  transfer.missing = link_ != nullptr ? 0 : in.bytes;
  transfer.from = static_cast<const char*>(out.at);
  transfer.to = static_cast<char*>(in.at);
  transfers_.push_back(transfer);
}

core::Result<void> Call::run() {
  // Ranks begin with their right neighbours, so that not all turn to rank 0 first.
  const auto first =
      std::find_if(transfers_.begin(), transfers_.end(),
                   [this](const Transfer& transfer) { return transfer.peer->rank() > my_rank_; });
  std::rotate(transfers_.begin(), first, transfers_.end());
  if (link_ == nullptr) return move_all();
  memory_.wait();  // what the others get must be there
  TROUPE_TRY(move_all());
  return move_by_link();
}

void Call::count(std::uint64_t& sent, std::uint64_t& received) const {
  for (const Transfer& transfer : transfers_) {
    sent += transfer.mine.sends;
    received += transfer.mine.expects;
  }
}

core::Result<void> Call::move_all() {
  for (;;) {
    TROUPE_TRY(peers_.check_not_aborted());
    bool moved = false, done = true;
    for (Transfer& transfer : transfers_) {
      if (transfer.done()) continue;
      moved = transfer.write_some() || moved;
      TROUPE_TRY_ASSIGN(got, transfer.read_some(my_rank_));
      moved = moved || got;
      done = done && transfer.done();
    }
    if (done) return {};
    if (moved || moves_soon()) continue;
    TROUPE_TRY(check_peers());
    wait();
  }
}

// Called when nothing moves any more, so what a peer left behind in its pipe has been read.
core::Result<void> Call::check_peers() {
  TROUPE_TRY(peers_.check([this](const Peer& peer) {
    return std::any_of(transfers_.begin(), transfers_.end(), [&peer](const Transfer& transfer) {
      return transfer.peer == &peer && !transfer.done();
    });
  }));
  for (const Transfer& transfer : transfers_)
    if (!transfer.done() && transfer.peer->pipe().ended()) transfer.peer->break_off();
  return {};
}

// Looks again and again for a moment: a peer that copies at the same time is soon done with its
// piece, and sleeping takes longer than that.
bool Call::moves_soon() const {
  const core::TimePoint end = core::steady_clock().now() + limits::kRankSpin;
  do {
    for (int look = 0; look < 32; ++look) {
      for (const Transfer& transfer : transfers_) {
        if (!transfer.done() && transfer.peer->pipe().ready(transfer.reads(), transfer.writes()))
          return true;
      }
      _mm_pause();
    }
    std::this_thread::yield();  // the peer may wait for this very core
  } while (core::steady_clock().now() < end);
  return false;
}

// Sleeps until a peer has moved, spoken or gone, or `abort` is called.
void Call::wait() {
  std::vector<pollfd> pipes;
  bool ready = false;
  for (Transfer& transfer : transfers_) {
    if (transfer.done()) continue;
    Pipe& pipe = transfer.peer->pipe();
    short events = 0;
    ready = !pipe.arm(transfer.reads(), transfer.writes(), events) || ready;
    if (pipe.fd() >= 0) pipes.push_back({pipe.fd(), events, 0});
  }
  peers_.hear(ready ? std::optional(core::Duration::zero()) : std::nullopt, std::move(pipes));
  for (Transfer& transfer : transfers_)
    transfer.peer->pipe().disarm();
}

core::Result<LinkFailure> wait_for_link(DeviceLink& link,
                                        RankPeers& peers,
                                        const std::function<core::Result<void>()>& check) {
  const core::TimePoint spin = core::steady_clock().now() + limits::kLinkSpin;
  for (;;) {
    const auto done = link.done();
    if (!done) return LinkFailure(done.error());
    if (*done) return LinkFailure();
    TROUPE_TRY(peers.check_not_aborted());
    const bool spins = core::steady_clock().now() < spin;
    peers.hear(spins ? core::Duration::zero() : core::Duration(limits::kLinkLook));
    TROUPE_TRY(check());
    if (peers.one_is_without_link())
      return LinkFailure({ErrorCode::kResources, "another rank failed"});
    if (spins) std::this_thread::yield();
  }
}

// All ranks that take part are here, and agree. Afterwards they meet again: a rank that leaves then
// takes nothing away that another one still needs.
core::Result<void> Call::move_by_link() {
  if (!moves_.empty()) {
    const auto begun = link_->start(moves_);
    if (!begun) return blame(begun.error());
    TROUPE_TRY_ASSIGN(failure, wait_for_link(*link_, peers_, [this] { return check_peers(); }));
    if (failure) return blame(*failure);
  }
  for (Transfer& transfer : transfers_)
    transfer.meet_again(Way::kLinkDone);
  return move_all();
}

// Why the link failed: the loss of a rank, if there is one, which the link may have noticed first.
core::Result<void> Call::blame(const core::Error& failure) {
  const core::TimePoint end = core::steady_clock().now() + limits::kLinkBlame;
  for (core::Duration left = limits::kLinkBlame; left > core::Duration::zero();
       left = end - core::steady_clock().now()) {
    peers_.hear(left);
    TROUPE_TRY(peers_.check_not_aborted());
    TROUPE_TRY(check_peers());
  }
  return fail(ErrorCode::kPeerLost, peers_.own_name() + ": " + failure.message);
}

}  // namespace troupe::collective
