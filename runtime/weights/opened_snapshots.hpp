// Snapshots in the shared memory of other processes of this host, as a receiver sees them: mapped,
// their heads and tables checked. Keeps the last kWeightMappings_max mappings of each source, since
// a publisher uses its buffers in turn and opening one again costs more than a step. Thread-safe;
// what it returns may outlive it.
#pragma once

#include "runtime/weights/image_intake.hpp"

#include <memory>
#include <mutex>
#include <string>
#include <vector>

namespace troupe::weights {

class OpenedSnapshots {
 public:
  // `expected`: the shape of the receiver's model.
  explicit OpenedSnapshots(const SnapshotShape& expected) : expected_(expected) {}

  // The snapshot that `answer` announces, in `memory`, as the one part of an image: what `share`
  // has of it. Errors: kData (head, table, size or
  // signature are wrong, or the size is not sealed), kResources.
  core::Result<ArrivedImage> open(const Answer& answer,
                                  const net::OwnedFd& memory,
                                  const std::string& public_key,
                                  Share share = {});

 private:
  struct Opened {
    std::uint64_t id = 0;              // the publisher's number of the buffer
    std::uint64_t bytes = 0;           // that may be read
    std::shared_ptr<const void> data;  // closed by its last holder
  };
  core::Result<Opened> map(const Answer& answer, const net::OwnedFd& memory, std::size_t most);

  const SnapshotShape expected_;
  std::mutex mutex_;
  std::vector<Opened> kept_;  // last used at the end
};

// Describes the weights of a snapshot from its head and from the buckets' checksums, which follow
// the head. Error kData: the checksums are damaged, or the publisher did not sign them.
core::Result<ArrivedImage> announced(const SnapshotHead& head,
                                     const SnapshotShape& shape,
                                     const char* checksums,
                                     const std::string& public_key);

}  // namespace troupe::weights
