#include "runtime/learn/weight_average.hpp"

#include "runtime/store/safetensors.hpp"

#include <string>
#include <vector>

namespace troupe::learn {
namespace {

constexpr const char* kAverageFile = "ema.safetensors";

}  // namespace

WeightAverage::WeightAverage(const model::ParamStore& start, double beta)
    : beta_(static_cast<float>(beta)), average_(start.to(core::host_memory())) {}

void WeightAverage::add(core::TeamRunner& team, const model::ParamStore& weights) {
  const float keep = beta_, take = 1.0f - beta_;
  float* to = average_.data();
  const model::HostCopy host(weights);
  const float* from = host->data();
  team.run([&](core::Team member) {
    const auto [begin, end] = member.share(average_.size(), 64);
    for (std::int64_t i = begin; i < end; ++i)
      to[i] = keep * to[i] + take * from[i];
  });
}

core::Result<void> WeightAverage::save(const std::filesystem::path& folder) const {
  std::vector<store::TensorSource> tensors;
  for (const model::ParamView& view : average_.layout().views) {
    tensors.push_back({view.name, store::Dtype::kF32, view.shape, average_.data() + view.offset});
  }
  return store::write_safetensors(folder / kAverageFile, tensors, {});
}

core::Result<void> WeightAverage::load(const std::filesystem::path& folder) {
  TROUPE_TRY_ASSIGN(file, store::SafetensorsFile::open(folder / kAverageFile));
  for (const model::ParamView& view : average_.layout().views) {
    const store::TensorInfo* info = file.find(view.name);
    if (info == nullptr || info->dtype != store::Dtype::kF32 || info->shape != view.shape) {
      return core::fail(core::ErrorCode::kData, (folder / kAverageFile).string() +
                                                    " is not an average of this model: tensor " +
                                                    view.name + " is missing or another");
    }
  }
  for (const model::ParamView& view : average_.layout().views)
    TROUPE_TRY(file.read_f32(*file.find(view.name), average_.data() + view.offset));
  return {};
}

}  // namespace troupe::learn
