#include "runtime/collective/collectives.hpp"

#include "runtime/collective/call.hpp"
#include "runtime/collective/link_forming.hpp"

#include <exception>

namespace troupe::collective {

using std::to_string;

Collectives::Collectives(RankOptions options) : options_(std::move(options)) {}

Collectives::~Collectives() {
  peers_.say_goodbye(nullptr);
}

Call Collectives::call_with(core::Memory& memory) {
  return {peers_, options_.rank, memory, link_.get()};
}

core::Result<void> Collectives::connect(Rendezvous& rendezvous) {
  TROUPE_CHECK(peers_.all().empty(), "connect is called once");
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
  if (auto met = peers_.connect(rendezvous); !met) return leave(met.error());
  return barrier();  // from here on every rank has every connection
}

core::Result<void> Collectives::use(core::Result<std::unique_ptr<DeviceLink>> given) {
  if (ended_) return fail(*ended_);
  TROUPE_CHECK(!std::exchange(link_tried_, true), "use is called once");
  if (options_.size == 1) return {};
  const auto why_not = form_link(*this, peers_, options_, given);
  if (!why_not) return ended_ ? fail(*ended_) : leave(why_not.error());
  if (why_not->empty()) {
    link_ = std::move(*given);
  } else if (options_.log) {
    options_.log("the devices of " + options_.gang.role + " have no link (" + *why_not +
                 "); their bytes go by way of the host");
  }
  return {};
}

core::Result<void> Collectives::check_rank(int rank, const char* what) const {
  if (rank >= 0 && rank < options_.size) return {};
  return fail(ErrorCode::kInvalidArgument, std::string(what) + " " + to_string(rank) + " of " +
                                               to_string(options_.size) + " ranks of " +
                                               options_.gang.role);
}

core::Result<void> Collectives::broadcast(int root, Place bytes, core::Memory& memory) {
  if (ended_) return fail(*ended_);
  if (auto known = check_rank(root, "broadcast from rank"); !known) return leave(known.error());
  Call call = call_with(memory);
  const bool mine = root == options_.rank;
  for (const auto& peer : peers_.all()) {
    const Source out = mine ? Source{bytes.at, bytes.bytes} : Source{};
    call.add(peer->rank(), Kind::kBroadcast, root, out, peer->rank() == root ? bytes : Place{});
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
  for (const auto& peer : peers_.all())
    call.add(peer->rank(), Kind::kAllGather, 0, mine, into[static_cast<std::size_t>(peer->rank())]);
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
  for (const auto& peer : peers_.all()) {
    const auto other = static_cast<std::size_t>(peer->rank());
    call.add(peer->rank(), Kind::kAllToAll, 0, out[other], in[other]);
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
  call.add(to, Kind::kSend, 0, bytes, {});
  call.move(Move::Kind::kSend, to, bytes.at, bytes.bytes);
  return run(call);
}

core::Result<void> Collectives::recv(int from, Place bytes, core::Memory& memory) {
  if (ended_) return fail(*ended_);
  if (auto known = check_rank(from, "recv from rank"); !known) return leave(known.error());
  Call call = call_with(memory);
  if (from == options_.rank)
    return leave({ErrorCode::kInvalidArgument, "recv of rank " + to_string(from) + " from itself"});
  call.add(from, Kind::kReceive, 0, {}, bytes);
  call.move(Move::Kind::kReceive, from, bytes.at, bytes.bytes);
  return run(call);
}

core::Result<void> Collectives::barrier() {
  if (ended_) return fail(*ended_);
  Call call = call_with(core::host_memory());
  for (const auto& peer : peers_.all())
    call.add(peer->rank(), Kind::kBarrier, 0, {}, {});
  return run(call);
}

core::Result<void> Collectives::run(Call& call) {
  try {
    if (const auto moved = call.run(); !moved) return leave(moved.error());
  } catch (const std::exception& error) {  // of a device's memory
    (void)leave({ErrorCode::kPeerLost, peers_.own_name() + " failed: " + error.what()});
    throw;
  }
  call.count(sent_bytes_, received_bytes_);
  return {};
}

core::Result<void> Collectives::leave(core::Error error) {
  core::Error told = error;
  if (error.code == ErrorCode::kClosed) told.code = ErrorCode::kPeerLost;  // to the others
  peers_.say_goodbye(&told);
  link_.reset();
  peers_.close();
  ended_ = std::move(error);
  return fail(*ended_);
}

void Collectives::give_up(const core::Error& error) {
  if (!ended_) static_cast<void>(leave(error));
}

}  // namespace troupe::collective
