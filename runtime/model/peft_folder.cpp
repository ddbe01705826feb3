#include "runtime/model/peft_folder.hpp"

#include "runtime/core/texts.hpp"
#include "runtime/model/spec_json.hpp"
#include "runtime/store/atomic_folder.hpp"
#include "runtime/store/safetensors.hpp"

#include <nlohmann/json.hpp>

#include <cmath>
#include <cstdio>
#include <fstream>
#include <map>
#include <sstream>

namespace troupe::model {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;
using nlohmann::ordered_json;

constexpr const char* kConfig = "adapter_config.json";
constexpr const char* kWeights = "adapter_model.safetensors";
constexpr const char* kPrefix = "base_model.model.";
constexpr const char* kBaseCrc = "troupe_base_crc32c";

std::string crc_text(std::uint32_t crc) {
  return core::printed("%08x", crc);
}

// The value of `target_modules`: short names if each map has an adapter in all layers or in none,
// else full names. So PEFT puts adapters exactly where `layout` has them.
std::vector<std::string> target_modules(const ParamLayout& layout, const ModelSpec& spec) {
  std::vector<std::string> short_names, whole_names;
  bool even = true;
  for (const Linear linear : kAllLinears) {
    std::size_t count = 0;
    for (std::size_t layer = 0; layer < layout.adapters.size(); ++layer) {
      if (layout.adapters[layer][index_of(linear)].rank == 0) continue;
      ++count;
      whole_names.push_back(module_name(spec, static_cast<std::int64_t>(layer), linear));
    }
    if (count > 0) short_names.emplace_back(short_name(spec, linear));
    even = even && (count == 0 || count == layout.adapters.size());
  }
  return even ? short_names : whole_names;
}

std::string adapter_config_text(const ParamLayout& layout,
                                const ModelSpec& spec,
                                const LoraSettings& settings,
                                const std::string& base) {
  const bool score = spec.head == HeadKind::kScore;
  ordered_json config;
  config["peft_type"] = "LORA";
  config["task_type"] = score ? "SEQ_CLS" : "CAUSAL_LM";
  config["base_model_name_or_path"] = base;
  config["r"] = settings.rank;
  config["lora_alpha"] = settings.alpha;
  config["lora_dropout"] = 0.0;
  config["target_modules"] = target_modules(layout, spec);
  config["modules_to_save"] = nullptr;
  if (layout.find(kScoreWeight) != nullptr) config["modules_to_save"] = {"score"};
  config["bias"] = "none";
  config["fan_in_fan_out"] = false;
  config["init_lora_weights"] = true;
  config["use_rslora"] = false;
  config["use_dora"] = false;
  config["rank_pattern"] = ordered_json::object();
  config["alpha_pattern"] = ordered_json::object();
  config["inference_mode"] = true;
  return config.dump(2) + "\n";
}

// ---- reading ----

Result<json> read_config(const fs::path& folder) {
  const fs::path path = folder / kConfig;
  std::ifstream file(path, std::ios::binary);
  if (!file) {
    return core::fail(ErrorCode::kNotFound, "no " + std::string(kConfig) + " in " +
                                                folder.string() + ": it is not a PEFT adapter");
  }
  std::stringstream text;
  text << file.rdbuf();
  return parse_config_json(text.str(), path.string());
}

bool is_empty(const json* value) {
  return value == nullptr || (value->is_object() && value->empty()) ||
         (value->is_array() && value->empty());
}

// Refuses settings under which the adapted weight would not be W + s B A.
Result<void> refuse_adapter_variants(const ConfigReader& config) {
  TROUPE_TRY_ASSIGN(type, config.text("peft_type", ""));
  if (type != "LORA") return config.unsupported("peft_type `" + type + "`", "offered is LORA");
  TROUPE_TRY_ASSIGN(bias, config.text("bias", "none"));
  if (bias != "none") return config.unsupported("bias `" + bias + "`", "offered is none");
  for (const char* key : {"use_dora", "lora_bias", "fan_in_fan_out", "use_qalora"}) {
    TROUPE_TRY_ASSIGN(on, config.flag(key, false));
    if (on) return config.unsupported(std::string(key) + " = true", "offered is false");
  }
  for (const char* key : {"rank_pattern", "alpha_pattern", "layer_replication"}) {
    if (!is_empty(config.find(key))) {
      return config.unsupported(std::string(key), "offered is one rank and alpha for all");
    }
  }
  return {};
}

// The tensors of the file: those of adapters, and weights that were trained as a whole.
struct Contents {
  std::map<std::string, const store::TensorInfo*, std::less<>> tensors;  // by name in ParamLayout
  std::map<std::pair<std::int64_t, Linear>, std::int64_t> ranks;         // by layer and map
};

// Matches the tensors of an adapter file with the modules and weights of the base model.
class AdapterFile {
 public:
  AdapterFile(const store::SafetensorsFile& file, const ParamStore& base)
      : file_(file), base_(base) {
    for (std::int64_t layer = 0; layer < base.spec().layers; ++layer) {
      for (const Linear linear : kAllLinears) {
        if (!has_linear(base.spec(), layer, linear)) continue;
        modules_.emplace(module_name(base.spec(), layer, linear), std::pair{layer, linear});
      }
    }
  }

