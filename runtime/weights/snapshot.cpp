#include "runtime/weights/snapshot.hpp"

#include <algorithm>
#include <cstring>

namespace troupe::weights {

core::Result<std::shared_ptr<Snapshot>> Snapshot::create(const SnapshotShape& shape, Share share) {
  TROUPE_TRY_ASSIGN(memory,
                    core::SharedMemory::create("a snapshot of the weights", shape.bytes(share),
                                               core::SharedMemory::Others::kRead));
  return std::shared_ptr<Snapshot>(new Snapshot(shape, share, std::move(memory)));
}

Snapshot::Snapshot(const SnapshotShape& shape, Share share, core::SharedMemory memory)
    : shape_(shape), share_(share), id_(random_id()), memory_(std::move(memory)) {
  table_.resize(shape.buckets);
}

void Snapshot::begin(const SnapshotHead& head, std::span<const std::uint32_t> table) {
  set_ready(0);
  std::copy(table.begin(), table.end(), table_.begin());
  std::memcpy(memory_.data(), &head, sizeof head);
  std::memcpy(memory_.data() + sizeof head, table_.data(), table_.size() * sizeof(std::uint32_t));
  version_ = head.version;
  abandoned_ = false;
}

std::uint64_t Snapshot::ready_bytes() const {
  const std::uint32_t buckets = ready();
  if (buckets == shape_.buckets) return size();
  return shape_.data_offset() + shape_.begin_of(buckets, share_);
}

}  // namespace troupe::weights
