#include "runtime/collective/collectives.hpp"

#include "runtime/collective/mesh.hpp"

#include <immintrin.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <algorithm>
#include <exception>
#include <thread>

namespace troupe::collective {

using core::ErrorCode;
using core::fail;
using std::to_string;

// Both directions between this rank and one peer in one call: heads first, then bytes.
struct Collectives::Transfer {
  Peer* peer = nullptr;
  core::Memory* memory = nullptr;
  MessageHead mine, theirs;
  std::size_t head_sent = 0, head_got = 0;
  const char* from = nullptr;
  char* to = nullptr;
  std::size_t unsent = 0, missing = 0;  // bytes after the heads
  bool flushed = true;

  bool reads() const { return head_got < sizeof theirs || missing > 0; }
  bool writes() const { return head_sent < sizeof mine || unsent > 0 || !flushed; }
  bool done() const { return !reads() && !writes(); }

  // True if a byte moved.
  bool write_some() {
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

  core::Result<bool> read_some(int my_rank) {
    if (head_got < sizeof theirs) {
      const std::size_t n =
          peer->pipe().read(core::host_memory(), reinterpret_cast<char*>(&theirs) + head_got,
                            sizeof theirs - head_got);
      head_got += n;
      if (head_got == sizeof theirs)
        TROUPE_TRY(check_same_call(my_rank, mine, peer->rank(), theirs));
      return n > 0;
    }
    if (missing == 0) return false;
    const std::size_t n = peer->pipe().read(*memory, to, missing);
    to += n;
    missing -= n;
    return n > 0;
  }
};

struct Collectives::Call {
  core::Memory& memory;
  std::vector<Transfer> transfers;
};

Collectives::Collectives(RankOptions options)
    : options_(std::move(options)), woken_(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {}

Collectives::~Collectives() {
  for (const auto& peer : peers_)
    peer->say_goodbye(nullptr);
}

core::Result<void> Collectives::connect(Rendezvous& rendezvous) {
  TROUPE_CHECK(peers_.empty(), "connect is called once");
  const std::size_t role = options_.gang.role.size();
  if (options_.size < 1 || options_.size > static_cast<int>(limits::kRanks_max) ||
      options_.rank < 0 || options_.rank >= options_.size || role == 0 ||
      role >= sizeof(Hello::role) || options_.window_bytes == 0 ||
      options_.window_bytes > limits::kRankWindow_bytes_max) {
    return leave({ErrorCode::kInvalidArgument,
                  "rank " + to_string(options_.rank) + " of " + to_string(options_.size) + " of '" +
                      options_.gang.role + "' with windows of " + to_string(options_.window_bytes) +
                      " bytes; ranks count from 0 and there are at most " +
                      to_string(limits::kRanks_max)});
  }
  if (options_.size == 1) return {};
  auto peers = connect_ranks(options_, rendezvous, aborted_);
  if (!peers) return leave(peers.error());
  peers_ = std::move(*peers);
  return barrier();  // from here on every rank has every connection
}

Peer& Collectives::peer_of(int rank) {
  return *peers_[static_cast<std::size_t>(rank < options_.rank ? rank : rank - 1)];
}

core::Result<void> Collectives::check_rank(int rank, const char* what) const {
  if (rank >= 0 && rank < options_.size) return {};
  return fail(ErrorCode::kInvalidArgument, std::string(what) + " " + to_string(rank) + " of " +
                                               to_string(options_.size) + " ranks of " +
                                               options_.gang.role);
}

void Collectives::add(Call& call, int rank, Kind kind, int root, Source out, Place in) {
  Transfer transfer;
  transfer.peer = &peer_of(rank);
  transfer.memory = &call.memory;
  transfer.mine.call = transfer.peer->calls++;
  transfer.mine.kind = kind;
  transfer.mine.root = static_cast<std::uint32_t>(root);
  transfer.mine.sends = transfer.unsent = out.bytes;
  transfer.mine.expects = transfer.missing = in.bytes;
  transfer.from = static_cast<const char*>(out.at);
  transfer.to = static_cast<char*>(in.at);
  call.transfers.push_back(transfer);
}

core::Result<void> Collectives::broadcast(int root, Place bytes, core::Memory& memory) {
  if (ended_) return fail(*ended_);
  if (auto known = check_rank(root, "broadcast from rank"); !known) return leave(known.error());
  Call call{memory, {}};
  const bool mine = root == options_.rank;
  for (const auto& peer : peers_) {
    const Source out = mine ? Source{bytes.at, bytes.bytes} : Source{};
    add(call, peer->rank(), Kind::kBroadcast, root, out, peer->rank() == root ? bytes : Place{});
  }
  return run(call);
}

core::Result<void> Collectives::all_gather(Source mine,
                                           std::span<const Place> into,
                                           core::Memory& memory) {
  if (ended_) return fail(*ended_);
  const auto rank = static_cast<std::size_t>(options_.rank);
  if (into.size() != static_cast<std::size_t>(options_.size) || into[rank].bytes != mine.bytes) {
    return leave({ErrorCode::kInvalidArgument,
                  "all_gather on rank " + to_string(rank) + " of " + options_.gang.role + ": " +
                      to_string(into.size()) + " places for " + to_string(options_.size) +
                      " ranks, or a part of " + to_string(mine.bytes) +
                      " bytes with a place of another size"});
  }
  if (mine.bytes > 0 && into[rank].at != mine.at) memory.copy(into[rank].at, mine.at, mine.bytes);
  Call call{memory, {}};
  for (const auto& peer : peers_)
    add(call, peer->rank(), Kind::kAllGather, 0, mine,
        into[static_cast<std::size_t>(peer->rank())]);
  return run(call);
}

core::Result<void> Collectives::all_to_all(std::span<const Source> out,
                                           std::span<const Place> in,
                                           core::Memory& memory) {
  if (ended_) return fail(*ended_);
  const auto rank = static_cast<std::size_t>(options_.rank);
  const auto ranks = static_cast<std::size_t>(options_.size);
  if (out.size() != ranks || in.size() != ranks || out[rank].bytes != in[rank].bytes) {
    return leave({ErrorCode::kInvalidArgument,
                  "all_to_all on rank " + to_string(rank) + " of " + options_.gang.role + ": " +
                      to_string(out.size()) + " sources and " + to_string(in.size()) +
                      " places for " + to_string(ranks) +
                      " ranks, or other sizes from this rank to itself"});
  }
  if (out[rank].bytes > 0 && in[rank].at != out[rank].at)
    memory.copy(in[rank].at, out[rank].at, out[rank].bytes);
  Call call{memory, {}};
  for (const auto& peer : peers_) {
    const auto other = static_cast<std::size_t>(peer->rank());
    add(call, peer->rank(), Kind::kAllToAll, 0, out[other], in[other]);
  }
  return run(call);
}

core::Result<void> Collectives::send(int to, Source bytes, core::Memory& memory) {
  if (ended_) return fail(*ended_);
  if (auto known = check_rank(to, "send to rank"); !known) return leave(known.error());
  Call call{memory, {}};
  if (to == options_.rank)
    return leave({ErrorCode::kInvalidArgument, "send from rank " + to_string(to) + " to itself"});
  add(call, to, Kind::kSend, 0, bytes, {});
  return run(call);
}

core::Result<void> Collectives::recv(int from, Place bytes, core::Memory& memory) {
  if (ended_) return fail(*ended_);
  if (auto known = check_rank(from, "recv from rank"); !known) return leave(known.error());
  Call call{memory, {}};
  if (from == options_.rank)
    return leave({ErrorCode::kInvalidArgument, "recv of rank " + to_string(from) + " from itself"});
  add(call, from, Kind::kReceive, 0, {}, bytes);
  return run(call);
}

core::Result<void> Collectives::barrier() {
  if (ended_) return fail(*ended_);
  Call call{core::host_memory(), {}};
  for (const auto& peer : peers_)
    add(call, peer->rank(), Kind::kBarrier, 0, {}, {});
  return run(call);
}

core::Result<void> Collectives::run(Call& call) {
  // Ranks begin with their right neighbours, so that not all turn to rank 0 first.
  const auto first = std::find_if(
      call.transfers.begin(), call.transfers.end(),
      [this](const Transfer& transfer) { return transfer.peer->rank() > options_.rank; });
  std::rotate(call.transfers.begin(), first, call.transfers.end());
  try {
    const auto moved = move_all(call);
    if (!moved) return leave(moved.error());
  } catch (const std::exception& error) {  // of a device's memory
    (void)leave({ErrorCode::kPeerLost, "rank " + to_string(options_.rank) + " of " +
                                           options_.gang.role + " failed: " + error.what()});
    throw;
  }
  for (const Transfer& transfer : call.transfers) {
    sent_bytes_ += transfer.mine.sends;
    received_bytes_ += transfer.mine.expects;
  }
  return {};
}

core::Result<void> Collectives::move_all(Call& call) {
  for (;;) {
    if (aborted_.load())
      return fail(ErrorCode::kClosed, "rank " + to_string(options_.rank) + " of " +
                                          options_.gang.role + " was aborted");
    bool moved = false, done = true;
    for (Transfer& transfer : call.transfers) {
      if (transfer.done()) continue;
      moved = transfer.write_some() || moved;
      TROUPE_TRY_ASSIGN(got, transfer.read_some(options_.rank));
      moved = moved || got;
      done = done && transfer.done();
    }
    if (done) return {};
    if (moved || moves_soon(call)) continue;
    TROUPE_TRY(check_peers(call));
    TROUPE_TRY(wait(call));
  }
}

// Called when nothing moves any more, so what a peer left behind in its pipe has been read.
core::Result<void> Collectives::check_peers(const Call& call) {
  const auto owes = [&call](const Peer& peer) {
    return std::any_of(
        call.transfers.begin(), call.transfers.end(),
        [&peer](const Transfer& transfer) { return transfer.peer == &peer && !transfer.done(); });
  };
  for (const auto& peer : peers_) {
    if (peer->failure()) return fail(*peer->failure());
    if (!peer->vanished() && !(peer->gone() && owes(*peer))) continue;
    return fail(ErrorCode::kPeerLost,
                "rank " + to_string(peer->rank()) + " of " + options_.gang.role +
                    (peer->vanished() ? " is gone" : " has left before all its bytes were moved"));
  }
  for (const Transfer& transfer : call.transfers)
    if (!transfer.done() && transfer.peer->pipe().ended()) transfer.peer->break_off();
  return {};
}

// Looks again and again for a moment: a peer that copies at the same time is soon done with its
// piece, and sleeping takes longer than that.
bool Collectives::moves_soon(const Call& call) {
  const core::TimePoint end = core::steady_clock().now() + limits::kRankSpin;
  do {
    for (int look = 0; look < 32; ++look) {
      for (const Transfer& transfer : call.transfers) {
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
core::Result<void> Collectives::wait(Call& call) {
  std::vector<pollfd> entries = {{woken_.get(), POLLIN, 0}};
  for (const auto& peer : peers_)
    entries.push_back({peer->gone() ? -1 : peer->control(), POLLIN, 0});
  bool ready = false;
  for (Transfer& transfer : call.transfers) {
    if (transfer.done()) continue;
    Pipe& pipe = transfer.peer->pipe();
    short events = 0;
    ready = !pipe.arm(transfer.reads(), transfer.writes(), events) || ready;
    if (pipe.fd() >= 0) entries.push_back({pipe.fd(), events, 0});
  }
  ::poll(entries.data(), entries.size(), ready ? 0 : -1);
  for (Transfer& transfer : call.transfers)
    transfer.peer->pipe().disarm();
  for (std::size_t i = 0; i < peers_.size(); ++i)
    if (entries[i + 1].revents != 0) peers_[i]->hear();
  return {};
}

core::Result<void> Collectives::leave(core::Error error) {
  core::Error told = error;
  if (error.code == ErrorCode::kClosed) told.code = ErrorCode::kPeerLost;  // to the others
  for (const auto& peer : peers_)
    peer->say_goodbye(&told);
  peers_.clear();
  ended_ = std::move(error);
  return fail(*ended_);
}

void Collectives::give_up(const core::Error& error) {
  if (!ended_) static_cast<void>(leave(error));
}

void Collectives::abort() noexcept {
  aborted_.store(true);
  const std::uint64_t one = 1;
  (void)!::write(woken_.get(), &one, sizeof one);
}

}  // namespace troupe::collective
