#include "runtime/weights/partial_snapshot.hpp"

#include "runtime/core/crc32c.hpp"
#include "runtime/weights/source_streams.hpp"

#include <algorithm>
#include <utility>

namespace troupe::weights {

std::string name_of_stream(core::Version version) {
  return "the stream of version " + std::to_string(version) + " of the weights";
}

PartialSnapshot::~PartialSnapshot() {
  if (snapshot_ == nullptr || snapshot_->complete()) return;
  snapshot_->abandon();
  context_.relay.look();
}

Hello PartialSnapshot::hello_for(core::Version at_least, Wants wants) const {
  Hello hello = context_.hello;
  hello.at_least = at_least;
  hello.wants = wants;
  hello.begun = snapshot_ != nullptr ? snapshot_->version() : 0;
  hello.buckets = ready();
  return hello;
}

ArrivedImage PartialSnapshot::arrived() const {
  ArrivedImage image;
  image.version = snapshot_->version();
  image.shape = snapshot_->shape();
  image.parts.push_back({snapshot_->buckets(), {}, snapshot_});
  image.verified = true;
  return image;
}

core::Result<void> PartialSnapshot::begin(const Answer& answer,
                                          Share share,
                                          const ReadBytes& read) {
  const std::string what = name_of_stream(answer.version);
  SnapshotHead head;
  TROUPE_TRY(read(&head, sizeof head, what + ", its head"));
  TROUPE_TRY_ASSIGN(shape, check_head(head, context_.expected));
  if (answer.bytes != shape.bytes(share) || head.version != answer.version) {
    return fail(ErrorCode::kData, what + " is not what was announced");
  }
  std::vector<char> rest(shape.data_offset() - sizeof head);
  TROUPE_TRY(read(rest.data(), rest.size(), what + ", its checksums"));
  TROUPE_TRY_ASSIGN(image, announced(head, shape, rest.data(), context_.public_key));
  if (share.number != 0) {
    if (image.table == snapshot_->table()) return {};
    return fail(ErrorCode::kData, what + ": source " + std::to_string(share.number) +
                                      " has other checksums than the publisher");
  }
  TROUPE_TRY(begin_with(head, image));
  if (answer.first_bucket != snapshot_->ready()) {
    return fail(ErrorCode::kData, what + " begins with another bucket than we asked for");
  }
  return {};
}

core::Result<void> PartialSnapshot::begin_with(const SnapshotHead& head,
                                               const ArrivedImage& announced) {
  if (snapshot_ != nullptr && snapshot_->version() == head.version &&
      snapshot_->table() == announced.table) {
    return {};
  }
  if (snapshot_ != nullptr) snapshot_->abandon();
  SnapshotPool& pool = context_.relay.pool(context_.hello.image);
  TROUPE_TRY_ASSIGN(taken, pool.take([&] { return Snapshot::create(announced.shape); }));
  if (taken->shape().bucket_bytes != announced.shape.bucket_bytes) {
    return fail(ErrorCode::kData, "the head of the weights: the size of its buckets changed");
  }
  taken->begin(head, announced.table);
  snapshot_ = taken;
  pool.offer(std::move(taken));
  return {};
}

core::Result<void> PartialSnapshot::take_bucket(const ReadBytes& read) {
  const std::uint32_t index = snapshot_->ready();
  const std::string what =
      name_of_stream(snapshot_->version()) + ", bucket " + std::to_string(index);
  const std::size_t size = snapshot_->shape().size_of(index);
  char* const into = snapshot_->bucket(index);
  std::uint32_t crc = 0;
  for (std::size_t done = 0; done < size;) {
    const std::size_t piece = std::min(size - done, kPiece_bytes);
    TROUPE_TRY(read(into + done, piece, what));
    crc = core::crc32c(into + done, piece, crc);
    done += piece;
  }
  if (crc != snapshot_->table()[index])
    return wrong_bucket(snapshot_->version(), index, snapshot_->shape().buckets);
  snapshot_->set_ready(index + 1);
  context_.relay.look();
  return {};
}

}  // namespace troupe::weights
