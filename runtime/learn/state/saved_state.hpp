// A saved state as its readers see it: ranges of flat buffers, wherever the numbers lie. One
// process writes whole files (weights, adam_m and adam_v, with the tensors' names); ranks write
// parts (state_parts.hpp). One thread; what is read goes to host memory.
#pragma once

#include "runtime/core/range.hpp"
#include "runtime/core/result.hpp"
#include "runtime/model/params.hpp"
#include "runtime/store/safetensors.hpp"

#include <cstdint>
#include <filesystem>
#include <memory>
#include <span>
#include <string>

namespace troupe::learn {

// What a state has of a model; each is a flat buffer of a layout.
enum class StatePart { kWeights, kFirstMoment, kSecondMoment };
inline constexpr StatePart kStateParts[] = {StatePart::kWeights, StatePart::kFirstMoment,
                                            StatePart::kSecondMoment};
inline constexpr std::size_t index_of(StatePart part) {
  return static_cast<std::size_t>(part);
}
// "weights", "adam_m", "adam_v".
const char* name_of(StatePart part);
// The file of a part that one process writes: "adam_m.safetensors".
std::string whole_file(StatePart part);

// The layouts of the weights and of each moment.
struct StateLayouts {
  const model::ParamLayout& weights;
  const model::ParamLayout& moments;
  bool second_moment = true;  // false: the optimiser has none
  const model::ParamLayout& of(StatePart part) const {
    return part == StatePart::kWeights ? weights : moments;
  }
  std::span<const StatePart> parts() const {
    return std::span(kStateParts).first(second_moment ? 3 : 2);
  }
};

class SavedState {
 public:
  virtual ~SavedState() = default;
  // The elements `place` of a part's buffer; zeros where no tensor is.
  virtual core::Result<void> read(StatePart part, core::Range place, float* to) = 0;
};

// The files of one process. Checks all of them. Errors: kNotFound; kData, naming the file.
core::Result<std::unique_ptr<SavedState>> open_whole_state(const std::filesystem::path& folder,
                                                           const StateLayouts& layouts);

// A file that has exactly the tensors of a layout as f32, read by ranges of the flat buffer.
class LayoutReader {
 public:
  // `what` is the file's kind in errors: "a state". `layout` outlives the reader.
  static core::Result<LayoutReader> open(const std::filesystem::path& path,
                                         const model::ParamLayout& layout,
                                         const std::string& what);
  core::Result<void> read(core::Range place, float* to) const;

 private:
  LayoutReader(store::SafetensorsFile file, const model::ParamLayout& layout)
      : file_(std::move(file)), layout_(&layout) {}
  store::SafetensorsFile file_;
  const model::ParamLayout* layout_;
};

}  // namespace troupe::learn
