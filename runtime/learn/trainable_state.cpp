// A trainer's state on disk. For the model: weights.safetensors, adam_m.safetensors and
// adam_v.safetensors (f32, Hugging Face names) and trainer_state.json with the counts. With LoRA
// the weights are the adapters, and trainer_state.json holds the CRC of their base weights. The
// policy's trainer adds rl_state.json and, if it keeps an average, ema.safetensors. Everything else
// follows from the configuration. Loading checks all files of a model before it changes anything.
#include "runtime/learn/ranks/rank_group.hpp"
#include "runtime/learn/ranks/sharded_weights.hpp"
#include "runtime/learn/rl_state.hpp"
#include "runtime/learn/saved_lanes.hpp"
#include "runtime/learn/trainable_model.hpp"
#include "runtime/learn/weight_average.hpp"
#include "runtime/store/atomic_folder.hpp"
#include "runtime/store/safetensors.hpp"

#include <nlohmann/json.hpp>

#include <fstream>
#include <initializer_list>
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
constexpr const char* kRlState = "rl_state.json";
constexpr const char* kAverage = "ema.safetensors";
constexpr const char* kLanes = "lanes";  // in kCounts, unless it is 1

core::Result<void> write_store(const model::ParamStore& params, const std::filesystem::path& path) {
  const model::HostCopy host(params);
  std::vector<store::TensorSource> tensors;
  for (const model::ParamView& view : host->layout().views) {
    tensors.push_back({view.name, store::Dtype::kF32, view.shape, host->data() + view.offset});
  }
  return store::write_safetensors(path, tensors, {});
}