  // `targets`: the modules that the adapter's configuration names.
  Result<Contents> read(const PeftTargets& targets) {
    Contents contents;
    for (const store::TensorInfo& tensor : file_.tensors())
      TROUPE_TRY(take(tensor, contents));
    for (const auto& [place, rank] : contents.ranks) {
      const std::string module = module_name(base_.spec(), place.first, place.second);
      for (const char* half : {".lora_A.weight", ".lora_B.weight"}) {
        if (!contents.tensors.contains(module + half)) {
          return bad("tensor " + (kPrefix + module) + half + " is missing");
        }
      }
    }
    if (contents.ranks.empty()) return bad("it has no lora_A and lora_B tensors");
    if (targets.are_known()) TROUPE_TRY(compare(targets, contents));
    return contents;
  }

 private:
  // Refuses an adapter of which a part is missing, or which has more than it says.
  Result<void> compare(const PeftTargets& targets, const Contents& contents) const {
    for (const auto& [module, place] : modules_) {
      TROUPE_TRY_ASSIGN(named, targets.have(module, place.first));
      if (named == contents.ranks.contains(place)) continue;
      const std::string rest = " tensors of " + module + ", which " + kConfig;
      return named ? bad("it has no" + rest + " names in `target_modules`")
                   : bad("it has" + rest +
                         " does not name in `target_modules`, so that PEFT would leave it out");
    }
    return {};
  }

  core::Failure bad(const std::string& why, std::string_view advice = {}) const {
    return core::fail(ErrorCode::kData, file_.path().string() + ": " + why, advice);
  }

  Result<void> take(const store::TensorInfo& tensor, Contents& contents) {
    if (!tensor.name.starts_with(kPrefix)) {
      return bad("tensor " + tensor.name + " does not begin with " + kPrefix);
    }
    const std::string name = tensor.name.substr(std::string_view(kPrefix).size());
    const auto half = name.find(".lora_");
    if (half == std::string::npos) return take_whole(tensor, name, contents);
    const auto module = modules_.find(name.substr(0, half));
    const std::string part = name.substr(half);
    if (is_head_or_embedding(name.substr(0, half))) {
      return bad("tensor " + tensor.name + ": " + kNoSuchAdapters);
    }
    if (module == modules_.end() || (part != ".lora_A.weight" && part != ".lora_B.weight")) {
      return bad("tensor " + tensor.name + " belongs to no module of this model (" +
                 base_.spec().architecture + " with " + std::to_string(base_.spec().layers) +
                 " layers)");
    }
    const auto [layer, linear] = module->second;
    const LinearShape shape = shape_of(base_.spec(), linear);
    const bool down = part == ".lora_A.weight";
    // A is [rank, columns], B is [rows, rank].
    const std::size_t fixed = down ? 1 : 0;
    const std::int64_t expected = down ? shape.columns : shape.rows;
    const bool matrix = tensor.shape.size() == 2;
    if (!matrix || tensor.shape[fixed] != expected || tensor.shape[1 - fixed] < 1) {
      return bad("tensor " + tensor.name + " has shape " + shape_text(tensor.shape) +
                 " where this model has " +
                 (down ? "[rank, " + std::to_string(expected) + "]"
                       : "[" + std::to_string(expected) + ", rank]"));
    }
    const std::int64_t rank = tensor.shape[1 - fixed];
    const auto [known, fresh] = contents.ranks.emplace(std::pair{layer, linear}, rank);
    if (!fresh && known->second != rank) {
      return bad("tensor " + tensor.name + " has rank " + std::to_string(rank) +
                 ", its other half " + std::to_string(known->second));
    }
    contents.tensors.emplace(name, &tensor);
    return {};
  }

