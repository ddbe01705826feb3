// The engine's side of the weight channel between processes. `fetch` asks the publisher that a
// location names. On the same host it uses the publisher's Unix socket, if that answers, and reads
// the weights in place (on the GPU when both use the same one, else in shared memory); otherwise it
// receives them by TCP into a buffer of this process, and keeps the connection for the next
// version; if that has ended meanwhile, it connects anew. `fetch` blocks, so it needs its own
// thread; the intakes that it returns are used on the engine's thread, one at a time. Memory: two
// sets of panels; with TCP one buffer of the weights in f32, two while an older intake still uses
// one.
#pragma once

#include "runtime/weights/flat_intake.hpp"
#include "runtime/weights/limits.hpp"
#include "runtime/weights/shadow_pool.hpp"
#include "runtime/weights/weight_channel.hpp"

#include <algorithm>
#include <atomic>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

namespace troupe::weights {

// A receiver's cache of opened snapshots in host memory. Keeps the last kWeightMappings_max, since
// a publisher uses its buffers in turn and opening one again costs more than a step. Thread-safe;
// what it returns may outlive it.
class OpenSnapshots {
 public:
  struct Opened {
    std::uint64_t id = 0;              // the publisher's number of the buffer
    std::uint64_t bytes = 0;           // that may be read
    std::shared_ptr<const void> data;  // closed by its last holder
  };
  // Returns snapshot `id` from the cache, or else calls `open`, which must return that id.
  template <class Open>
  core::Result<Opened> get(std::uint64_t id, const Open& open) {
    const std::lock_guard lock(mutex_);
    const auto known =
        std::find_if(kept_.begin(), kept_.end(), [&](const Opened& one) { return one.id == id; });
    if (known != kept_.end()) {
      std::rotate(known, known + 1, kept_.end());
      return kept_.back();
    }
    TROUPE_TRY_ASSIGN(made, open());
    kept_.push_back(std::move(made));
    if (kept_.size() > limits::kWeightMappings_max) kept_.erase(kept_.begin());
    return kept_.back();
  }

 private:
  std::mutex mutex_;
  std::vector<Opened> kept_;  // last used at the end
};

class RemoteWeightSubscriber final : public WeightSubscriber {
 public:
  // `dtype`: of the panels; the weights are sent as f32. `host_id`: own_host_id() of this process,
  // compared with WeightLocation::host_id. `memory`: that of the engine's team, for the panels.
  explicit RemoteWeightSubscriber(const model::ModelSpec& spec,
                                  kernels::PanelDtype dtype = kernels::PanelDtype::kF32,
                                  std::string host_id = own_host_id(),
                                  core::Memory& memory = core::host_memory());

  core::Result<std::unique_ptr<WeightIntake>> fetch(core::Version at_least,
                                                    const WeightLocation& location,
                                                    core::Duration patience) override;
  void close() override { closed_ = true; }

 private:
  using Staging = core::Buffer<float>;
  // Empty when the weights cannot be read in this device's memory.
  core::Result<std::optional<FlatWeights>> from_device(core::Version at_least,
                                                       const WeightLocation& location,
                                                       net::Patience patience);
  core::Result<FlatWeights> from_memory(net::OwnedFd socket,
                                        core::Version at_least,
                                        const WeightLocation& location,
                                        net::Patience patience);
  core::Result<FlatWeights> map_snapshot(const Answer& answer, const net::OwnedFd& memory);
  // A connection that has brought a version and is open for the next, and where it leads.
  struct Kept {
    net::OwnedFd socket;
    std::string host, key;
    std::uint32_t port = 0;
  };
  struct Asked {
    net::OwnedFd socket;
    Answer answer;
  };
  core::Result<Asked> ask_for_stream(core::Version at_least,
                                     const WeightLocation& location,
                                     net::Patience patience);
  core::Result<FlatWeights> from_stream(core::Version at_least,
                                        const WeightLocation& location,
                                        net::Patience patience);
  core::Result<FlatWeights> receive_stream(const Asked& asked,
                                           core::Version at_least,
                                           const std::string& source,
                                           net::Patience patience);
  core::Result<void> say_hello(const net::OwnedFd& socket,
                               core::Version at_least,
                               Wants wants,
                               const WeightLocation& location,
                               net::Patience patience) const;
  net::OwnedFd take_kept(const WeightLocation& location);
  std::shared_ptr<Staging> staging();

  const SnapshotShape shape_;
  const std::string host_id_;
  const std::uint32_t number_;  // Hello::receiver
  core::Memory& memory_;
  const std::shared_ptr<ShadowPool> shadows_;
  OpenSnapshots in_memory_;
  std::atomic<bool> closed_{false};
  std::mutex mutex_;
  Kept kept_;
  std::shared_ptr<Staging> staging_;
};

}  // namespace troupe::weights
