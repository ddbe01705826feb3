// The master values of a device's trainer that are on the host (OptimSettings::offload): the
// forward pass has all panels on the device, and each part of the backward pass gets the values
// that it reads in a room that all parts use in turn (part_room.hpp). Owned by the model under
// training, used on its thread. Memory of the device: the largest part, and an embedding that is
// the head too.
#pragma once

#include "runtime/core/team.hpp"
#include "runtime/model/part_room.hpp"
#include "runtime/model/weights_gate.hpp"

#include <cstdint>

namespace troupe::learn {

class OffloadedWeights final : public model::WeightsGate {
 public:
  // Both outlive the object. `master` is whole and on the host.
  OffloadedWeights(const model::ParamStore& master, core::TeamRunner& team)
      : master_(master),
        room_(master.spec(), master.layout(), kStep),
        values_(master.spec(), room_.layout(), team.memory()) {}

  // The weights of the part that is open for the backward pass.
  const model::ParamStore& values() const { return values_; }

  void open(std::int64_t part, bool backward) override {
    if (!backward) return;
    for (const model::PartRoom::Place& place : room_.places(part)) {
      const core::Range range = place.tensors;
      values_.memory().upload(values_.data() + place.of(range.begin), master_.data() + range.begin,
                              static_cast<std::size_t>(range.size()) * sizeof(float));
    }
  }
  void close(std::int64_t /*part*/, bool /*backward*/) noexcept override {}

 private:
  static constexpr std::int64_t kStep = 16;  // tensors begin at its multiples

  const model::ParamStore& master_;
  const model::PartRoom room_;
  model::ParamStore values_;
};

}  // namespace troupe::learn
