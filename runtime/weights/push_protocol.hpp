// The wire format between a publisher of weights and a receiver: a hello, an answer, and a
// snapshot. After a stream the receiver confirms with one byte and may send the next hello on the
// same connection. A snapshot has the same bytes in shared memory and on TCP: SnapshotHead, a
// CRC-32C of every bucket (u32), zeros up to a whole page, then all weights in the order of
// ParamLayout, f32. Integers are little-endian, as on x86-64. Pure functions, except for the two
// ids at the end.
#pragma once

#include "runtime/core/ids.hpp"
#include "runtime/core/result.hpp"
#include "runtime/model/params.hpp"
#include "runtime/net/host_id.hpp"

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

namespace troupe::weights {

inline constexpr std::uint64_t kPushMagic = 0x3130484355505254;  // "TRPUCH01"
inline constexpr std::size_t kKey_chars = 64;
// Bytes of weights under one checksum: what publishers use, and what receivers accept.
inline constexpr std::uint64_t kBucket_bytes = 4ull << 20;
inline constexpr std::uint64_t kBucket_bytes_min = 64ull << 10;
inline constexpr std::uint64_t kBucket_bytes_max = 16ull << 20;

// How a receiver wants the weights: as host memory to map, as a byte stream, or as GPU memory to
// open. kDevice uses the same socket as kMemory.
enum class Wants : std::uint32_t { kMemory = 1, kStream = 2, kDevice = 3 };

// A receiver's request.
struct Hello {
  std::uint64_t magic = kPushMagic;
  core::Version at_least = 0;  // the oldest version that will do
  Wants wants = Wants::kMemory;
  std::uint32_t receiver = 0;  // a random number by which the publisher knows it again; 0: none
  char key[kKey_chars] = {};   // WeightLocation::key
};
static_assert(sizeof(Hello) == 88);

enum class AnswerStatus : std::uint32_t {
  kHere = 1,     // with a descriptor of the memory; or the stream or a DevicePlace follows
  kOlder = 2,    // only older versions are here; `version` is the newest
  kNothing = 3,  // nothing was published yet
  kWrongKey = 4,
  kMalformed = 5,  // the hello asks for something that this socket does not give
  kTooMany = 6,    // the queue is full
  kNoDevice = 7,   // no snapshot is on a device that others can open
  kQueued = 8,     // the receiver waits for a snapshot; another answer follows
};

struct Answer {
  std::uint64_t magic = kPushMagic;
  AnswerStatus status = AnswerStatus::kHere;
  std::uint32_t reserved = 0;
  core::Version version = 0;
  std::uint64_t buffer_id = 0;  // of the snapshot, by which a receiver finds memory it has opened
  std::uint64_t bytes = 0;      // of the snapshot; for kDevice of the weights alone
};
static_assert(sizeof(Answer) == 40);

// Follows the answer to kDevice: the device, and the handle of the weights' memory on it.
struct DevicePlace {
  char device[64] = {};  // core::Memory::shared_name, ended by a zero
  unsigned char handle[64] = {};
  std::uint64_t layout_hash = 0;
};
static_assert(sizeof(DevicePlace) == 136);

// Sent to a receiver that holds shared or device memory when that is about to be written again.
inline constexpr char kTakenBack = 1;

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

// Layout and sizes of a model's snapshot. Both sides compute them from the model, so a receiver
// trusts no size from outside.
struct SnapshotShape {
  SnapshotShape() = default;
  explicit SnapshotShape(const model::ParamLayout& layout,
                         std::uint64_t bytes_per_bucket = kBucket_bytes);
  std::uint64_t layout_hash = 0;  // over names, shapes and offsets of all tensors
  std::uint64_t elements = 0;
  std::uint64_t bucket_bytes = 0;
  std::uint32_t buckets = 0;

  std::uint64_t data_bytes() const { return elements * sizeof(float); }
  std::uint64_t data_offset() const;  // of the first weight, after head, table and zeros
  std::uint64_t bytes() const { return data_offset() + data_bytes(); }
  // The bytes of bucket `index` of the weights that begin at `data`.
  std::span<const char> bucket(const float* data, std::uint32_t index) const;
};

// Makes a complete head for `version`; `table` holds the buckets' checksums.
SnapshotHead make_head(const SnapshotShape& shape,
                       core::Version version,
                       std::span<const std::uint32_t> table);

// Returns the shape that a head announces; it may differ from `expected` only in the size and
// number of buckets. Error kData, naming the field that is wrong.
core::Result<SnapshotShape> check_head(const SnapshotHead& head, const SnapshotShape& expected);
// Error kData: the buckets' checksums do not have the checksum that the head says.
core::Result<void> check_table(const SnapshotHead& head, std::span<const std::uint32_t> table);
// The kData error for a bucket with a wrong checksum.
core::Failure wrong_bucket(core::Version version, std::uint32_t bucket, std::uint32_t buckets);

// Turns an answer that does not grant version `at_least` or a newer one into an error. `source`
// names the publisher in errors.
core::Result<void> check_answer(const Answer& answer,
                                core::Version at_least,
                                const std::string& source);

// A random number from the system's generator.
std::uint64_t random_id();
using net::own_host_id;

}  // namespace troupe::weights
