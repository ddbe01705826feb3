#include "runtime/model/weights_writer.hpp"

#include <algorithm>
#include <utility>

namespace troupe::model {
namespace {

constexpr std::int64_t kPiece_floats = std::int64_t{4} << 20;

}  // namespace

core::Result<WeightsWriter> WeightsWriter::create(
    const std::filesystem::path& path,
    std::span<const ParamView> views,
    StorageDtype dtype,
    const std::map<std::string, std::string>& metadata) {
  const auto stored = dtype == StorageDtype::kBf16 ? store::Dtype::kBf16 : store::Dtype::kF32;
  std::vector<store::TensorShape> tensors;
  for (const ParamView& view : views)
    tensors.push_back({view.name, stored, view.shape});
  TROUPE_TRY_ASSIGN(file, store::SafetensorsWriter::create(path, tensors, metadata));
  return WeightsWriter(std::move(file), {views.begin(), views.end()}, stored);
}

core::Result<void> WeightsWriter::add(core::Range place, const float* numbers) {
  for (; next_ < views_.size(); ++next_) {
    const ParamView& view = views_[next_];
    const std::int64_t end = view.offset + view.count;
    const std::int64_t first = std::max(place.begin, view.offset);
    const std::int64_t last = std::min(place.end, end);
    if (first < last)
      TROUPE_TRY(file_.append_f32(numbers + (first - place.begin), last - first, dtype_));
    if (place.end < end) return {};
  }
  return {};
}

core::Result<void> each_piece(const FlatNumbers& numbers, const UsePiece& use) {
  if (numbers.memory->on_host()) return use({0, numbers.count}, numbers.at);
  core::Buffer<float> piece(std::min(kPiece_floats, numbers.count));
  for (std::int64_t begin = 0; begin < numbers.count; begin += piece.size()) {
    const core::Range place{begin, std::min(begin + piece.size(), numbers.count)};
    numbers.memory->download(piece.data(), numbers.at + place.begin,
                             static_cast<std::size_t>(place.size()) * sizeof(float));
    TROUPE_TRY(use(place, piece.data()));
  }
  return {};
}

core::Result<store::FileDigest> write_tensors(const ParamLayout& layout,
                                              const EachPiece& each,
                                              const std::filesystem::path& path) {
  TROUPE_TRY_ASSIGN(file, WeightsWriter::create(path, layout.views, StorageDtype::kF32, {}));
  TROUPE_TRY(each([&](core::Range place, const float* some) { return file.add(place, some); }));
  return file.close();
}

core::Result<store::FileDigest> write_tensors(const ParamLayout& layout,
                                              const FlatNumbers& numbers,
                                              const std::filesystem::path& path) {
  return write_tensors(
      layout, [&](const UsePiece& use) { return each_piece(numbers, use); }, path);
}

}  // namespace troupe::model
