// Writes a model folder that transformers can open: config.json with the storage dtype, weights
// with the hub's conventional shard names and index, and copies of the tokenizer files. The folder
// appears complete or not at all.
#include "runtime/model/params.hpp"
#include "runtime/store/atomic_folder.hpp"
#include "runtime/store/safetensors.hpp"

#include <nlohmann/json.hpp>

#include <cstdio>

namespace troupe::model {
namespace {

namespace fs = std::filesystem;
using core::Result;
using nlohmann::ordered_json;
using store::TensorSource;

constexpr const char* kTokenizerFiles[] = {"tokenizer.json",
                                           "tokenizer_config.json",
                                           "special_tokens_map.json",
                                           "added_tokens.json",
                                           "vocab.json",
                                           "merges.txt",
                                           "tokenizer.model",
                                           "chat_template.jinja",
                                           "chat_template.json",
                                           "generation_config.json"};

// The model's current config.json, with the dtype of the saved weights.
std::string config_text(const ModelSpec& spec, StorageDtype dtype) {
  auto config = ordered_json::parse(current_config(spec));
  const char* name = dtype == StorageDtype::kF32 ? "float32" : "bfloat16";
  if (config.contains("dtype")) config["dtype"] = name;
  if (config.contains("torch_dtype") || !config.contains("dtype")) config["torch_dtype"] = name;
  return config.dump(2) + "\n";
}

struct Shard {
  std::vector<TensorSource> tensors;
  std::uint64_t bytes = 0;
};

std::vector<Shard> cut_into_shards(const ParamStore& params,
                                   StorageDtype dtype,
                                   std::uint64_t shard_bytes_max) {
  const bool rounded = dtype == StorageDtype::kBf16;
  const auto stored = rounded ? store::Dtype::kBf16 : store::Dtype::kF32;
  std::vector<Shard> shards(1);
  for (const ParamView& view : params.layout().views) {
    const std::uint64_t bytes = static_cast<std::uint64_t>(view.count) * store::dtype_bytes(stored);
    if (!shards.back().tensors.empty() && shards.back().bytes + bytes > shard_bytes_max) {
      shards.emplace_back();
    }
    shards.back().tensors.push_back(
        {view.name, stored, view.shape, params.data() + view.offset, rounded});
    shards.back().bytes += bytes;
  }
  return shards;
}

std::string shard_name(std::size_t index, std::size_t count) {
  if (count == 1) return "model.safetensors";
  char name[64];
  std::snprintf(name, sizeof name, "model-%05zu-of-%05zu.safetensors", index + 1, count);
  return name;
}

Result<void> write_weights(const ParamStore& params,
                           const fs::path& folder,
                           StorageDtype dtype,
                           std::uint64_t shard_bytes_max) {
  const auto shards = cut_into_shards(params, dtype, shard_bytes_max);
  ordered_json index;
  std::uint64_t total = 0;
  for (std::size_t i = 0; i < shards.size(); ++i) {
    const std::string name = shard_name(i, shards.size());
    TROUPE_TRY(store::write_safetensors(folder / name, shards[i].tensors, {{"format", "pt"}}));
    total += shards[i].bytes;
    for (const TensorSource& tensor : shards[i].tensors)
      index["weight_map"][tensor.name] = name;
  }
  if (shards.size() == 1) return {};
  index["metadata"]["total_size"] = total;
  return store::write_file(folder / "model.safetensors.index.json", index.dump(2) + "\n");
}

Result<void> copy_tokenizer(const fs::path& from, const fs::path& to) {
  std::error_code error;
  for (const char* name : kTokenizerFiles) {
    if (!fs::exists(from / name, error)) continue;
    TROUPE_TRY(store::copy_file(from / name, to / name));
  }
  return {};
}

}  // namespace

Result<void> save_model(const ParamStore& params,
                        const fs::path& folder,
                        StorageDtype dtype,
                        const fs::path& tokenizer_from,
                        std::uint64_t shard_bytes_max) {
  TROUPE_TRY_ASSIGN(target, store::AtomicFolder::begin(folder));
  TROUPE_TRY(store::write_file(target.path() / "config.json", config_text(params.spec(), dtype)));
  TROUPE_TRY(write_weights(*HostCopy(params), target.path(), dtype, shard_bytes_max));
  if (!tokenizer_from.empty()) TROUPE_TRY(copy_tokenizer(tokenizer_from, target.path()));
  return target.commit();
}

}  // namespace troupe::model
