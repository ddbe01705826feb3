// One version of the weights in host memory that other processes can map: head, checksums, and the
// image or one source's share of it (push_protocol.hpp). Allocated once, with all its pages, and
// filled again for later versions while nobody else holds it. Its size is sealed, so reading never
// raises SIGBUS; receivers cannot write. A publisher writes it on its device thread with its team;
// a relay writes bucket by bucket as they come, and its server passes on what is ready.
#pragma once

#include "runtime/core/shared_memory.hpp"
#include "runtime/net/socket.hpp"
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
  static core::Result<std::shared_ptr<Snapshot>> create(const SnapshotShape& shape,
                                                        Share share = {});
  Snapshot(const Snapshot&) = delete;
  Snapshot& operator=(const Snapshot&) = delete;

  // Buckets are written at buckets(), the share's one after another; `begin` says what they are,
  // and `set_ready` that all below this bucket of the image are there, as far as they are its own.
  // A relay begins first; a publisher, who knows the checksums last, begins when all are written.
  char* buckets() { return memory_.data() + shape_.data_offset(); }
  char* bucket(std::uint32_t index) { return buckets() + shape_.begin_of(index, share_); }
  void begin(const SnapshotHead& head, std::span<const std::uint32_t> table);
  void set_ready(std::uint32_t buckets) { ready_.store(buckets, std::memory_order_release); }
  // No more buckets will come.
  void abandon() { abandoned_ = true; }

  std::uint32_t ready() const { return ready_.load(std::memory_order_acquire); }
  bool complete() const { return ready() == shape_.buckets; }
  bool abandoned() const { return abandoned_; }
  // The bytes from the start that may be read.
  std::uint64_t ready_bytes() const;

  const SnapshotShape& shape() const { return shape_; }
  Share share() const { return share_; }
  std::uint64_t size() const { return shape_.bytes(share_); }  // in bytes
  core::Version version() const { return version_; }
  const std::vector<std::uint32_t>& table() const { return table_; }
  std::uint64_t id() const { return id_; }
  int fd() const { return memory_.fd(); }
  const char* bytes() const { return memory_.data(); }

 private:
  Snapshot(const SnapshotShape& shape, Share share, core::SharedMemory memory);

  const SnapshotShape shape_;
  const Share share_;
  const std::uint64_t id_;
  const core::SharedMemory memory_;
  std::vector<std::uint32_t> table_;
  core::Version version_ = 0;
  std::atomic<std::uint32_t> ready_{0};
  std::atomic<bool> abandoned_{false};
};

}  // namespace troupe::weights
