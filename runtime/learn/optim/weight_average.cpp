#include "runtime/learn/optim/weight_average.hpp"

#include "runtime/learn/state/saved_state.hpp"
#include "runtime/model/weights_writer.hpp"

namespace troupe::learn {
namespace {

constexpr const char* kAverage = "ema.safetensors";

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

core::Result<store::CheckpointFile> WeightAverage::save(const std::filesystem::path& folder) const {
  TROUPE_TRY_ASSIGN(digest, model::write_tensors(average_.layout(), model::numbers_in(average_),
                                                 folder / kAverage));
  return store::CheckpointFile{kAverage, digest.bytes, digest.sha256};
}

core::Result<void> WeightAverage::load(const std::filesystem::path& folder) {
  TROUPE_TRY_ASSIGN(file, LayoutReader::open(folder / kAverage, average_.layout(), "an average"));
  return file.read({0, average_.size()}, average_.data());
}

}  // namespace troupe::learn
