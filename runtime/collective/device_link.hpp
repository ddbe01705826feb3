// Moves bytes between the devices of the ranks of a gang, in place of the pipes
// (docs/adr/0023-nccl.md). Collectives says what to move when all ranks have agreed on it, asks
// until it is done, and watches the ranks meanwhile: calls on a link never block. One
// thread at a time. After an error only `abort` may be called. Functions of a device may throw
// core::DeviceError.
#pragma once

#include "runtime/core/memory.hpp"
#include "runtime/core/result.hpp"

#include <array>
#include <cstddef>
#include <span>
#include <string>

namespace troupe::collective {

struct Move {
  enum class Kind { kBroadcast, kSend, kReceive };
  Kind kind = Kind::kSend;
  int rank = 0;  // the root of a broadcast, or the other rank
  void* at = nullptr;
  std::size_t bytes = 0;  // more than 0
};

// What rank 0 makes up and all ranks need to connect.
using LinkId = std::array<char, 128>;

class DeviceLink {
 public:
  virtual ~DeviceLink() = default;         // as `abort`
  virtual std::string name() const = 0;    // "NCCL 2.28.9"; ranks with different names have no link
  virtual std::string device() const = 0;  // its name, which no other rank's device has
  virtual bool takes(const core::Memory& memory) const = 0;

  // The network interface for the connections of all ranks, in the way that NCCL_SOCKET_IFNAME
  // names it; counts for the process, and only if nobody has said otherwise. Before the calls
  // below.
  virtual void prefer_interface(const std::string& name) = 0;
  virtual core::Result<LinkId> new_id() = 0;
  // Begins to connect; `done` says when this rank is connected with all.
  virtual core::Result<void> connect(const LinkId& id, int rank, int size) = 0;
  // Begins to move bytes. All work on the memory must be done, and what was begun before, too.
  virtual core::Result<void> start(std::span<const Move> moves) = 0;
  // Whether what was begun is done. Ask again and again: it is what drives the link.
  virtual core::Result<bool> done() = 0;
  // Gives up what is under way; the link cannot be used any more.
  virtual void abort() noexcept = 0;
};

}  // namespace troupe::collective
