// The version that one fetch receives, as far as it has come: a snapshot of the receiver's own
// relay, which passes buckets on as they come. What is not complete when the fetch ends is given
// up. Used on the subscriber's fetching thread.
#pragma once

#include "runtime/weights/opened_snapshots.hpp"
#include "runtime/weights/relay.hpp"

#include <functional>
#include <memory>
#include <string>
#include <vector>

namespace troupe::weights {

// What a fetch uses of its subscriber; all of it outlives the fetch.
struct StreamContext {
  const SnapshotShape& expected;
  Hello hello;  // complete but for what changes from one request to the next
  std::string public_key;
  Relay& relay;
  const RelayOptions& options;
  OpenedSnapshots& opened;
  std::vector<std::uint32_t>& set_aside;  // relays that gave wrong bytes; the fetch adds to them
  net::Patience patience;
  std::string source;                                   // names the publisher in errors
  std::function<core::Result<net::OwnedFd>()> connect;  // to the publisher, once more
};

class PartialSnapshot {
 public:
  explicit PartialSnapshot(const StreamContext& context) : context_(context) {}
  ~PartialSnapshot();
  PartialSnapshot(const PartialSnapshot&) = delete;
  PartialSnapshot& operator=(const PartialSnapshot&) = delete;

  // Reads head and checksums, and begins or goes on with the snapshot that they announce; those of
  // a source other than 0 must be the same. Errors: those of `read`, kData, kResources.
  core::Result<void> begin(const Answer& answer, Share share, const ReadBytes& read);
  // Reads and checks the next bucket. Errors: those of `read`, kData.
  core::Result<void> take_bucket(const ReadBytes& read);

  // Begun and of the image.
  Snapshot& snapshot() { return *snapshot_; }
  bool complete() const { return snapshot_ != nullptr && snapshot_->complete(); }
  std::uint32_t ready() const { return snapshot_ != nullptr ? snapshot_->ready() : 0; }
  // A request for that version, which says what is here of it.
  Hello hello_for(core::Version at_least, Wants wants) const;
  ArrivedImage arrived() const;

 private:
  core::Result<void> begin_with(const SnapshotHead& head, const ArrivedImage& announced);

  const StreamContext& context_;
  std::shared_ptr<Snapshot> snapshot_;  // null: nothing has begun
};

// Names it in errors.
std::string name_of_stream(core::Version version);

}  // namespace troupe::weights