// Opens a file that must have exactly the tensors of `layout`; `what` names its kind in errors.
core::Result<store::SafetensorsFile> open_store(const model::ParamLayout& layout,
                                                const std::filesystem::path& path,
                                                const std::string& what = "a state") {
  TROUPE_TRY_ASSIGN(file, store::SafetensorsFile::open(path));
  const auto refuse = [&](const std::string& why) {
    return core::fail(ErrorCode::kData,
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

// Reads a JSON object of format kStateFormat. Errors: kNotFound; kData if a key of `whole` has no
// unsigned integer or a key of `other` no number.
core::Result<json> read_numbers(const std::filesystem::path& path,
                                std::initializer_list<const char*> whole,
                                std::initializer_list<const char*> other = {}) {
  std::ifstream in(path);
  if (!in) return core::fail(ErrorCode::kNotFound, "no file " + path.string());
  std::stringstream text;
  text << in.rdbuf();
  const auto bad = [&](const std::string& why) {
    return core::fail(ErrorCode::kData, path.string() + ": " + why);
  };
  const json state = json::parse(text.str(), nullptr, false);
  if (!state.is_object()) return bad("not a JSON object");
  for (const char* key : whole) {
    const auto found = state.find(key);
    if (found == state.end() || !found->is_number_unsigned())
      return bad(std::string("needs a whole number '") + key + "'");
  }
  for (const char* key : other) {
    const auto found = state.find(key);
    if (found == state.end() || !found->is_number())
      return bad(std::string("needs a number '") + key + "'");
  }
  if (state["format"] != kStateFormat) {
    return bad("has format " + state["format"].dump() + ", this program reads " +
               std::to_string(kStateFormat));
  }
  return state;
}

}  // namespace

core::Result<void> TrainableModel::write_once(
    const std::function<core::Result<void>()>& write) const {
  if (!ranks_) return write();
  return ranks_->agree(ranks_->rank() == 0 ? write() : core::Result<void>());
}

core::Result<void> TrainableModel::gather() const {
  return divided_ ? divided_->gather_all() : core::Result<void>();
}

core::Result<void> TrainableModel::each_part(const See& see) const {
  TROUPE_CHECK(divided_, "divided weights");
  return divided_->each_part(see);
}

core::Result<void> TrainableModel::save_state(const std::filesystem::path& folder) const {
  TROUPE_TRY(gather());
  core::Result<void>
      written;  // an error of the writer must not keep it from what ranks do together
  const auto write = [&](const model::ParamStore& store, const char* name) {
    if (written) written = write_store(store, folder / name);
    return core::Result<void>();
  };
  if (!ranks_ || ranks_->rank() == 0) (void)write(values(), kWeights);
  const auto write_moment = [&](const char* name) {
    return [&, name](const model::ParamStore& store) { return write(store, name); };
  };
  TROUPE_TRY(stepper_->save(Moment::kFirst, write_moment(kFirstMoment)));
  TROUPE_TRY(stepper_->save(Moment::kSecond, write_moment(kSecondMoment)));
  json state = {{"format", kStateFormat},
                {"version", version_},
                {"adam_steps", stepper_->adam_steps()},
                {"skipped_in_row", skipped_in_row_}};
  if (lanes() != 1) state[kLanes] = lanes();
  if (lora_) state["base_crc32c"] = lora_->base_crc();
  return write_once([&]() -> core::Result<void> {
    TROUPE_TRY(written);
    return store::write_file(folder / kCounts, state.dump(2) + "\n");
  });
}

core::Result<void> TrainableModel::load_state(const std::filesystem::path& folder) {
  const core::Result<void> read = read_state(folder);
  return ranks_ ? ranks_->all_well(read, "load the state in " + folder.string()) : read;
}

core::Result<void> TrainableModel::read_state(const std::filesystem::path& folder) {
  TROUPE_TRY_ASSIGN(counts, read_numbers(folder / kCounts,
                                         {"format", "version", "adam_steps", "skipped_in_row"}));
  if (lora_ && counts.value("base_crc32c", json()) != lora_->base_crc()) {
    return core::fail(ErrorCode::kData, folder.string() +
                                            " holds adapters of other base weights than these; "
                                            "resume with the model that the run began with, --" +
                                            key_ + ".model_name_or_path");
  }
  const model::ParamLayout& trained = stepper_->working().layout();
  TROUPE_TRY_ASSIGN(weights, open_store(values().layout(), folder / kWeights));
  TROUPE_TRY_ASSIGN(first, open_store(trained, folder / kFirstMoment));
  TROUPE_TRY_ASSIGN(second, open_store(trained, folder / kSecondMoment));
  TROUPE_TRY(read_store(weights, values()));
  if (divided_) divided_->set_whole();
  const auto reader = [](const store::SafetensorsFile& file) {
    return [&file](model::ParamStore& store) { return read_store(file, store); };
  };
  TROUPE_TRY(stepper_->load(Moment::kFirst, reader(first)));
  TROUPE_TRY(stepper_->load(Moment::kSecond, reader(second)));
  stepper_->set_adam_steps(counts["adam_steps"].get<std::int64_t>());
  version_ = counts["version"].get<core::Version>();
  skipped_in_row_ = counts["skipped_in_row"].get<std::int64_t>();
  if (lora_) lora_->merge(team_, *master_);
  packed_.reset();  // of other weights, perhaps under the same version
  return {};
}

core::Result<std::int64_t> saved_lanes(const std::filesystem::path& folder) {
  TROUPE_TRY_ASSIGN(counts, read_numbers(folder / kCounts, {"format"}));
  const auto found = counts.find(kLanes);
  if (found == counts.end()) return std::int64_t{1};
  if (found->is_number_unsigned()) return found->get<std::int64_t>();
  return core::fail(ErrorCode::kData,
                    (folder / kCounts).string() + ": needs a whole number '" + kLanes + "'");
}

core::Result<void> RlState::save(const std::filesystem::path& folder) const {
  const json state = {{"format", kStateFormat},           {"updates", updates},
                      {"scores", moments.count},          {"score_mean", moments.mean},
                      {"score_squares", moments.squares}, {"kl_coef", kl_coef},
                      {"score_trend", score_trend},       {"ptx_cursor", ptx_cursor}};
  return store::write_file(folder / kRlState, state.dump(2) + "\n");
}

core::Result<RlState> RlState::load(const std::filesystem::path& folder) {
  TROUPE_TRY_ASSIGN(state,
                    read_numbers(folder / kRlState, {"format", "updates", "scores", "ptx_cursor"},
                                 {"score_mean", "score_squares", "kl_coef", "score_trend"}));
  RlState result;
  result.updates = state["updates"].get<std::uint64_t>();
  result.moments = {state["scores"].get<std::uint64_t>(), state["score_mean"].get<double>(),
                    state["score_squares"].get<double>()};
  result.kl_coef = state["kl_coef"].get<double>();
  result.score_trend = state["score_trend"].get<double>();
  result.ptx_cursor = state["ptx_cursor"].get<std::uint64_t>();
  return result;
}

core::Result<void> WeightAverage::save(const std::filesystem::path& folder) const {
  return write_store(average_, folder / kAverage);
}

core::Result<void> WeightAverage::load(const std::filesystem::path& folder) {
  TROUPE_TRY_ASSIGN(file, open_store(average_.layout(), folder / kAverage, "an average"));
  return read_store(file, average_);
}

}  // namespace troupe::learn
