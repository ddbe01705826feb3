// One version of the weights in host memory that other processes can map: head, checksums, image
// (push_protocol.hpp). Allocated once, with all its pages, and filled again for later versions
// while nobody else holds it. Its size is sealed, so reading never raises SIGBUS; receivers
// cannot write. A publisher fills it on its device thread with its team; a relay fills it bucket by
// bucket as they come, and its server passes on what is ready.
#pragma once

#include "runtime/core/shared_memory.hpp"
#include "runtime/core/team.hpp"
#include "runtime/model/params.hpp"
#include "runtime/net/socket.hpp"
#include "runtime/weights/image_writer.hpp"
#include "runtime/weights/push_protocol.hpp"

#include <atomic>
#include <memory>
#include <span>
#include <vector>

namespace troupe::weights {

class Snapshot {
 public:
  static constexpr bool kSparesStay = false;
  // Error kResources: there is not enough shared memory.
  static core::Result<std::shared_ptr<Snapshot>> create(const SnapshotShape& shape);
  Snapshot(const Snapshot&) = delete;
  Snapshot& operator=(const Snapshot&) = delete;

  // Packs `weights` with all members of the team and computes the checksums in the same pass.
  // Weights on a device must be in the memory of this team; `packed`: their image there, if it
  // exists. Error kInternal: the head cannot be signed.
  core::Result<void> fill(core::TeamRunner& team,
                          ImageWriter& writer,
                          const model::ParamStore& weights,
                          core::Version version,
                          const net::SigningKey& key,
                          const char* packed = nullptr);

  // The way of a relay: begin, write buckets at image(), and count them as ready in their order.
  void begin(const SnapshotHead& head, std::span<const std::uint32_t> table);
  char* image() { return memory_.data() + shape_.data_offset(); }
  void set_ready(std::uint32_t buckets) { ready_.store(buckets, std::memory_order_release); }
  // No more buckets will come.
  void abandon() { abandoned_ = true; }

  std::uint32_t ready() const { return ready_.load(std::memory_order_acquire); }
  bool complete() const { return ready() == shape_.buckets; }
  bool abandoned() const { return abandoned_; }
  // The bytes from the start that may be read.
  std::uint64_t ready_bytes() const;

  const SnapshotShape& shape() const { return shape_; }
  core::Version version() const { return version_; }
  const std::vector<std::uint32_t>& table() const { return table_; }
  std::uint64_t id() const { return id_; }
  int fd() const { return memory_.fd(); }
  const char* bytes() const { return memory_.data(); }

 private:
  Snapshot(const SnapshotShape& shape, core::SharedMemory memory);
  void write_head(const SnapshotHead& head);

  const SnapshotShape shape_;
  const std::uint64_t id_;
  const core::SharedMemory memory_;
  std::vector<std::uint32_t> table_;
  core::Version version_ = 0;
  std::atomic<std::uint32_t> ready_{0};
  std::atomic<bool> abandoned_{false};
};

}  // namespace troupe::weights