  Result<void> take_whole(const store::TensorInfo& tensor,
                          const std::string& name,
                          Contents& contents) {
    const ParamView* view = base_.layout().find(name);
    if (view == nullptr && is_head_or_embedding(name)) {
      return bad("tensor " + tensor.name + ": " + kNoSuchAdapters);
    }
    if (view == nullptr) return bad("tensor " + tensor.name + " is not a weight of this model");
    if (tensor.shape != view->shape) {
      return bad("tensor " + tensor.name + " has shape " + shape_text(tensor.shape) +
                 " where this model has " + shape_text(view->shape));
    }
    contents.tensors.emplace(name, &tensor);
    return {};
  }

  const store::SafetensorsFile& file_;
  const ParamStore& base_;
  std::map<std::string, std::pair<std::int64_t, Linear>, std::less<>> modules_;
};

Result<store::SafetensorsFile> open_weights(const fs::path& folder) {
  std::error_code error;
  if (!fs::exists(folder / kWeights, error) && fs::exists(folder / "adapter_model.bin", error)) {
    return core::fail(
        ErrorCode::kData,
        (folder / "adapter_model.bin").string() +
            ": pickled weights are not read, for a pickle can run any code",
        "convert them with peft: model.save_pretrained(folder, safe_serialization=True)");
  }
  return store::SafetensorsFile::open(folder / kWeights);
}

}  // namespace

Result<void> save_adapter(const Lora& lora,
                          const LoraSettings& settings,
                          const std::string& base,
                          const fs::path& folder) {
  TROUPE_TRY_ASSIGN(target, store::AtomicFolder::begin(folder));
  const HostCopy values(lora.values());
  std::vector<store::TensorSource> tensors;
  for (const ParamView& view : values->layout().views) {
    tensors.push_back(
        {kPrefix + view.name, store::Dtype::kF32, view.shape, values->data() + view.offset});
  }
  TROUPE_TRY(
      store::write_file(target.path() / kConfig,
                        adapter_config_text(values->layout(), values->spec(), settings, base)));
  TROUPE_TRY(store::write_safetensors(target.path() / kWeights, tensors,
                                      {{"format", "pt"}, {kBaseCrc, crc_text(lora.base_crc())}}));
  return target.commit();
}

Result<AdapterConfig> read_adapter_config(const fs::path& folder) {
  TROUPE_TRY_ASSIGN(document, read_config(folder));
  const ConfigReader config(document, (folder / kConfig).string());
  TROUPE_TRY(refuse_adapter_variants(config));
  AdapterConfig out;
  TROUPE_TRY_ASSIGN(rank, config.whole("r", 1, 65536));
  TROUPE_TRY_ASSIGN(alpha, config.number("lora_alpha", 8.0));
  TROUPE_TRY_ASSIGN(stabilised, config.flag("use_rslora", false));
  TROUPE_TRY_ASSIGN(task, config.text("task_type", ""));
  TROUPE_TRY_SET(out.base, config.text("base_model_name_or_path", ""));
  TROUPE_TRY_SET(out.targets, PeftTargets::read(config));
  const auto r = static_cast<double>(rank);
  out.scale = alpha / (stabilised ? std::sqrt(r) : r);
  out.head = task == "SEQ_CLS" ? HeadKind::kScore : HeadKind::kLanguage;
  return out;
}

Result<std::unique_ptr<Lora>> load_adapter(const fs::path& folder,
                                           const ParamStore& base,
                                           bool any_base) {
  TROUPE_TRY_ASSIGN(config, read_adapter_config(folder));
  TROUPE_TRY_ASSIGN(file, open_weights(folder));
  AdapterFile reader(file, base);
  TROUPE_TRY_ASSIGN(contents, reader.read(config.targets));
  const LayoutChoice choice{
      [&](const std::string& name) { return contents.tensors.contains(name); },
      [&](std::int64_t layer, Linear linear) {
        const auto found = contents.ranks.find({layer, linear});
        return found == contents.ranks.end() ? std::int64_t{0} : found->second;
      }};
  auto lora = std::make_unique<Lora>(base, std::make_shared<const ParamLayout>(base.spec(), choice),
                                     config.scale);
  const auto crc = file.metadata().find(kBaseCrc);
  if (!any_base && crc != file.metadata().end() && crc->second != crc_text(lora->base_crc())) {
    return core::fail(
        ErrorCode::kData,
        folder.string() + " was trained on other weights than these (on " + config.base + ")",
        "--any-base puts it on these all the same");
  }
  for (const ParamView& view : lora->values().layout().views) {
    TROUPE_TRY(file.read_f32(*contents.tensors.find(view.name)->second,
                             lora->values().data() + view.offset));
  }
  return lora;
}

}  // namespace troupe::model
