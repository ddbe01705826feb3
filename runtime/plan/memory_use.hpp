// The memory of one rank of a role by kind, on the device where it computes and on the host next to
// it. For a role that computes on processors the two are the same, and everything is under the
// device. A value type.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <numeric>
#include <string_view>

namespace troupe::plan {

enum class Kind {
  kMaster,       // the weights that the optimiser changes; with adapters also those under them
  kMoments,      // of AdamW
  kGradients,    // of the optimiser step
  kPartials,     // of lanes that are not joined yet
  kPanels,       // the weights that forward passes read
  kSparePanels,  // another version of them
  kReference,    // panels of a frozen reference next to a trainer
  kGathered,     // layers that other ranks, or the host, own
  kStaging,      // pieces on their way between ranks
  kKeys,         // keys and values of an engine
  kActivations,  // with scratch
  kLogits,
  kSnapshots,  // weights on the way to engines
  kAverage,    // the moving average of the weights
  kContext,    // what the process takes before it has a model
};
inline constexpr std::array<std::string_view, 15> kKindNames = {
    "master",       "moments",          "gradients",       "partial sums",   "panels",
    "spare panels", "reference panels", "gathered layers", "staging",        "keys and values",
    "activations",  "logits",           "snapshots",       "moving average", "context"};
inline constexpr std::size_t kKinds = kKindNames.size();

class MemoryUse {
 public:
  void add(Kind kind, std::int64_t bytes) { device_[index(kind)] += bytes; }
  void add_on_host(Kind kind, std::int64_t bytes) { host_[index(kind)] += bytes; }

  std::int64_t device(Kind kind) const { return device_[index(kind)]; }
  std::int64_t host(Kind kind) const { return host_[index(kind)]; }
  std::int64_t device_total() const { return sum(device_); }
  std::int64_t host_total() const { return sum(host_); }
  // The kind that takes most of the device.
  Kind largest() const {
    return static_cast<Kind>(std::max_element(device_.begin(), device_.end()) - device_.begin());
  }

 private:
  using Amounts = std::array<std::int64_t, kKinds>;
  static std::size_t index(Kind kind) { return static_cast<std::size_t>(kind); }
  static std::int64_t sum(const Amounts& amounts) {
    return std::accumulate(amounts.begin(), amounts.end(), std::int64_t{0});
  }

  Amounts device_{}, host_{};
};

}  // namespace troupe::plan
