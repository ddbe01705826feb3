// Room for the weights of one part of a model at a time (weights_gate.hpp), or for their gradient.
// All parts have the same place, so the room is as large as the largest one. Its layout has every
// tensor at the place that it has while its part is there: whoever computes with one part finds
// its numbers in a ParamStore of this layout as in one of the whole model. An embedding that is the
// head too belongs to two parts and has a place of its own. Pure values.
#pragma once

#include "runtime/core/range.hpp"
#include "runtime/model/params.hpp"

#include <cstdint>
#include <memory>
#include <vector>

namespace troupe::model {

class PartRoom {
 public:
  // `whole`: the layout of all weights of `spec`. The flat buffer is cut into steps of `step`
  // elements, a multiple of 16; a part comes with the whole steps that it lies in.
  PartRoom(const ModelSpec& spec, const ParamLayout& whole, std::int64_t step);

  // Neighbouring tensors of a part.
  struct Place {
    core::Range tensors;  // in the flat buffer
    core::Range steps;    // those tensors with the rest of their steps
    std::int64_t at = 0;  // where these steps begin in the room
    bool alone = false;   // no other tensors have this place
    std::int64_t of(std::int64_t flat) const { return at + flat - steps.begin; }
  };
  std::int64_t parts() const { return static_cast<std::int64_t>(places_.size()); }
  // In ascending order. A layer has one place; so has a last part whose head is not the embedding.
  const std::vector<Place>& places(std::int64_t part) const {
    return places_[static_cast<std::size_t>(part)];
  }
  // Elements of a store: layout()->total, which has room for the steps.
  const std::shared_ptr<const ParamLayout>& layout() const { return layout_; }

 private:
  std::vector<std::vector<Place>> places_;
  std::shared_ptr<const ParamLayout> layout_;
};

}  // namespace troupe::model
