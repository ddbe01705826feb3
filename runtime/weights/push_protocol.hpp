// The wire format between a publisher of weights and a receiver: a hello, an answer, and a
// snapshot. A snapshot has the same bytes in shared memory and on TCP: head, checksums of the
// buckets, zeros up to a whole page, then all weights in the order of ParamLayout, f32. Integers
// are little-endian, as x86-64 is. Pure functions; bounds below.
#pragma once

#include "runtime/core/ids.hpp"
#include "runtime/core/result.hpp"
#include "runtime/model/params.hpp"

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

namespace troupe::weights {

inline constexpr std::uint64_t kPushMagic = 0x3130484355505254;  // "TRPUCH01"
inline constexpr std::size_t kKey_chars = 64;
inline constexpr std::uint64_t kBucket_bytes = 4ull << 20;
inline constexpr std::uint64_t kBucket_bytes_min = 64ull << 10;
inline constexpr std::uint64_t kBucket_bytes_max = 16ull << 20;

// The way in which a receiver wants the weights; kDevice uses the same socket as kMemory.
enum class Wants : std::uint32_t { kMemory = 1, kStream = 2, kDevice = 3 };

struct Hello {
  std::uint64_t magic = kPushMagic;
  core::Version at_least = 0;
  Wants wants = Wants::kMemory;
  std::uint32_t reserved = 0;
  char key[kKey_chars] = {};
};
static_assert(sizeof(Hello) == 88);

enum class AnswerStatus : std::uint32_t {
  kHere = 1,     // a descriptor, the stream or a DevicePlace follows
  kOlder = 2,    // only older versions are here; `version` is the newest
  kNothing = 3,  // nothing was published yet
  kWrongKey = 4,
  kMalformed = 5,  // the hello asks for nothing that this socket gives
  kTooMany = 6,
  kNoDevice = 7,  // the snapshots are not on a device that others can open
  kQueued = 8,    // another answer follows once a receiver has ended
};

struct Answer {
  std::uint64_t magic = kPushMagic;
  AnswerStatus status = AnswerStatus::kHere;
  std::uint32_t reserved = 0;
  core::Version version = 0;
  std::uint64_t buffer_id = 0;  // of the shared memory, so that a receiver knows its mapping again
  std::uint64_t bytes = 0;      // of the snapshot
};
static_assert(sizeof(Answer) == 40);

// Follows the answer to kDevice: the device, and the handle of the weights' memory on it.
struct DevicePlace {
  char device[64] = {};  // core::Memory::shared_name, ended by a zero
  unsigned char handle[64] = {};
  std::uint64_t layout_hash = 0;
};
static_assert(sizeof(DevicePlace) == 136);

struct SnapshotHead {
  std::uint64_t magic = kPushMagic;
  core::Version version = 0;
  std::uint64_t layout_hash = 0;
  std::uint64_t elements = 0;
  std::uint64_t bucket_bytes = kBucket_bytes;
  std::uint32_t buckets = 0;
  std::uint32_t table_crc = 0;  // of the buckets' checksums
  std::uint32_t reserved = 0;
  std::uint32_t head_crc = 0;  // of the fields above
};
static_assert(sizeof(SnapshotHead) == 56);

// Layout and sizes of a model's snapshot; both sides compute it from the model.
struct SnapshotShape {
  SnapshotShape() = default;
  explicit SnapshotShape(const model::ParamLayout& layout,
                         std::uint64_t bytes_per_bucket = kBucket_bytes);
  std::uint64_t layout_hash = 0;  // over names, shapes and places of all tensors
  std::uint64_t elements = 0;
  std::uint64_t bucket_bytes = 0;
  std::uint32_t buckets = 0;

  std::uint64_t data_bytes() const { return elements * sizeof(float); }
  std::uint64_t data_offset() const;  // of the first weight, after head, table and zeros
  std::uint64_t bytes() const { return data_offset() + data_bytes(); }
  // Place and size of a bucket within the weights.
  std::span<const char> bucket(const float* data, std::uint32_t index) const;
};

// A head for `version` whose checksums are set; `table` are those of the buckets.
SnapshotHead make_head(const SnapshotShape& shape,
                       core::Version version,
                       std::span<const std::uint32_t> table);

// The shape that a head announces, which may differ in the size of buckets alone from `expected`.
// Errors: kData, naming the field.
core::Result<SnapshotShape> check_head(const SnapshotHead& head, const SnapshotShape& expected);
core::Result<void> check_table(const SnapshotHead& head, std::span<const std::uint32_t> table);
core::Failure wrong_bucket(core::Version version, std::uint32_t bucket, std::uint32_t buckets);

// Error unless the answer grants a snapshot of at least `at_least`. `source` names the publisher in
// errors.
core::Result<void> check_answer(const Answer& answer,
                                core::Version at_least,
                                const std::string& source);

// A random number from the system's generator.
std::uint64_t random_id();
// Names this machine while it is up, and the network namespace: processes with the same id reach
// each other's abstract sockets and can share memory.
std::string own_host_id();

}  // namespace troupe::weights
