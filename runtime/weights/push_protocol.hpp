// The wire format between a publisher of weights (or a relay) and a receiver: a hello, an answer,
// and a snapshot. After a stream the receiver confirms with one byte and may send the next hello on
// the same connection. A snapshot has the same bytes in shared memory and on TCP: SnapshotHead, a
// CRC-32C of every bucket (u32), zeros up to a whole page, then the image of the weights
// (model/pack_plan.hpp). A stream that goes on where another one broke leaves out the first
// buckets. A receiver that is sent to a relay (kAtRelay) keeps its connection with the publisher
// and sends a Report over it now and then. Integers are little-endian, as on x86-64. Pure
// functions, except for the two ids at the end.
//
// An image may have several sources, each with its share of the buckets: the ranks of a trainer on
// one host. Their snapshots have the head and the checksums of the whole image, and then the
// buckets of their share alone. Source 0 is the publisher: its answer says how many sources there
// are, and for shared memory at which sockets the others are. The receiver then asks each of them
// for that very version; for a stream by a new connection to the publisher, which hands it on.
#pragma once

#include "runtime/core/fixed_text.hpp"
#include "runtime/core/ids.hpp"
#include "runtime/core/result.hpp"
#include "runtime/model/packed_layout.hpp"
#include "runtime/net/host_id.hpp"
#include "runtime/net/signature.hpp"

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <string>

namespace troupe::weights {

inline constexpr std::uint64_t kPushMagic = 0x3330484355505254;  // "TRPUCH03"
// A location's key: what a receiver sends, then the public key of the publisher's signatures.
inline constexpr std::size_t kSecret_chars = 64;
inline constexpr std::size_t kKey_chars = kSecret_chars + net::kPublicKey_chars;
// Bytes of an image under one checksum: what publishers use, and what receivers accept.
inline constexpr std::uint64_t kBucket_bytes = 1ull << 20;
inline constexpr std::uint64_t kBucket_bytes_min = 64ull << 10;
inline constexpr std::uint64_t kBucket_bytes_max = 16ull << 20;

// How a receiver wants the weights: as host memory to map, as a byte stream, or as GPU memory to
// open. kDevice uses the same socket as kMemory.
enum class Wants : std::uint32_t { kMemory = 1, kStream = 2, kDevice = 3 };

// Why a receiver asks again in the middle of a version.
enum class RelayFault : std::uint32_t {
  kNone = 0,
  kLost = 1,    // the connection ended, or was refused
  kSilent = 2,  // no byte came for kRelaySilent
  kWrong = 3,   // other bytes than the policy signed, or another version than it was sent for
  kSlow = 4,    // it gives buckets; the receiver asks whether another relay would be better
};

// Where others reach a receiver that passes buckets on.
struct RelayPlace {
  std::uint32_t number = 0;  // Hello::receiver of the relay
  std::uint32_t reserved = 0;
  core::FixedText<64> socket;    // Unix socket for processes of its host, or empty
  core::FixedText<120> address;  // "host:port" for other hosts, or empty
};
static_assert(sizeof(RelayPlace) == 192);

// A receiver's request.
struct Hello {
  std::uint64_t magic = kPushMagic;
  core::Version at_least = 0;  // the oldest version that will do
  Wants wants = Wants::kMemory;
  kernels::PanelDtype image = kernels::PanelDtype::kF32;  // image_type of the panels
  std::uint8_t relays = 0;  // 1: may be sent to a relay, and has kAtRelay's Reports
  std::uint8_t exact = 0;   // 1: no newer version than `at_least` will do
  std::uint8_t keep = 0;    // 1: source 0 keeps its snapshot of that version for this receiver
  core::Version begun = 0;  // the version of which it has the first `buckets`
  std::uint32_t buckets = 0;
  std::uint32_t avoid = 0;  // the number of the relay that failed it; 0: none
  RelayFault fault = RelayFault::kNone;
  std::uint32_t source = 0;  // the source asked
  std::uint64_t host = 0;    // a hash of its host's id
  RelayPlace place;          // its own; `number` is by which the publisher knows it again, or 0
  char secret[kSecret_chars] = {};
};
static_assert(sizeof(Hello) == 312);

enum class AnswerStatus : std::uint32_t {
  kHere = 1,     // with a descriptor of the memory; or the stream or a DevicePlace follows
  kOlder = 2,    // only older versions are here; `version` is the newest
  kNothing = 3,  // nothing was published yet
  kWrongKey = 4,
  kMalformed = 5,  // the hello asks for something that this socket does not give
  kTooMany = 6,    // the queue is full
  kNoDevice = 7,   // no snapshot is on a device that others can open
  kQueued = 8,     // the receiver waits for a snapshot; another answer follows
  kAtRelay = 9,    // a RelayPlace follows: `version` is to be had there
  kReplaced = 10,  // the version that was asked for is no longer here; `version` is the newest
};

struct Answer {
  std::uint64_t magic = kPushMagic;
  AnswerStatus status = AnswerStatus::kHere;
  std::uint32_t first_bucket = 0;  // with which a stream begins
  core::Version version = 0;
  std::uint64_t buffer_id = 0;  // of the snapshot, by which a receiver finds memory it has opened
  std::uint64_t bytes = 0;      // of the snapshot; for kDevice of the image alone
  std::uint32_t sources = 1;    // of this image, if source 0 was asked; with kMemory a SourcePlace
                                // of each further one follows
  std::uint32_t kept = 0;       // 1: this snapshot is not taken back before its receiver is done
  bool says(AnswerStatus what) const { return magic == kPushMagic && status == what; }
};
static_assert(sizeof(Answer) == 48);

// Where processes of its host reach a source of shared memory.
struct SourcePlace {
  core::FixedText<64> socket;  // Unix
};
inline constexpr std::uint32_t kSources_max = 1024;

// From a receiver at a relay to the publisher.
struct Report {
  enum class Kind : std::uint32_t {
    kProgress = 1,  // it has `buckets` now
    kDone = 2,      // it has the whole version; the next Hello may follow
    kAgain = 3,     // a Hello follows at once: the relay has failed it
  };
  Kind kind = Kind::kProgress;
  std::uint32_t buckets = 0;
};
static_assert(sizeof(Report) == 8);

// Follows the answer to kDevice: the device, and the handle of the image's memory on it.
struct DevicePlace {
  core::FixedText<64> device;  // core::Memory::shared_name
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
  std::uint64_t image_bytes = 0;
  std::uint64_t bucket_bytes = kBucket_bytes;
  std::uint32_t buckets = 0;
  std::uint32_t table_crc = 0;  // of the buckets' checksums
  std::uint32_t reserved = 0;
  std::uint32_t head_crc = 0;  // of the fields above
  net::Signature signature{};  // of the fields above and the buckets' checksums, by the publisher
};
static_assert(sizeof(SnapshotHead) == 120);

// The buckets that one source of an image has: source `number` of `of` has every of-th one.
struct Share {
  std::uint32_t number = 0, of = 1;  // number == of: has none
  bool has(std::uint32_t bucket) const { return bucket % of == number; }
  // Buckets of the share below this one.
  std::uint32_t before(std::uint32_t bucket) const {
    if (number >= of) return 0;
    return bucket / of + (bucket % of > number ? 1 : 0);
  }
  // The bucket of the image that is the share's one of this index.
  std::uint32_t bucket(std::uint32_t index) const { return index * of + number; }
  friend bool operator==(const Share&, const Share&) = default;
};

// The storage type under which images are told apart: bf16-compute has the panels of bf16.
constexpr kernels::PanelDtype image_type(kernels::PanelDtype dtype) {
  return dtype == kernels::PanelDtype::kBf16Compute ? kernels::PanelDtype::kBf16 : dtype;
}

// Layout and sizes of a model's snapshot. Both sides compute them from the model and the storage
// type, so a receiver trusts no size from outside.
struct SnapshotShape {
  SnapshotShape() = default;
  SnapshotShape(const model::ModelSpec& spec,
                kernels::PanelDtype dtype,
                std::uint64_t bytes_per_bucket = kBucket_bytes);
  std::uint64_t layout_hash = 0;  // over names, shapes and offsets of all tensors, and the type
  std::uint64_t image_bytes = 0;
  std::uint64_t bucket_bytes = 0;
  std::uint32_t buckets = 0;

