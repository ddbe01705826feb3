// Weights from a Hugging Face folder: one safetensors file or shards with their index. Every tensor
// of the layout must be there with its shape, and nothing that the model would not use.
#include "runtime/core/limits.hpp"
#include "runtime/core/rng.hpp"
#include "runtime/model/moe_views.hpp"
#include "runtime/model/params.hpp"
#include "runtime/store/safetensors.hpp"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <fstream>
#include <map>
#include <set>
#include <string>

namespace troupe::model {
namespace {

namespace fs = std::filesystem;
using core::ErrorCode;
using core::Result;
using store::SafetensorsFile;
using store::TensorInfo;

constexpr const char* kSingle = "model.safetensors";
constexpr const char* kIndex = "model.safetensors.index.json";
constexpr const char* kHead = "lm_head.weight";
constexpr const char* kEmbedding = "model.embed_tokens.weight";
constexpr const char* kScore = "score.weight";

core::Failure bad(const fs::path& where, const std::string& why) {
  return core::fail(ErrorCode::kData, where.string() + ": " + why);
}

core::Failure no_weights(const fs::path& folder) {
  std::error_code error;
  for (fs::directory_iterator it(folder, error), end; !error && it != end; it.increment(error)) {
    const std::string extension = it->path().extension().string();
    if (extension == ".bin" || extension == ".pt" || extension == ".pth" || extension == ".ckpt") {
      return bad(it->path(),
                 "pickled weights are not read, for a pickle can run any code; convert the folder "
                 "with transformers: AutoModelForCausalLM.from_pretrained(old)"
                 ".save_pretrained(new) writes model.safetensors");
    }
  }
  return core::fail(ErrorCode::kNotFound,
                    "no " + std::string(kSingle) + " and no " + kIndex + " in " + folder.string());
}

// The shard files that an index names, each once.
Result<std::set<std::string>> files_of_index(const fs::path& path) {
  std::error_code error;
  const auto size = fs::file_size(path, error);
  if (error || size > core::limits::kSafetensorsHeader_bytes_max) {
    return bad(path, "unreadable or too large");
  }
  std::ifstream file(path, std::ios::binary);
  const auto index = nlohmann::json::parse(file, nullptr, /*allow_exceptions=*/false);
  if (index.is_discarded() || !index.is_object() || !index.contains("weight_map") ||
      !index["weight_map"].is_object()) {
    return bad(path, "not a JSON object with a `weight_map`");
  }
  std::set<std::string> names;
  for (const auto& [tensor, name] : index["weight_map"].items()) {
    if (!name.is_string() || name.get<std::string>().find('/') != std::string::npos ||
        fs::path(name.get<std::string>()).extension() != ".safetensors") {
      return bad(path, "tensor " + tensor + " names no .safetensors file of this folder");
    }
    names.insert(name.get<std::string>());
  }
  if (names.empty()) return bad(path, "its `weight_map` is empty");
  return names;
}

Result<std::vector<SafetensorsFile>> open_weights(const fs::path& folder) {
  std::vector<SafetensorsFile> files;
  std::error_code error;
  if (fs::exists(folder / kSingle, error)) {
    TROUPE_TRY_ASSIGN(file, SafetensorsFile::open(folder / kSingle));
    files.push_back(std::move(file));
    return files;
  }
  if (!fs::exists(folder / kIndex, error)) return no_weights(folder);
  TROUPE_TRY_ASSIGN(names, files_of_index(folder / kIndex));
  for (const std::string& name : names) {
    auto file = SafetensorsFile::open(folder / name);
    if (!file && file.error().code == ErrorCode::kNotFound) {
      return bad(folder / kIndex, "names " + name + ", which is not there");
    }
    if (!file) return file.failure();
    files.push_back(std::move(file).value());
  }
  return files;
}

std::string shape_text(const std::vector<std::int64_t>& shape) {
  std::string text = "[";
  for (const std::int64_t dimension : shape) {
    if (text.size() > 1) text += ", ";
    text += std::to_string(dimension);
  }
  return text + "]";
}

struct Found {
  const SafetensorsFile* file = nullptr;
  const TensorInfo* tensor = nullptr;
};
using Index = std::map<std::string, Found, std::less<>>;

// Old checkpoints carry the rotary frequencies, which follow from config.json.
bool is_derived(const std::string& name) {
  return name.size() > 20 && name.rfind(".rotary_emb.inv_freq") == name.size() - 20;
}

Result<Index> index_tensors(const std::vector<SafetensorsFile>& files) {
  Index index;
  for (const SafetensorsFile& file : files) {
    for (const TensorInfo& tensor : file.tensors()) {
      if (is_derived(tensor.name)) continue;
      if (!index.emplace(tensor.name, Found{&file, &tensor}).second) {
        return bad(file.path(), "tensor " + tensor.name + " is in another shard too");
      }
    }
  }
  return index;
}

// The place of a number in a tensor, as [row, column].
std::string place_text(std::int64_t at, const std::vector<std::int64_t>& shape) {
  std::vector<std::int64_t> place(shape.size());
  for (std::size_t i = shape.size(); i-- > 0; at /= shape[i])
    place[i] = at % shape[i];
  return shape_text(place);
}

// With one weight that is no number every answer that meets it would fail, much later.
Result<void> check_finite(const Found& found, const ParamView& view, const float* data) {
  const float* const end = data + view.count;
  const float* const wrong =
      std::find_if(data, end, [](float value) { return !std::isfinite(value); });
  if (wrong == end) return {};
  return bad(found.file->path(), "tensor " + view.name + " holds " + std::to_string(*wrong) +
                                     " at " + place_text(wrong - data, view.shape) +
                                     "; every weight must be a finite number. Take an earlier "
                                     "checkpoint, or download the file anew");
}

Result<void> read_tensor(const Found& found, const ParamView& view, float* data) {
  if (found.tensor->shape != view.shape) {
    return bad(found.file->path(), "tensor " + view.name + " has shape " +
                                       shape_text(found.tensor->shape) + "; config.json makes it " +
                                       shape_text(view.shape));
  }
  TROUPE_TRY(found.file->read_f32(*found.tensor, data + view.offset));
  return check_finite(found, view, data + view.offset);
}

// A tied model's file may hold the head as well; it must then be the embedding.
Result<void> check_tied_head(const Index& index) {
  const auto head = index.find(kHead);
  const auto embedding = index.find(kEmbedding);
  if (head == index.end() || embedding == index.end()) return {};
  const auto a = head->second.file->bytes(*head->second.tensor);
  const auto b = embedding->second.file->bytes(*embedding->second.tensor);
  if (a.size() == b.size() && std::memcmp(a.data(), b.data(), a.size()) == 0) return {};
  return bad(head->second.file->path(),
             "lm_head.weight differs from model.embed_tokens.weight, yet config.json says "
             "tie_word_embeddings = true; set it to false to use both");
}

// A head as new reward models and critics start: N(0, 1 / (hidden + 1)) of deviation (Stiennon et
// al. 2020, and OpenRLHF). Scores begin near 0, whatever the width.
void fill_fresh_score(std::span<float> head, std::uint64_t seed) {
  constexpr std::uint64_t kStream = 0x73636f7265;  // "score"
  core::Rng rng(seed, kStream);
  const double deviation = 1.0 / (static_cast<double>(head.size()) + 1.0);
  for (float& value : head)
    value = static_cast<float>(deviation * rng.next_normal());
}

}  // namespace

Result<std::vector<fs::path>> weight_files(const fs::path& folder) {
  TROUPE_TRY_ASSIGN(opened, open_weights(folder));
  std::vector<fs::path> files;
  for (const SafetensorsFile& file : opened)
    files.push_back(file.path());
  return files;
}

Result<std::unique_ptr<ParamStore>> load_model(const fs::path& folder,
                                               HeadKind head,
                                               std::uint64_t seed) {
  TROUPE_TRY_ASSIGN(spec, read_spec(folder));
  if (head == HeadKind::kLanguage && spec.head == HeadKind::kScore) {
    return bad(folder, "holds a " + spec.architecture +
                           ", which scores text and cannot write any; a language model is needed "
                           "here");
  }
  TROUPE_TRY_ASSIGN(files, open_weights(folder));
  TROUPE_TRY_ASSIGN(index, index_tensors(files));
  if (spec.tied) {
    TROUPE_TRY(check_tied_head(index));
    index.erase(kHead);
  }
  const bool fresh_score = head == HeadKind::kScore && spec.head == HeadKind::kLanguage;
  if (fresh_score) {
    index.erase(kHead);
    spec = with_score_head(spec);
  }
  // All names are checked before the buffer is made.
  const ParamLayout layout(spec);
  const std::vector<ParamView> views =
      stored_views(spec, layout, [&](const std::string& name) { return index.contains(name); });
  std::set<std::string_view> expected;
  for (const ParamView& view : views) {
    if (fresh_score && view.name == kScore) continue;
    expected.insert(view.name);
    if (!index.contains(view.name)) return bad(folder, "tensor " + view.name + " is missing");
  }
  for (const auto& [name, found] : index) {
    if (!expected.contains(name)) {
      return bad(found.file->path(), "tensor " + name + " does not belong to a " +
                                         spec.architecture + " of this config.json");
    }
  }
  auto params = std::make_unique<ParamStore>(spec);
  if (fresh_score) fill_fresh_score(params->view(kScore), seed);
  for (const ParamView& view : views) {
    if (fresh_score && view.name == kScore) continue;
    TROUPE_TRY(read_tensor(index.find(view.name)->second, view, params->data()));
  }
  return params;
}

}  // namespace troupe::model
