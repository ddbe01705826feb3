#include "runtime/model/weights_gate.hpp"

#include <cstdlib>
#include <string>
#include <string_view>

namespace troupe::model {
namespace {

constexpr std::string_view kLayerPrefix = "model.layers.";

// Tensors begin at multiples of this many elements; the gap between two is padding.
constexpr std::int64_t kTensorStep = 16;

void append_range(std::vector<core::Range>& ranges, core::Range range) {
  if (!ranges.empty() && range.begin - ranges.back().end < kTensorStep) {
    ranges.back().end = range.end;
  } else {
    ranges.push_back(range);
  }
}

}  // namespace

std::vector<std::vector<core::Range>> ranges_of_parts(const ModelSpec& spec,
                                                      const ParamLayout& layout) {
  std::vector<std::vector<core::Range>> parts(static_cast<std::size_t>(parts_of(spec)));
  for (const ParamView& view : layout.views) {
    const core::Range range{view.offset, view.offset + view.count};
    if (view.name.starts_with(kLayerPrefix)) {
      const std::size_t layer = std::strtoul(view.name.c_str() + kLayerPrefix.size(), nullptr, 10);
      append_range(parts[1 + layer], range);
      continue;
    }
    if (view.offset == layout.embedding) append_range(parts.front(), range);
    if (view.offset != layout.embedding || layout.head == layout.embedding)
      append_range(parts.back(), range);
  }
  return parts;
}

}  // namespace troupe::model