  std::uint64_t data_offset() const;                // of the buckets, after head, table and zeros
  std::uint64_t image_bytes_of(Share share) const;  // of the share's buckets alone
  // The bytes of a snapshot with this share of the buckets.
  std::uint64_t bytes(Share share = {}) const { return data_offset() + image_bytes_of(share); }
  // The place of bucket `index` in an image, or among the share's buckets, in bytes.
  std::uint64_t begin_of(std::uint32_t index, Share share = {}) const {
    return share.before(index) * bucket_bytes;
  }
  std::size_t size_of(std::uint32_t index) const;
  // The bytes of bucket `index`, where the share's buckets begin at `data`.
  std::span<const char> bucket(const char* data, std::uint32_t index, Share share = {}) const;
};

// Makes a complete head for `version`; `table` holds the buckets' checksums. Error kInternal: it
// cannot be signed.
core::Result<SnapshotHead> make_head(const SnapshotShape& shape,
                                     core::Version version,
                                     std::span<const std::uint32_t> table,
                                     const net::SigningKey& key);

// Returns the shape that a head announces; it may differ from `expected` only in the size and
// number of buckets. Error kData, naming the field that is wrong.
core::Result<SnapshotShape> check_head(const SnapshotHead& head, const SnapshotShape& expected);
// Error kData: the buckets' checksums do not have the checksum that the head says, or the holder of
// `public_key` did not sign them.
core::Result<void> check_table(const SnapshotHead& head,
                               std::span<const std::uint32_t> table,
                               const std::string& public_key);
// The kData error for a bucket with a wrong checksum.
core::Failure wrong_bucket(core::Version version, std::uint32_t bucket, std::uint32_t buckets);

// Turns an answer that does not grant version `at_least` or a newer one into an error. `source`
// names the publisher in errors.
core::Result<void> check_answer(const Answer& answer,
                                core::Version at_least,
                                const std::string& source);

// Error kData: it names no sources, or too many.
core::Result<void> check_sources(const Answer& answer, const std::string& source);
// Reads all bytes or fails with an error that begins with `what`.
using ReadBytes =
    std::function<core::Result<void>(void* into, std::size_t size, const std::string& what)>;
// The answer that follows those that say kQueued: a publisher without a free place repeats that
// until it has one.
core::Result<Answer> read_answer(const ReadBytes& read, const std::string& source);

// The parts of a location's key. Error kInvalidArgument: it has another length.
struct KeyParts {
  std::string secret, public_key;
};
core::Result<KeyParts> parts_of_key(const std::string& key);

// A number that tells hosts apart (Hello::host); never 0.
std::uint64_t host_number(const std::string& host_id);

// A random number from the system's generator.
std::uint64_t random_id();
using net::own_host_id;

}  // namespace troupe::weights
