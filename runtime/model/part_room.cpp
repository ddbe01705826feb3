#include "runtime/model/part_room.hpp"

#include "runtime/model/weights_gate.hpp"

#include <algorithm>

namespace troupe::model {

PartRoom::PartRoom(const ModelSpec& spec, const ParamLayout& whole, std::int64_t step) {
  std::int64_t shared = 0;  // where the place begins that all parts have
  std::int64_t size = 0;
  for (const std::vector<core::Range>& ranges : ranges_of_parts(spec, whole)) {
    std::vector<Place>& places = places_.emplace_back();
    for (const core::Range range : ranges) {
      Place place{
          range,
          {range.begin / step * step, std::min((range.end + step - 1) / step * step, whole.total)},
          shared};
      place.alone = spec.tied && range.begin == whole.embedding;
      if (place.alone) place.at = 0;
      size = std::max(size, place.at + place.steps.size());
      places.push_back(place);
    }
    if (places_.size() == 1 && spec.tied) shared = size;
  }
  const LayoutChoice choice{[](const std::string&) { return true; },
                            [](std::int64_t, Linear) { return std::int64_t{0}; },
                            [this](std::int64_t part) {
                              const Place& place = places(part).back();
                              return place.of(place.tensors.begin);
                            }};
  ParamLayout layout(spec, choice);
  layout.total = size;
  layout_ = std::make_shared<const ParamLayout>(std::move(layout));
}

}  // namespace troupe::model
