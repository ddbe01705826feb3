#include "runtime/collective/collectives.hpp"

#include "runtime/collective/call.hpp"
#include "runtime/collective/mesh.hpp"

#include <immintrin.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <exception>
#include <thread>

namespace troupe::collective {

using core::ErrorCode;
using core::fail;
using std::to_string;

Collectives::Collectives(RankOptions options)
    : options_(std::move(options)), woken_(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {}

Collectives::~Collectives() {
  for (const auto& peer : peers_)
    peer->say_goodbye(nullptr);
}

Collectives::Call Collectives::call_with(core::Memory& memory) const {
  return {memory, link_ != nullptr && link_->takes(memory) ? link_.get() : nullptr, {}, {}};
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
  transfer.mine.way = call.link != nullptr ? Way::kLink : Way::kPipe;
  transfer.mine.sends = out.bytes;
  transfer.mine.expects = in.bytes;
  transfer.unsent = call.link != nullptr ? 0 : out.bytes;
  transfer.missing = call.link != nullptr ? 0 : in.bytes;
  transfer.from = static_cast<const char*>(out.at);
  transfer.to = static_cast<char*>(in.at);
  call.transfers.push_back(transfer);
}

core::Result<void> Collectives::broadcast(int root, Place bytes, core::Memory& memory) {
  if (ended_) return fail(*ended_);
  if (auto known = check_rank(root, "broadcast from rank"); !known) return leave(known.error());
  Call call = call_with(memory);
  const bool mine = root == options_.rank;
  for (const auto& peer : peers_) {
    const Source out = mine ? Source{bytes.at, bytes.bytes} : Source{};
    add(call, peer->rank(), Kind::kBroadcast, root, out, peer->rank() == root ? bytes : Place{});
  }
  call.move(Move::Kind::kBroadcast, root, bytes.at, bytes.bytes);
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
  Call call = call_with(memory);
  for (const auto& peer : peers_)
    add(call, peer->rank(), Kind::kAllGather, 0, mine,
        into[static_cast<std::size_t>(peer->rank())]);
  for (int root = 0; root < options_.size; ++root) {
    const Place part = into[static_cast<std::size_t>(root)];
    call.move(Move::Kind::kBroadcast, root, part.at, part.bytes);
  }
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
  Call call = call_with(memory);
  for (const auto& peer : peers_) {
    const auto other = static_cast<std::size_t>(peer->rank());
    add(call, peer->rank(), Kind::kAllToAll, 0, out[other], in[other]);
    call.move(Move::Kind::kSend, peer->rank(), out[other].at, out[other].bytes);
    call.move(Move::Kind::kReceive, peer->rank(), in[other].at, in[other].bytes);
  }
  return run(call);
}

core::Result<void> Collectives::send(int to, Source bytes, core::Memory& memory) {
  if (ended_) return fail(*ended_);
  if (auto known = check_rank(to, "send to rank"); !known) return leave(known.error());
  Call call = call_with(memory);
  if (to == options_.rank)
    return leave({ErrorCode::kInvalidArgument, "send from rank " + to_string(to) + " to itself"});
  add(call, to, Kind::kSend, 0, bytes, {});
  call.move(Move::Kind::kSend, to, bytes.at, bytes.bytes);
  return run(call);
}

core::Result<void> Collectives::recv(int from, Place bytes, core::Memory& memory) {
  if (ended_) return fail(*ended_);
  if (auto known = check_rank(from, "recv from rank"); !known) return leave(known.error());
  Call call = call_with(memory);
  if (from == options_.rank)
    return leave({ErrorCode::kInvalidArgument, "recv of rank " + to_string(from) + " from itself"});
  add(call, from, Kind::kReceive, 0, {}, bytes);
  call.move(Move::Kind::kReceive, from, bytes.at, bytes.bytes);
  return run(call);
}

core::Result<void> Collectives::barrier() {
  if (ended_) return fail(*ended_);
  Call call = call_with(core::host_memory());
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
    if (call.link != nullptr) call.memory.wait();  // what the others get must be there
    auto moved = move_all(call);
    if (moved && call.link != nullptr) moved = move_by_link(call);
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

core::Result<void> Collectives::check_not_aborted() const {
  if (!aborted_.load()) return {};
  return fail(ErrorCode::kClosed,
              "rank " + to_string(options_.rank) + " of " + options_.gang.role + " was aborted");
}

core::Result<void> Collectives::move_all(Call& call) {
  for (;;) {
    TROUPE_TRY(check_not_aborted());
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
    wait(call);
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
void Collectives::wait(Call& call) {
  std::vector<pollfd> pipes;
  bool ready = false;
  for (Transfer& transfer : call.transfers) {
    if (transfer.done()) continue;
    Pipe& pipe = transfer.peer->pipe();
    short events = 0;
    ready = !pipe.arm(transfer.reads(), transfer.writes(), events) || ready;
    if (pipe.fd() >= 0) pipes.push_back({pipe.fd(), events, 0});
  }
  hear_peers(ready ? std::optional(core::Duration::zero()) : std::nullopt, std::move(pipes));
  for (Transfer& transfer : call.transfers)
    transfer.peer->pipe().disarm();
}

// Waits at most `patience` for words of the peers, `abort` or one of `others`, and reads the words.
void Collectives::hear_peers(std::optional<core::Duration> patience, std::vector<pollfd> others) {
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

core::Result<void> Collectives::leave(core::Error error) {
  core::Error told = error;
  if (error.code == ErrorCode::kClosed) told.code = ErrorCode::kPeerLost;  // to the others
  for (const auto& peer : peers_)
    peer->say_goodbye(&told);
  link_.reset();
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
