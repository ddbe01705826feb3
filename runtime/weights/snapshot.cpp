#include "runtime/weights/snapshot.hpp"

#include "runtime/core/crc32c.hpp"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstring>

#ifndef F_SEAL_FUTURE_WRITE
#define F_SEAL_FUTURE_WRITE 0x0010
#endif

namespace troupe::weights {
namespace {

core::Failure no_memory(std::uint64_t bytes) {
  return core::fail(core::ErrorCode::kResources,
                    "shared memory of " + std::to_string(bytes >> 20) +
                        " MiB for a snapshot of the weights: " + std::strerror(errno));
}

}  // namespace

core::Result<std::shared_ptr<Snapshot>> Snapshot::create(const SnapshotShape& shape) {
  const std::uint64_t bytes = shape.bytes();
  net::OwnedFd memory(::memfd_create("troupe-weights", MFD_CLOEXEC | MFD_ALLOW_SEALING));
  if (!memory || ::ftruncate(memory.get(), static_cast<off_t>(bytes)) != 0) return no_memory(bytes);
  void* const mapped = ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, memory.get(), 0);
  if (mapped == MAP_FAILED) return no_memory(bytes);
  std::shared_ptr<Snapshot> snapshot(
      new Snapshot(shape, std::move(memory), static_cast<char*>(mapped)));
  ::madvise(mapped, bytes, MADV_HUGEPAGE);
  // Allocates every page now: their first touch in `fill`, while the trainer waits, would cost more
  // than the copy. Populating the mapping gives huge pages; older kernels can only fallocate.
  if (::madvise(mapped, bytes, MADV_POPULATE_WRITE) != 0 &&
      (errno != EINVAL || ::fallocate(snapshot->fd(), 0, 0, static_cast<off_t>(bytes)) != 0)) {
    return no_memory(bytes);
  }
  if (::fcntl(snapshot->fd(), F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_FUTURE_WRITE) !=
      0) {
    return no_memory(bytes);
  }
  return snapshot;
}

Snapshot::Snapshot(const SnapshotShape& shape, net::OwnedFd memory, char* mapped)
    : shape_(shape), id_(random_id()), memory_(std::move(memory)), mapped_(mapped) {
  table_.resize(shape.buckets);
}

Snapshot::~Snapshot() {
  ::munmap(mapped_, shape_.bytes());
}

void Snapshot::fill(core::TeamRunner& team,
                    const model::ParamStore& weights,
                    core::Version version) {
  const bool on_host = weights.memory().on_host();
  char* const data = mapped_ + shape_.data_offset();
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
  std::memcpy(mapped_, &head, sizeof head);
  std::memcpy(mapped_ + sizeof head, table_.data(), table_.size() * sizeof(std::uint32_t));
  version_ = version;
}

}  // namespace troupe::weights
