// A trained model's state on disk: weights.safetensors, adam_m.safetensors and adam_v.safetensors
// (f32, the Hugging Face names of the weights) and trainer_state.json with the counts. With LoRA
// the weights are the adapters, and the counts name the CRC of the base that they belong to.
// Everything else follows from the configuration. Loading looks at all files before it changes
// anything.
#include "runtime/learn/trainable_model.hpp"
#include "runtime/store/atomic_folder.hpp"
#include "runtime/store/safetensors.hpp"

#include <nlohmann/json.hpp>

#include <fstream>
#include <sstream>
#include <vector>

namespace troupe::learn {
namespace {

using core::ErrorCode;
using nlohmann::json;

constexpr int kStateFormat = 1;
constexpr const char* kWeights = "weights.safetensors";
constexpr const char* kFirstMoment = "adam_m.safetensors";
constexpr const char* kSecondMoment = "adam_v.safetensors";
constexpr const char* kCounts = "trainer_state.json";

core::Result<void> write_store(const model::ParamStore& params, const std::filesystem::path& path) {
  const model::HostCopy host(params);
  std::vector<store::TensorSource> tensors;
  for (const model::ParamView& view : host->layout().views) {
    tensors.push_back({view.name, store::Dtype::kF32, view.shape, host->data() + view.offset});
  }
  return store::write_safetensors(path, tensors, {});
}

core::Result<store::SafetensorsFile> open_store(const model::ParamStore& params,
                                                const std::filesystem::path& path) {
  TROUPE_TRY_ASSIGN(file, store::SafetensorsFile::open(path));
  const auto refuse = [&](const std::string& why) {
    return core::fail(ErrorCode::kData, path.string() + " is not a state of this model: " + why);
  };
  for (const model::ParamView& view : params.layout().views) {
    const store::TensorInfo* info = file.find(view.name);
    if (info == nullptr) return refuse("it has no tensor " + view.name);
    if (info->dtype != store::Dtype::kF32 || info->shape != view.shape) {
      return refuse("tensor " + view.name + " has another shape or type");
    }
  }
  if (file.tensors().size() != params.layout().views.size()) return refuse("it has more tensors");
  return core::Result<store::SafetensorsFile>(std::move(file));
}

core::Result<void> read_store(const store::SafetensorsFile& file, model::ParamStore& params) {
  std::vector<float> tensor;
  for (const model::ParamView& view : params.layout().views) {
    float* const to = params.data() + view.offset;
    if (params.memory().on_host()) {
      TROUPE_TRY(file.read_f32(*file.find(view.name), to));
      continue;
    }
    tensor.resize(static_cast<std::size_t>(view.count));
    TROUPE_TRY(file.read_f32(*file.find(view.name), tensor.data()));
    params.memory().upload(to, tensor.data(), tensor.size() * sizeof(float));
  }
  return {};
}

struct Counts {
  core::Version version = 0;
  std::int64_t adam_steps = 0;
  std::int64_t skipped_in_row = 0;
  std::int64_t base_crc = -1;  // of adapters
};

core::Result<Counts> read_counts(const std::filesystem::path& path) {
  std::ifstream in(path);
  if (!in) return core::fail(ErrorCode::kNotFound, "no file " + path.string());
  std::stringstream text;
  text << in.rdbuf();
  const auto bad = [&](const std::string& why) {
    return core::fail(ErrorCode::kData, path.string() + ": " + why);
  };
  const json state = json::parse(text.str(), nullptr, false);
  if (!state.is_object()) return bad("not a JSON object");
  for (const char* key : {"format", "version", "adam_steps", "skipped_in_row"}) {
    const auto found = state.find(key);
    if (found == state.end() || !found->is_number_unsigned()) {
      return bad(std::string("needs a whole number '") + key + "'");
    }
  }
  if (state["format"] != kStateFormat) {
    return bad("has format " + state["format"].dump() + ", this program reads " +
               std::to_string(kStateFormat));
  }
  const auto crc = state.find("base_crc32c");
  const bool has_crc = crc != state.end() && crc->is_number_unsigned();
  return Counts{state["version"].get<core::Version>(), state["adam_steps"].get<std::int64_t>(),
                state["skipped_in_row"].get<std::int64_t>(),
                has_crc ? crc->get<std::int64_t>() : -1};
}

}  // namespace

core::Result<void> TrainableModel::save_state(const std::filesystem::path& folder) const {
  TROUPE_TRY(write_store(values(), folder / kWeights));
  TROUPE_TRY(write_store(optimiser_.first_moment(), folder / kFirstMoment));
  TROUPE_TRY(write_store(optimiser_.second_moment(), folder / kSecondMoment));
  json state = {{"format", kStateFormat},
                {"version", version_},
                {"adam_steps", optimiser_.steps()},
                {"skipped_in_row", skipped_in_row_}};
  if (lora_) state["base_crc32c"] = lora_->base_crc();
  return store::write_file(folder / kCounts, state.dump(2) + "\n");
}

core::Result<void> TrainableModel::load_state(const std::filesystem::path& folder) {
  TROUPE_TRY_ASSIGN(counts, read_counts(folder / kCounts));
  if (lora_ && counts.base_crc != std::int64_t{lora_->base_crc()}) {
    return core::fail(ErrorCode::kData, folder.string() +
                                            " holds adapters of other base weights than these; "
                                            "resume with the model that the run began with, --" +
                                            key_ + ".model_name_or_path");
  }
  TROUPE_TRY_ASSIGN(weights, open_store(values(), folder / kWeights));
  TROUPE_TRY_ASSIGN(first, open_store(grads_, folder / kFirstMoment));
  TROUPE_TRY_ASSIGN(second, open_store(grads_, folder / kSecondMoment));
  TROUPE_TRY(read_store(weights, values()));
  TROUPE_TRY(read_store(first, optimiser_.first_moment()));
  TROUPE_TRY(read_store(second, optimiser_.second_moment()));
  optimiser_.set_steps(counts.adam_steps);
  version_ = counts.version;
  skipped_in_row_ = counts.skipped_in_row;
  if (lora_) lora_->merge(team_, *master_);
  packed_.reset();  // of other weights, perhaps under the same version
  return {};
}

}  // namespace troupe::learn
