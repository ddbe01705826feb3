#include "runtime/weights/snapshot.hpp"

#include "runtime/core/crc32c.hpp"

#include <atomic>
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

void Snapshot::fill(core::TeamRunner& team,
                    const model::ParamStore& weights,
                    core::Version version) {
  const bool on_host = weights.memory().on_host();
  char* const data = memory_.data() + shape_.data_offset();
  std::atomic<std::uint32_t> next{0};
  team.run([&](core::Team) {
    for (std::uint32_t i = next.fetch_add(1); i < shape_.buckets; i = next.fetch_add(1)) {
      const auto from = shape_.bucket(weights.data(), i);
      char* const to = data + i * shape_.bucket_bytes;
      if (on_host) {
        table_[i] = core::copy_crc32c(to, from.data(), from.size());
      } else {
        weights.memory().download(to, from.data(), from.size());
        table_[i] = core::crc32c(to, from.size());
      }
    }
  });
  const SnapshotHead head = make_head(shape_, version, table_);
  std::memcpy(memory_.data(), &head, sizeof head);
  std::memcpy(memory_.data() + sizeof head, table_.data(), table_.size() * sizeof(std::uint32_t));
  version_ = version;
}

}  // namespace troupe::weights
