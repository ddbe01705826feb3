// One version of the weights in host memory that other processes can map: head, checksums, weights
// (push_protocol.hpp). Allocated once, with all its pages, and filled again for later versions
// while nobody else holds it. Its size is sealed, so reading never raises SIGBUS; receivers
// cannot write. The publisher's device thread writes it with its team; its server thread and
// receivers read it.
#pragma once

#include "runtime/core/shared_memory.hpp"
#include "runtime/core/team.hpp"
#include "runtime/model/params.hpp"
#include "runtime/net/socket.hpp"
#include "runtime/weights/push_protocol.hpp"

#include <memory>
#include <vector>

namespace troupe::weights {

class Snapshot {
 public:
  static constexpr bool kSparesStay = false;
  // Error kResources: there is not enough shared memory.
  static core::Result<std::shared_ptr<Snapshot>> create(const SnapshotShape& shape);
  Snapshot(const Snapshot&) = delete;
  Snapshot& operator=(const Snapshot&) = delete;

  // Copies `weights` with all members of the team and computes the checksums in the same pass.
  // Weights on a device must be in the memory of this team.
  void fill(core::TeamRunner& team, const model::ParamStore& weights, core::Version version);

  const SnapshotShape& shape() const { return shape_; }
  core::Version version() const { return version_; }
  std::uint64_t id() const { return id_; }
  int fd() const { return memory_.fd(); }
  const char* bytes() const { return memory_.data(); }

 private:
  Snapshot(const SnapshotShape& shape, core::SharedMemory memory);

  const SnapshotShape shape_;
  const std::uint64_t id_;
  const core::SharedMemory memory_;
  std::vector<std::uint32_t> table_;
  core::Version version_ = 0;
};

}  // namespace troupe::weights
