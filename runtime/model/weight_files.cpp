#include "runtime/model/weight_files.hpp"

#include "runtime/parse/bounded_json.hpp"
#include "runtime/store/limits.hpp"

#include <fstream>
#include <iterator>
#include <set>

namespace troupe::model {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;
using store::SafetensorsFile;
using store::TensorInfo;

constexpr const char* kSingle = "model.safetensors";
constexpr const char* kIndex = "model.safetensors.index.json";

core::Failure no_weights(const fs::path& folder) {
  std::error_code error;
  for (fs::directory_iterator it(folder, error), end; !error && it != end; it.increment(error)) {
    const std::string extension = it->path().extension().string();
    if (extension == ".bin" || extension == ".pt" || extension == ".pth" || extension == ".ckpt") {
      return bad_file(it->path(), "pickled weights are not read, for a pickle can run any code",
                      "convert the folder with transformers: "
                      "AutoModelForCausalLM.from_pretrained(old).save_pretrained(new) writes "
                      "model.safetensors");
    }
  }
  return core::fail(ErrorCode::kNotFound,
                    "no " + std::string(kSingle) + " and no " + kIndex + " in " + folder.string());
}

// Old checkpoints store the rotary frequencies, which follow from config.json.
bool is_derived(const std::string& name) {
  return name.size() > 20 && name.rfind(".rotary_emb.inv_freq") == name.size() - 20;
}

}  // namespace

core::Failure bad_file(const fs::path& where, const std::string& why, std::string_view advice) {
  return core::fail(ErrorCode::kData, where.string() + ": " + why, advice);
}

Result<WeightFiles> WeightFiles::open(const fs::path& folder) {
  WeightFiles weights;
  std::error_code error;
  const bool both = fs::exists(folder / kSingle, error) && fs::exists(folder / kIndex, error);
  if (both) {
    return bad_file(folder,
                    "has weights twice: " + std::string(kSingle) +
                        ", which transformers reads, and shards listed in " + kIndex +
                        ", which others read",
                    "remove those that are not meant");
  }
  if (fs::exists(folder / kSingle, error)) {
    weights.listing_ = folder / kSingle;
    TROUPE_TRY_ASSIGN(file, SafetensorsFile::open(weights.listing_));
    weights.files_.push_back(std::move(file));
    TROUPE_TRY(weights.list_tensors());
    return weights;
  }
  weights.listing_ = folder / kIndex;
  if (!fs::exists(weights.listing_, error)) return no_weights(folder);
  TROUPE_TRY_ASSIGN(index, read_index(weights.listing_));
  TROUPE_TRY(weights.open_shards(index));
  TROUPE_TRY(weights.list_tensors());
  TROUPE_TRY(weights.check_index(index));
  return weights;
}

Result<WeightFiles::Index> WeightFiles::read_index(const fs::path& path) {
  std::error_code error;
  const auto size = fs::file_size(path, error);
  if (error || size > store::limits::kSafetensorsHeader_bytes_max) {
    return bad_file(path, "unreadable or too large");
  }
  std::ifstream file(path, std::ios::binary);
  const std::string text{std::istreambuf_iterator<char>(file), {}};
  auto document = parse::bounded_json<json>(text, {.repeats = parse::Repeats::kRefused});
  if (!document) {
    return core::fail(ErrorCode::kData, path.string() + " " + document.error().message);
  }
  if (!document->is_object() || !document->contains("weight_map") ||
      !(*document)["weight_map"].is_object()) {
    return bad_file(path, "not a JSON object with a `weight_map`");
  }
  Index index;
  for (const auto& [tensor, name] : (*document)["weight_map"].items()) {
    if (!name.is_string() || name.get_ref<const std::string&>().find('/') != std::string::npos ||
        fs::path(name.get_ref<const std::string&>()).extension() != ".safetensors") {
      return bad_file(path, "tensor " + tensor + " names no .safetensors file of this folder");
    }
    index.emplace(tensor, name.get<std::string>());
  }
  if (index.empty()) return bad_file(path, "its `weight_map` is empty");
  return index;
}

Result<void> WeightFiles::open_shards(const Index& index) {
  std::set<std::string> names;
  for (const auto& [tensor, name] : index)
    names.insert(name);
  for (const std::string& name : names) {
    auto file = SafetensorsFile::open(listing_.parent_path() / name);
    if (!file && file.error().code == ErrorCode::kNotFound) {
      return bad_file(listing_, "names " + name + ", which is not there");
    }
    if (!file) return file.failure();
    files_.push_back(std::move(file).value());
  }
  return {};
}

Result<void> WeightFiles::list_tensors() {
  for (const SafetensorsFile& file : files_) {
    for (const TensorInfo& tensor : file.tensors()) {
      if (is_derived(tensor.name)) continue;
      const auto [place, fresh] = tensors_.emplace(tensor.name, Place{&file, &tensor});
      if (fresh) continue;
      return bad_file(file.path(), "tensor " + tensor.name + " is in " +
                                       place->second.file->path().filename().string() + " too");
    }
  }
  return {};
}

Result<void> WeightFiles::check_index(const Index& index) const {
  constexpr const char* kRemedy = "download the folder anew, or write it again";
  for (const auto& [tensor, name] : index) {
    if (is_derived(tensor)) continue;
    const Place* place = find(tensor);
    if (place == nullptr) {
      return bad_file(listing_,
                      "says that tensor " + tensor + " is in " + name +
                          ", and it is in no file that the index names",
                      kRemedy);
    }
    const std::string file = place->file->path().filename().string();
    if (file == name) continue;
    return bad_file(listing_,
                    "says that tensor " + tensor + " is in " + name + ", and it is in " + file,
                    kRemedy);
  }
  for (const auto& [tensor, place] : tensors_) {
    if (index.contains(tensor)) continue;
    return bad_file(listing_,
                    "does not name tensor " + tensor + ", which is in " +
                        place.file->path().filename().string(),
                    kRemedy);
  }
  return {};
}

std::vector<fs::path> WeightFiles::paths() const {
  std::vector<fs::path> paths;
  for (const SafetensorsFile& file : files_)
    paths.push_back(file.path());
  return paths;
}

const WeightFiles::Place* WeightFiles::find(std::string_view name) const {
  const auto found = tensors_.find(name);
  return found == tensors_.end() ? nullptr : &found->second;
}

void WeightFiles::leave_out(std::string_view name) {
  if (const auto found = tensors_.find(name); found != tensors_.end()) tensors_.erase(found);
}

}  // namespace troupe::model
