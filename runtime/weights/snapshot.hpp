// One version of the weights in memory that other processes can map: head, checksums, weights
// (push_protocol.hpp). Made once, with all its pages, and filled again for later versions while
// nobody else holds it. The size is sealed, so a receiver never faults on it; receivers cannot
// write. Written by the publisher's device thread with its team, read by its server thread and by
// receivers.
#pragma once

#include "runtime/core/team.hpp"
#include "runtime/model/params.hpp"
#include "runtime/net/socket.hpp"
#include "runtime/weights/push_protocol.hpp"

#include <memory>
#include <vector>

namespace troupe::weights {

class Snapshot {
 public:
  static core::Result<std::shared_ptr<Snapshot>> create(const SnapshotShape& shape);
  Snapshot(const Snapshot&) = delete;
  Snapshot& operator=(const Snapshot&) = delete;
  ~Snapshot();

  // Copies `weights` with all members of the team; checksums are taken on the way. Weights on a
  // device belong to that team's.
  void fill(core::TeamRunner& team, const model::ParamStore& weights, core::Version version);

  const SnapshotShape& shape() const { return shape_; }
  core::Version version() const { return version_; }
  std::uint64_t id() const { return id_; }
  int fd() const { return memory_.get(); }
  const char* bytes() const { return mapped_; }

 private:
  Snapshot(const SnapshotShape& shape, net::OwnedFd memory, char* mapped);

  const SnapshotShape shape_;
  const std::uint64_t id_;
  net::OwnedFd memory_;
  char* const mapped_;
  std::vector<std::uint32_t> table_;
  core::Version version_ = 0;
};

}  // namespace troupe::weights
