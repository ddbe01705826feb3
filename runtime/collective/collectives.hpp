// Operations between the ranks of one role (docs/adr/0021-collectives.md). They move bytes and
// compute nothing: sums are the caller's. Host memory is read and written in place; a device's is
// copied by its core::Memory, or goes from device to device over a link (`use`).
//
// Every rank calls the same operations in the same order; send and recv concern two ranks only.
// Each operation is a meeting: it returns when all ranks that take part have called it and this
// rank's bytes are there and taken, except that bytes to a peer may still be on their way. Before
// the bytes, each rank tells the others what it is doing and the sizes, and where two do not agree
// both get kInvalidArgument, with what each was doing; a wrong byte never reaches a destination.
// There is no deadline: a slow or frozen rank is waited for. So ranks that send to each other in a
// circle, each before it receives, wait until `abort`: use all_to_all.
//
// Errors of every operation: kPeerLost (a rank is gone, which the message names: its process ended,
// or it gave up first), kInvalidArgument (sizes and ranks that do not fit each other, here or
// between ranks), kClosed (`abort`). The first error ends the gang for this rank: it tells the
// others why, closes its connections, and every later call returns the same error.
//
// One thread calls the operations; `abort` may be called by any.
#pragma once

#include "runtime/collective/device_link.hpp"
#include "runtime/collective/rank_peers.hpp"
#include "runtime/core/memory.hpp"

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace troupe::collective {

class Call;

struct Source {
  const void* at = nullptr;
  std::size_t bytes = 0;
};
struct Place {
  void* at = nullptr;
  std::size_t bytes = 0;
};

class Collectives {
 public:
  explicit Collectives(RankOptions options);
  Collectives(const Collectives&) = delete;
  Collectives& operator=(const Collectives&) = delete;
  ~Collectives();  // says goodbye; ranks that still wait for bytes of this one get kPeerLost

  // Meets the other ranks and waits until all are connected with all. Call it once, first. Errors:
  // as connect_ranks; kInvalidArgument (rank, size or role).
  core::Result<void> connect(Rendezvous& rendezvous);

  // From now on bytes in the memory that `link` takes go over it, where every rank has a link and
  // all come to be connected. Otherwise they go on as before, by way of the host, and `log` of the
  // options says why, in one line. An error in place of a link says why this rank has none. Every
  // rank calls it, once, between operations. The memory of an operation must then be such memory on
  // all ranks or on none. Errors: as those of an operation.
  core::Result<void> use(core::Result<std::unique_ptr<DeviceLink>> link);
  // The name of the link in use; empty without one.
  std::string link_name() const { return link_ == nullptr ? "" : link_->name(); }

  int rank() const noexcept { return options_.rank; }
  int size() const noexcept { return options_.size; }

  // The bytes of rank `root` come to the same number of bytes on each other rank.
  core::Result<void> broadcast(int root, Place bytes, core::Memory& memory = core::host_memory());
  // `into[r]` is for rank r's `mine` on every rank. Parts may differ in size; all ranks know all
  // sizes. `into[rank()]` has the size of `mine`, and may be the same memory.
  core::Result<void> all_gather(Source mine,
                                std::span<const Place> into,
                                core::Memory& memory = core::host_memory());
  // `out[r]` goes to rank r; `in[r]` is for what rank r has for this one. Sources and places do not
  // overlap.
  core::Result<void> all_to_all(std::span<const Source> out,
                                std::span<const Place> in,
                                core::Memory& memory = core::host_memory());
  core::Result<void> send(int to, Source bytes, core::Memory& memory = core::host_memory());
  core::Result<void> recv(int from, Place bytes, core::Memory& memory = core::host_memory());
  core::Result<void> barrier();

  // Ends the gang because of this rank's own error, between two operations: the operations of the
  // others fail with it. Does nothing when the gang is over.
  void give_up(const core::Error& error);

  // Ends the operation of this rank that is under way, and every later one, with kClosed. Any
  // thread.
  void abort() noexcept { peers_.abort(); }

  // Bytes of operations, without heads, that went to other ranks and came from them.
  std::uint64_t sent_bytes() const noexcept { return sent_bytes_; }
  std::uint64_t received_bytes() const noexcept { return received_bytes_; }

 private:
  core::Result<void> check_rank(int rank, const char* what) const;
  Call call_with(core::Memory& memory);
  core::Result<void> run(Call& call);
  core::Result<void> leave(core::Error error);

  const RankOptions options_;
  RankPeers peers_{options_};
  std::unique_ptr<DeviceLink> link_;
  bool link_tried_ = false;
  std::optional<core::Error> ended_;
  std::uint64_t sent_bytes_ = 0, received_bytes_ = 0;
};

}  // namespace troupe::collective
