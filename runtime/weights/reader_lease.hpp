// What one receiver holds of a publisher's or a relay's snapshots: one of them in host or in device
// memory, and perhaps the promise that it is kept until the receiver is done. Used on the server's
// thread; the owner calls `end`.
#pragma once

#include "runtime/weights/image_shelves.hpp"

#include <memory>

namespace troupe::weights {

class ReaderLease {
 public:
  // Leases what the hello asks for, the newest version or one alone; the answer says which version
  // that is, or why there is none. With `keep`, it is kept if no other one is.
  Answer take(ImageShelves::Shelf& shelf, const Hello& hello, bool keep);
  void end();
  void stop_keeping();

  explicit operator bool() const { return host_ != nullptr || device_ != nullptr; }
  bool is_kept() const { return kept_; }
  // True when the publisher needs it.
  bool is_wanted_back() const;
  const Snapshot* host() const { return host_.get(); }
  const DeviceSnapshot* device() const { return device_.get(); }

 private:
  ImageShelves::Shelf* shelf_ = nullptr;  // null: it has never held anything
  std::shared_ptr<Snapshot> host_;
  std::shared_ptr<DeviceSnapshot> device_;
  bool kept_ = false;
};

}  // namespace troupe::weights
