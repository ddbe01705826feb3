#include "runtime/weights/push_protocol.hpp"

#include "runtime/core/check.hpp"
#include "runtime/core/crc32c.hpp"
#include "runtime/model/pack_plan.hpp"
#include "runtime/weights/limits.hpp"

#include <sys/random.h>

#include <string_view>

namespace troupe::weights {
namespace {

using std::to_string;

constexpr std::uint64_t kPage_bytes = 4096;
constexpr std::uint64_t kHashStart = 0xcbf29ce484222325u;

std::uint64_t mixed(std::uint64_t hash, const void* bytes, std::size_t size) {
  const auto* next = static_cast<const unsigned char*>(bytes);
  for (std::size_t i = 0; i < size; ++i)
    hash = (hash ^ next[i]) * 0x100000001b3u;  // FNV-1a
  return hash;
}

template <class Number>
std::uint64_t mixed(std::uint64_t hash, Number number) {
  return mixed(hash, &number, sizeof number);
}

std::uint32_t buckets_of(std::uint64_t bytes, std::uint64_t bucket_bytes) {
  return static_cast<std::uint32_t>((bytes + bucket_bytes - 1) / bucket_bytes);
}

// What a publisher signs: the head, and the buckets' checksums.
std::string signed_bytes(const SnapshotHead& head, std::span<const std::uint32_t> table) {
  std::string bytes(reinterpret_cast<const char*>(&head), offsetof(SnapshotHead, signature));
  return bytes.append(reinterpret_cast<const char*>(table.data()), table.size_bytes());
}

core::Result<void> expect(std::uint64_t got, std::uint64_t wanted, const std::string& what) {
  if (got == wanted) return {};
  return fail(ErrorCode::kData, "the head of the weights: " + what + " is " + to_string(got) +
                                    " and should be " + to_string(wanted));
}

}  // namespace

SnapshotShape::SnapshotShape(const model::ModelSpec& spec,
                             kernels::PanelDtype dtype,
                             std::uint64_t bytes_per_bucket)
    : layout_hash(kHashStart), bucket_bytes(bytes_per_bucket) {
  const model::ParamLayout layout(spec);
  for (const model::ParamView& tensor : layout.views) {
    layout_hash = mixed(layout_hash, tensor.name.data(), tensor.name.size() + 1);
    layout_hash = mixed(layout_hash, tensor.offset);
    for (const std::int64_t dimension : tensor.shape)
      layout_hash = mixed(layout_hash, dimension);
  }
  layout_hash = mixed(layout_hash, image_type(dtype));
  constexpr std::uintptr_t kAnywhere = 64;
  const auto packed = model::lay_out_packed(spec, dtype, kAnywhere);
  image_bytes = static_cast<std::uint64_t>(packed.image) * sizeof(float);
  buckets = buckets_of(image_bytes, bucket_bytes);
}

std::uint64_t SnapshotShape::data_offset() const {
  const std::uint64_t before = sizeof(SnapshotHead) + std::uint64_t{buckets} * 4;
  return (before + kPage_bytes - 1) / kPage_bytes * kPage_bytes;
}

std::size_t SnapshotShape::size_of(std::uint32_t index) const {
  return static_cast<std::size_t>(std::min(begin_of(index + 1), image_bytes) - begin_of(index));
}

std::uint64_t SnapshotShape::image_bytes_of(Share share) const {
  const std::uint64_t whole = begin_of(buckets, share);
  const bool has_last = buckets > 0 && share.has(buckets - 1);
  return has_last ? whole - bucket_bytes + size_of(buckets - 1) : whole;
}

std::span<const char> SnapshotShape::bucket(const char* data,
                                            std::uint32_t index,
                                            Share share) const {
  return {data + begin_of(index, share), size_of(index)};
}

core::Result<SnapshotHead> make_head(const SnapshotShape& shape,
                                     core::Version version,
                                     std::span<const std::uint32_t> table,
                                     const net::SigningKey& key) {
  SnapshotHead head;
  head.version = version;
  head.layout_hash = shape.layout_hash;
  head.image_bytes = shape.image_bytes;
  head.bucket_bytes = shape.bucket_bytes;
  head.buckets = shape.buckets;
  head.table_crc = core::crc32c(table.data(), table.size_bytes());
  head.head_crc = core::crc32c(&head, offsetof(SnapshotHead, head_crc));
  TROUPE_TRY_SET(head.signature, key.sign(signed_bytes(head, table)));
  return head;
}

core::Result<SnapshotShape> check_head(const SnapshotHead& head, const SnapshotShape& expected) {
  if (head.magic != kPushMagic) {
    return fail(ErrorCode::kData, "the head of the weights begins with other bytes than ours");
  }
  TROUPE_TRY(
      expect(core::crc32c(&head, offsetof(SnapshotHead, head_crc)), head.head_crc, "its checksum"));
  TROUPE_TRY(expect(head.image_bytes, expected.image_bytes, "the size of the image"));
  if (head.layout_hash != expected.layout_hash) {
    return fail(
        ErrorCode::kData,
        "the head of the weights: names, shapes or storage of the tensors differ from this model's",
        "trainer and engine must load the same model");
  }
  if (head.bucket_bytes < kBucket_bytes_min || head.bucket_bytes > kBucket_bytes_max ||
      head.bucket_bytes % 64 != 0) {
    return fail(ErrorCode::kData, "the head of the weights: a bucket of " +
                                      to_string(head.bucket_bytes) + " bytes is refused");
  }
  SnapshotShape shape = expected;
  shape.bucket_bytes = head.bucket_bytes;
  shape.buckets = buckets_of(shape.image_bytes, shape.bucket_bytes);
  TROUPE_TRY(expect(head.buckets, shape.buckets, "the number of buckets"));
  return shape;
}

core::Result<void> check_table(const SnapshotHead& head,
                               std::span<const std::uint32_t> table,
                               const std::string& public_key) {
  TROUPE_TRY(expect(core::crc32c(table.data(), table.size_bytes()), head.table_crc,
                    "the checksum of the buckets' checksums"));
  if (net::is_signed(signed_bytes(head, table), head.signature, public_key)) return {};
  return fail(ErrorCode::kData, "the head of the weights: the policy did not sign version " +
                                    to_string(head.version) + " with these checksums");
}

core::Failure wrong_bucket(core::Version version, std::uint32_t bucket, std::uint32_t buckets) {
  return fail(ErrorCode::kData, "version " + to_string(version) + " of the weights: bucket " +
                                    to_string(bucket) + " of " + to_string(buckets) +
                                    " has a wrong checksum");
}

core::Result<void> check_answer(const Answer& answer,
                                core::Version at_least,
                                const std::string& source) {
  if (answer.magic != kPushMagic) {
    return fail(ErrorCode::kData, source + " does not speak our weight protocol");
  }
  switch (answer.status) {
    case AnswerStatus::kHere:
      if (answer.version >= at_least) return {};
      return fail(ErrorCode::kData, source + " gives version " + to_string(answer.version) +
                                        " instead of " + to_string(at_least));
    case AnswerStatus::kOlder:
      return fail(ErrorCode::kNotFound,
                  "version " + to_string(at_least) + " of the weights is not at " + source,
                  "the newest is " + to_string(answer.version));
    case AnswerStatus::kNothing:
      return fail(ErrorCode::kNotFound,
                  "version " + to_string(at_least) + " of the weights is not at " + source,
                  "none was published");
    case AnswerStatus::kWrongKey:
      return fail(ErrorCode::kInvalidArgument, source + " refused the key");
    case AnswerStatus::kMalformed:
      return fail(ErrorCode::kInvalidArgument, source + " could not read our request");
    case AnswerStatus::kNoDevice:
      return fail(ErrorCode::kUnsupported, source + " has no weights on a device");
    case AnswerStatus::kTooMany:
      return fail(
          ErrorCode::kOverloaded,
          source + " has " + to_string(limits::kWeightQueue_max) + " receivers waiting already",
          "ask again later");
    case AnswerStatus::kReplaced:
      return fail(ErrorCode::kPeerLost,
                  "version " + to_string(at_least) + " of the weights was replaced at " + source +
                      " while it was fetched",
                  "version " + to_string(answer.version) + " is there");
    case AnswerStatus::kAtRelay:
      break;  // for a receiver that can go there
    case AnswerStatus::kQueued:
      break;  // comes only before the real answer, and receivers skip it
  }
  return fail(ErrorCode::kData, source + " answers with the unknown status " +
                                    to_string(static_cast<std::uint32_t>(answer.status)));
}

core::Result<void> check_sources(const Answer& answer, const std::string& source) {
  if (answer.sources != 0 && answer.sources <= kSources_max) return {};
  return fail(ErrorCode::kData,
              source + " names " + to_string(answer.sources) + " sources of its weights");
}

core::Result<Answer> read_answer(const ReadBytes& read, const std::string& source) {
  Answer answer;
  do {
    TROUPE_TRY(read(&answer, sizeof answer, "the answer of " + source));
  } while (answer.says(AnswerStatus::kQueued));
  return answer;
}

core::Result<KeyParts> parts_of_key(const std::string& key) {
  if (key.size() == kKey_chars)
    return KeyParts{key.substr(0, kSecret_chars), key.substr(kSecret_chars)};
  return fail(ErrorCode::kInvalidArgument, "the key of a weight source has " +
                                               to_string(key.size()) + " characters instead of " +
                                               to_string(kKey_chars));
}

std::uint64_t host_number(const std::string& host_id) {
  return mixed(kHashStart, host_id.data(), host_id.size()) | 1;
}

std::uint64_t random_id() {
  std::uint64_t id = 0;
  TROUPE_CHECK(::getrandom(&id, sizeof id, 0) == sizeof id, "the system's random numbers");
  return id;
}

}  // namespace troupe::weights
