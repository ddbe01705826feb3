#include "runtime/weights/push_protocol.hpp"

#include "runtime/core/check.hpp"
#include "runtime/core/crc32c.hpp"
#include "runtime/weights/limits.hpp"

#include <sys/random.h>

#include <string_view>

namespace troupe::weights {
namespace {

using core::ErrorCode;
using core::fail;
using std::to_string;

constexpr std::uint64_t kPage_bytes = 4096;

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

core::Result<void> expect(std::uint64_t got, std::uint64_t wanted, const std::string& what) {
  if (got == wanted) return {};
  return fail(ErrorCode::kData, "the head of the weights: " + what + " is " + to_string(got) +
                                    " and should be " + to_string(wanted));
}

}  // namespace

SnapshotShape::SnapshotShape(const model::ParamLayout& layout, std::uint64_t bytes_per_bucket)
    : layout_hash(0xcbf29ce484222325u),
      elements(static_cast<std::uint64_t>(layout.total)),
      bucket_bytes(bytes_per_bucket) {
  for (const model::ParamView& tensor : layout.views) {
    layout_hash = mixed(layout_hash, tensor.name.data(), tensor.name.size() + 1);
    layout_hash = mixed(layout_hash, tensor.offset);
    for (const std::int64_t dimension : tensor.shape)
      layout_hash = mixed(layout_hash, dimension);
  }
  buckets = static_cast<std::uint32_t>((data_bytes() + bucket_bytes - 1) / bucket_bytes);
}

std::uint64_t SnapshotShape::data_offset() const {
  const std::uint64_t before = sizeof(SnapshotHead) + std::uint64_t{buckets} * 4;
  return (before + kPage_bytes - 1) / kPage_bytes * kPage_bytes;
}

std::span<const char> SnapshotShape::bucket(const float* data, std::uint32_t index) const {
  const std::uint64_t begin = index * bucket_bytes;
  const std::uint64_t end = std::min(begin + bucket_bytes, data_bytes());
  return {reinterpret_cast<const char*>(data) + begin, static_cast<std::size_t>(end - begin)};
}

SnapshotHead make_head(const SnapshotShape& shape,
                       core::Version version,
                       std::span<const std::uint32_t> table) {
  SnapshotHead head;
  head.version = version;
  head.layout_hash = shape.layout_hash;
  head.elements = shape.elements;
  head.bucket_bytes = shape.bucket_bytes;
  head.buckets = shape.buckets;
  head.table_crc = core::crc32c(table.data(), table.size_bytes());
  head.head_crc = core::crc32c(&head, offsetof(SnapshotHead, head_crc));
  return head;
}

core::Result<SnapshotShape> check_head(const SnapshotHead& head, const SnapshotShape& expected) {
  if (head.magic != kPushMagic) {
    return fail(ErrorCode::kData, "the head of the weights begins with other bytes than ours");
  }
  TROUPE_TRY(
      expect(core::crc32c(&head, offsetof(SnapshotHead, head_crc)), head.head_crc, "its checksum"));
  TROUPE_TRY(expect(head.elements, expected.elements, "the number of weights"));
  if (head.layout_hash != expected.layout_hash) {
    return fail(ErrorCode::kData,
                "the head of the weights: names or shapes of the tensors differ from this model's; "
                "trainer and engine must load the same model");
  }
  if (head.bucket_bytes < kBucket_bytes_min || head.bucket_bytes > kBucket_bytes_max ||
      head.bucket_bytes % 64 != 0) {
    return fail(ErrorCode::kData, "the head of the weights: a bucket of " +
                                      to_string(head.bucket_bytes) + " bytes is not taken");
  }
  SnapshotShape shape = expected;
  shape.bucket_bytes = head.bucket_bytes;
  shape.buckets = static_cast<std::uint32_t>((shape.data_bytes() + shape.bucket_bytes - 1) /
                                             shape.bucket_bytes);
  TROUPE_TRY(expect(head.buckets, shape.buckets, "the number of buckets"));
  return shape;
}

core::Result<void> check_table(const SnapshotHead& head, std::span<const std::uint32_t> table) {
  return expect(core::crc32c(table.data(), table.size_bytes()), head.table_crc,
                "the checksum of the buckets' checksums");
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
    return fail(ErrorCode::kData, source + " does not speak our protocol of weights");
  }
  switch (answer.status) {
    case AnswerStatus::kHere:
      if (answer.version >= at_least) return {};
      return fail(ErrorCode::kData, source + " gives version " + to_string(answer.version) +
                                        " to one who asked for " + to_string(at_least));
    case AnswerStatus::kOlder:
      return fail(ErrorCode::kNotFound, "version " + to_string(at_least) +
                                            " of the weights is not at " + source +
                                            "; the newest is " + to_string(answer.version));
    case AnswerStatus::kNothing:
      return fail(ErrorCode::kNotFound, "version " + to_string(at_least) +
                                            " of the weights is not at " + source +
                                            "; none was published");
    case AnswerStatus::kWrongKey:
      return fail(ErrorCode::kInvalidArgument, source + " refused the key");
    case AnswerStatus::kMalformed:
      return fail(ErrorCode::kInvalidArgument, source + " could not read our request");
    case AnswerStatus::kNoDevice:
      return fail(ErrorCode::kUnsupported, source + " has no weights on a device");
    case AnswerStatus::kTooMany:
      return fail(ErrorCode::kOverloaded, source + " has " + to_string(limits::kWeightQueue_max) +
                                              " receivers waiting already; ask again later");
    case AnswerStatus::kQueued:
      break;  // comes only before the real answer, and receivers skip it
  }
  return fail(ErrorCode::kData, source + " answers with the unknown status " +
                                    to_string(static_cast<std::uint32_t>(answer.status)));
}

std::uint64_t random_id() {
  std::uint64_t id = 0;
  TROUPE_CHECK(::getrandom(&id, sizeof id, 0) == sizeof id, "the system's random numbers");
  return id;
}

}  // namespace troupe::weights
