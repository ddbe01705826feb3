#include "runtime/weights/snapshot.hpp"

#include <algorithm>
#include <cstring>

namespace troupe::weights {

core::Result<std::shared_ptr<Snapshot>> Snapshot::create(const SnapshotShape& shape) {
  TROUPE_TRY_ASSIGN(memory, core::SharedMemory::create("a snapshot of the weights", shape.bytes(),
                                                       core::SharedMemory::Others::kRead));
  return std::shared_ptr<Snapshot>(new Snapshot(shape, std::move(memory)));
}

Snapshot::Snapshot(const SnapshotShape& shape, core::SharedMemory memory)
    : shape_(shape), id_(random_id()), memory_(std::move(memory)) {
  table_.resize(shape.buckets);
}

void Snapshot::write_head(const SnapshotHead& head) {
  std::memcpy(memory_.data(), &head, sizeof head);
  std::memcpy(memory_.data() + sizeof head, table_.data(), table_.size() * sizeof(std::uint32_t));
  version_ = head.version;
  abandoned_ = false;
}

core::Result<void> Snapshot::fill(core::TeamRunner& team,
                                  ImageWriter& writer,
                                  const model::ParamStore& weights,
                                  core::Version version,
                                  const net::SigningKey& key,
                                  const char* packed) {
  writer.write(team, weights, image(), table_, packed);
  TROUPE_TRY_ASSIGN(head, make_head(shape_, version, table_, key));
  write_head(head);
  set_ready(shape_.buckets);
  return {};
}

void Snapshot::begin(const SnapshotHead& head, std::span<const std::uint32_t> table) {
  set_ready(0);
  std::copy(table.begin(), table.end(), table_.begin());
  write_head(head);
}

std::uint64_t Snapshot::ready_bytes() const {
  const std::uint32_t buckets = ready();
  return buckets == shape_.buckets ? shape_.bytes()
                                   : shape_.data_offset() + buckets * shape_.bucket_bytes;
}

}  // namespace troupe::weights
