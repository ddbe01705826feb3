#include "runtime/learn/state/saved_state.hpp"

#include <algorithm>
#include <cstring>
#include <utility>
#include <vector>

namespace troupe::learn {
namespace {

class WholeState final : public SavedState {
 public:
  explicit WholeState(std::vector<LayoutReader> files) : files_(std::move(files)) {}
  core::Result<void> read(StatePart part, core::Range place, float* to) override {
    return files_[index_of(part)].read(place, to);
  }

 private:
  std::vector<LayoutReader> files_;  // by part
};

}  // namespace

const char* name_of(StatePart part) {
  constexpr const char* kNames[] = {"weights", "adam_m", "adam_v"};
  return kNames[index_of(part)];
}

std::string whole_file(StatePart part) {
  return std::string(name_of(part)) + ".safetensors";
}

core::Result<LayoutReader> LayoutReader::open(const std::filesystem::path& path,
                                              const model::ParamLayout& layout,
                                              const std::string& what) {
  TROUPE_TRY_ASSIGN(file, store::SafetensorsFile::open(path));
  const auto refuse = [&](const std::string& why) {
    return core::fail(core::ErrorCode::kData,
                      path.string() + " is not " + what + " of this model: " + why);
  };
  for (const model::ParamView& view : layout.views) {
    const store::TensorInfo* info = file.find(view.name);
    if (info == nullptr) return refuse("it has no tensor " + view.name);
    if (info->dtype != store::Dtype::kF32 || info->shape != view.shape) {
      return refuse("tensor " + view.name + " has another shape or type");
    }
  }
  if (file.tensors().size() != layout.views.size()) return refuse("it has more tensors");
  return LayoutReader(std::move(file), layout);
}

core::Result<void> LayoutReader::read(core::Range place, float* to) const {
  const auto& views = layout_->views;
  auto view = std::upper_bound(
      views.begin(), views.end(), place.begin,
      [](std::int64_t at, const model::ParamView& one) { return at < one.offset; });
  if (view != views.begin()) --view;
  std::int64_t done = place.begin;
  for (; view != views.end() && view->offset < place.end; ++view) {
    const std::int64_t first = std::max(done, view->offset);
    const std::int64_t last = std::min(place.end, view->offset + view->count);
    if (first >= last) continue;
    std::fill(to + (done - place.begin), to + (first - place.begin), 0.0f);
    const auto bytes = file_.bytes(*file_.find(view->name));
    std::memcpy(to + (first - place.begin),
                bytes.data() + static_cast<std::size_t>(first - view->offset) * sizeof(float),
                static_cast<std::size_t>(last - first) * sizeof(float));
    done = last;
  }
  std::fill(to + (done - place.begin), to + place.size(), 0.0f);
  return {};
}

core::Result<std::unique_ptr<SavedState>> open_whole_state(const std::filesystem::path& folder,
                                                           const StateLayouts& layouts) {
  std::vector<LayoutReader> files;
  for (const StatePart part : layouts.parts()) {
    TROUPE_TRY_ASSIGN(file,
                      LayoutReader::open(folder / whole_file(part), layouts.of(part), "a state"));
    files.push_back(std::move(file));
  }
  std::unique_ptr<SavedState> state = std::make_unique<WholeState>(std::move(files));
  return state;
}

}  // namespace troupe::learn
