#include "runtime/weights/reader_lease.hpp"

#include <utility>

namespace troupe::weights {

Answer ReaderLease::take(ImageShelves::Shelf& shelf, const Hello& hello, bool keep) {
  shelf_ = &shelf;
  Answer reply;
  const auto announce = [&](const auto& pool, const auto& leased, AnswerStatus none) {
    kept_ = keep && pool.keeps(leased);
    if (leased != nullptr) reply.version = leased->version();
    if (leased == nullptr) {
      reply.status = none;
    } else if (reply.version < hello.at_least) {
      reply.status = AnswerStatus::kOlder;
    }
  };
  if (hello.wants == Wants::kDevice) {
    device_ = shelf.device_pool.lease_newest(keep);
    announce(shelf.device_pool, device_, AnswerStatus::kNoDevice);
  } else if (hello.exact != 0) {
    host_ = shelf.pool.lease_version(hello.at_least, keep);
    announce(shelf.pool, host_, AnswerStatus::kReplaced);
  } else {
    host_ = shelf.pool.lease_newest(keep);
    announce(shelf.pool, host_, AnswerStatus::kNothing);
  }
  if (reply.status != AnswerStatus::kHere) return reply;
  reply.buffer_id = device_ != nullptr ? device_->id() : host_->id();
  reply.bytes = device_ != nullptr ? device_->shape().image_bytes : host_->size();
  reply.kept = host_ != nullptr && kept_ ? 1 : 0;
  return reply;
}

void ReaderLease::end() {
  stop_keeping();
  if (host_ != nullptr) shelf_->pool.end_lease(host_);
  if (device_ != nullptr) shelf_->device_pool.end_lease(device_);
}

void ReaderLease::stop_keeping() {
  if (!std::exchange(kept_, false)) return;
  device_ != nullptr ? shelf_->device_pool.stop_keeping() : shelf_->pool.stop_keeping();
}

bool ReaderLease::is_wanted_back() const {
  return *this && (shelf_->pool.wants_back(host_) || shelf_->device_pool.wants_back(device_));
}

}  // namespace troupe::weights
