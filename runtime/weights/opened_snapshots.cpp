#include "runtime/weights/opened_snapshots.hpp"

#include "runtime/core/shared_memory.hpp"
#include "runtime/weights/limits.hpp"

#include <algorithm>
#include <cstring>

namespace troupe::weights {

core::Result<ArrivedImage> announced(const SnapshotHead& head,
                                     const SnapshotShape& shape,
                                     const char* checksums,
                                     const std::string& public_key) {
  ArrivedImage image;
  image.version = head.version;
  image.shape = shape;
  image.table.resize(shape.buckets);
  std::memcpy(image.table.data(), checksums, 4 * image.table.size());
  TROUPE_TRY(check_table(head, image.table, public_key));
  return image;
}

core::Result<OpenedSnapshots::Opened> OpenedSnapshots::map(const Answer& answer,
                                                           const net::OwnedFd& memory,
                                                           std::size_t most) {
  const std::lock_guard lock(mutex_);
  const auto known = std::find_if(kept_.begin(), kept_.end(),
                                  [&](const Opened& one) { return one.id == answer.buffer_id; });
  if (known != kept_.end()) {
    std::rotate(known, known + 1, kept_.end());
    return kept_.back();
  }
  TROUPE_TRY_ASSIGN(opened, core::SharedMemory::open("the weights", memory, answer.bytes,
                                                     core::SharedMemory::Others::kRead));
  auto held = std::make_shared<core::SharedMemory>(std::move(opened));
  kept_.push_back(
      {answer.buffer_id, answer.bytes, std::shared_ptr<const void>(held, held->data())});
  if (kept_.size() > most) kept_.erase(kept_.begin());
  return kept_.back();
}

core::Result<ArrivedImage> OpenedSnapshots::open(const Answer& answer,
                                                 const net::OwnedFd& memory,
                                                 const std::string& public_key,
                                                 Share share) {
  TROUPE_TRY_ASSIGN(mapping, map(answer, memory, limits::kWeightMappings_max * share.of));
  const char* const start = static_cast<const char*>(mapping.data.get());
  SnapshotHead head;
  if (mapping.bytes < sizeof head) {
    return fail(ErrorCode::kData, "the shared memory of the weights is too short for its head");
  }
  std::memcpy(&head, start, sizeof head);
  TROUPE_TRY_ASSIGN(shape, check_head(head, expected_));
  if (mapping.bytes != shape.bytes(share) || head.version != answer.version) {
    return fail(ErrorCode::kData, "the shared memory of the weights is not what was announced");
  }
  TROUPE_TRY_ASSIGN(image, announced(head, shape, start + sizeof head, public_key));
  image.parts.push_back({start + shape.data_offset(), {}, mapping.data});
  return image;
}

}  // namespace troupe::weights
