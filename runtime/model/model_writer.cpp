#include "runtime/model/model_writer.hpp"

#include "runtime/core/texts.hpp"

#include <nlohmann/json.hpp>

#include <span>
#include <utility>

namespace troupe::model {
namespace {

namespace fs = std::filesystem;
using nlohmann::ordered_json;

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

constexpr const char* kNamedTemplates = "additional_chat_templates";  // of transformers 5

// The model's current config.json, with the dtype of the saved weights.
std::string config_text(const ModelSpec& spec, StorageDtype dtype) {
  auto config = ordered_json::parse(current_config(spec));
  const char* name = dtype == StorageDtype::kF32 ? "float32" : "bfloat16";
  if (config.contains("dtype")) config["dtype"] = name;
  if (config.contains("torch_dtype") || !config.contains("dtype")) config["torch_dtype"] = name;
  return config.dump(2) + "\n";
}

Result<void> copy_tokenizer(const fs::path& from, const fs::path& to) {
  std::error_code error;
  for (const char* name : kTokenizerFiles) {
    if (!fs::exists(from / name, error)) continue;
    TROUPE_TRY(store::copy_file(from / name, to / name));
  }
  if (!fs::is_directory(from / kNamedTemplates, error)) return {};
  TROUPE_TRY(store::make_folder(to / kNamedTemplates));
  for (const fs::directory_entry& file : fs::directory_iterator(from / kNamedTemplates, error)) {
    const fs::path name = fs::path(kNamedTemplates) / file.path().filename();
    if (name.extension() == ".jinja") TROUPE_TRY(store::copy_file(from / name, to / name));
  }
  return {};
}

std::string shard_name(std::size_t index, std::size_t count) {
  if (count == 1) return "model.safetensors";
  return core::printed("model-%05zu-of-%05zu.safetensors", index + 1, count);
}

}  // namespace

ModelWriter::ModelWriter(std::shared_ptr<const ParamLayout> layout,
                         const ModelFolder& folder,
                         store::AtomicFolder target)
    : layout_(std::move(layout)), folder_(folder), target_(std::move(target)) {
  cut_into_shards();
}

Result<ModelWriter> ModelWriter::begin(const ModelSpec& spec,
                                       std::shared_ptr<const ParamLayout> layout,
                                       const ModelFolder& folder) {
  TROUPE_TRY_ASSIGN(target, store::AtomicFolder::begin(folder.path));
  TROUPE_TRY(store::write_file(target.path() / "config.json", config_text(spec, folder.dtype)));
  if (!folder.tokenizer_from.empty())
    TROUPE_TRY(copy_tokenizer(folder.tokenizer_from, target.path()));
  ModelWriter writer(std::move(layout), folder, std::move(target));
  TROUPE_TRY(writer.open_shard());
  return writer;
}

void ModelWriter::cut_into_shards() {
  const std::uint64_t number = folder_.dtype == StorageDtype::kBf16 ? 2 : 4;
  shards_.resize(1);
  for (const ParamView& view : layout_->views) {
    const std::uint64_t bytes = static_cast<std::uint64_t>(view.count) * number;
    const Shard& last = shards_.back();
    if (last.last > last.first && last.bytes + bytes > folder_.shard_bytes_max)
      shards_.push_back({last.last, last.last, 0, {}});
    ++shards_.back().last;
    shards_.back().bytes += bytes;
  }
  for (std::size_t i = 0; i < shards_.size(); ++i)
    shards_[i].name = shard_name(i, shards_.size());
}

Result<void> ModelWriter::open_shard() {
  const Shard& shard = shards_[shard_];
  const auto views = std::span(layout_->views).subspan(shard.first, shard.last - shard.first);
  TROUPE_TRY_ASSIGN(file, WeightsWriter::create(target_.path() / shard.name, views, folder_.dtype,
                                                {{"format", "pt"}}));
  file_.emplace(std::move(file));
  return {};
}

Result<void> ModelWriter::close_shard() {
  TROUPE_TRY_ASSIGN(digest, file_->close());
  file_.reset();
  written_.push_back({shards_[shard_].name, digest.bytes, digest.sha256});
  ++shard_;
  return {};
}

Result<void> ModelWriter::add(core::Range place, const float* numbers) {
  while (file_) {
    TROUPE_TRY(file_->add(place, numbers));
    if (!file_->complete()) return {};
    TROUPE_TRY(close_shard());
    if (shard_ < shards_.size()) TROUPE_TRY(open_shard());
  }
  return {};
}

Result<void> ModelWriter::write_index() const {
  if (shards_.size() == 1) return {};
  ordered_json index;
  std::uint64_t total = 0;
  for (const Shard& shard : shards_) {
    total += shard.bytes;
    for (std::size_t i = shard.first; i < shard.last; ++i)
      index["weight_map"][layout_->views[i].name] = shard.name;
  }
  index["metadata"]["total_size"] = total;
  return store::write_file(target_.path() / "model.safetensors.index.json", index.dump(2) + "\n");
}

Result<void> ModelWriter::commit(bool noted) {
  TROUPE_CHECK(!file_ && shard_ == shards_.size(), "all weights come before the commit");
  TROUPE_TRY(write_index());
  if (noted) TROUPE_TRY(store::note_written(target_.path(), written_));
  return target_.commit();
}

Result<void> write_model(const ParamStore& params, const ModelFolder& folder, bool noted) {
  TROUPE_TRY_ASSIGN(writer, ModelWriter::begin(params.spec(), params.shared_layout(), folder));
  TROUPE_TRY(each_piece(numbers_in(params), [&](core::Range place, const float* numbers) {
    return writer.add(place, numbers);
  }));
  return writer.commit(noted);
}

Result<void> save_model(const ParamStore& params,
                        const fs::path& folder,
                        StorageDtype dtype,
                        const fs::path& tokenizer_from,
                        std::uint64_t shard_bytes_max) {
  return write_model(params, {folder, dtype, tokenizer_from, shard_bytes_max});
}

}  // namespace troupe::model
