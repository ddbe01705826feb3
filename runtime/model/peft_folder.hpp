// Reads and writes adapters in PEFT's format: adapter_config.json and adapter_model.safetensors,
// with tensors named base_model.model.<module>.lora_A.weight. The `peft` package can open what this
// writes, and this reads what `peft` saved. Touches only the caller's folder; one thread.
#pragma once

#include "runtime/core/result.hpp"
#include "runtime/model/lora.hpp"
#include "runtime/model/peft_targets.hpp"
#include "runtime/model/trained_layout.hpp"

#include <filesystem>
#include <memory>
#include <string>

namespace troupe::model {

// Writes the folder completely or not at all. `base` is the model that the adapters belong to, for
// base_model_name_or_path. The CRC of the base weights goes into the file's metadata, which PEFT
// ignores. Stored as f32, so merging the saved adapters gives the same bits as the merge in the
// run.
core::Result<void> save_adapter(const Lora& lora,
                                const LoraSettings& settings,
                                const std::string& base,
                                const std::filesystem::path& folder);

// The contents of adapter_config.json.
struct AdapterConfig {
  double scale = 1.0;                   // alpha / rank, or alpha / sqrt(rank) with rsLoRA
  HeadKind head = HeadKind::kLanguage;  // SEQ_CLS: a score model
  std::string base;                     // base_model_name_or_path
  PeftTargets targets{};                // the modules that it is for
};
// Errors: kNotFound, kData (malformed), kUnsupported (another kind of adapter, DoRA, trained
// biases, per-module ranks). The message names the setting.
core::Result<AdapterConfig> read_adapter_config(const std::filesystem::path& folder);

// Adapters for `base` (not merged yet). Every tensor of the file must belong to a module of the
// model and fit its shape; the error names the tensor and, for a misfit, both shapes. An adapter
// that Troupe trained on other base weights is refused, unless `any_base`.
core::Result<std::unique_ptr<Lora>> load_adapter(const std::filesystem::path& folder,
                                                 const ParamStore& base,
                                                 bool any_base = false);

}  // namespace troupe::model
