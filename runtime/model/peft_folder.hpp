// Adapters as PEFT keeps them: adapter_config.json and adapter_model.safetensors, tensors named
// base_model.model.<module>.lora_A.weight. The `peft` package opens what is written here, and what
// it saved is read. Files of a caller's folder; one thread.
#pragma once

#include "runtime/core/result.hpp"
#include "runtime/model/lora.hpp"
#include "runtime/model/trained_layout.hpp"

#include <filesystem>
#include <memory>
#include <string>

namespace troupe::model {

// Writes the folder whole or not at all. `base` is the model that the adapters belong to, as
// base_model_name_or_path. The CRC of the base weights goes into the file's metadata, where PEFT
// does not look. f32, so the merge of what was saved has the bits of the merge that ran.
core::Result<void> save_adapter(const Lora& lora,
                                const LoraSettings& settings,
                                const std::string& base,
                                const std::filesystem::path& folder);

// What adapter_config.json says.
struct AdapterConfig {
  double scale = 1.0;                   // alpha / rank, or alpha / sqrt(rank) with rsLoRA
  HeadKind head = HeadKind::kLanguage;  // SEQ_CLS: a score model
  std::string base;                     // base_model_name_or_path
};
// Errors: kNotFound, kData (malformed), kUnsupported (another kind of adapter, DoRA, trained
// biases, per-module ranks; named).
core::Result<AdapterConfig> read_adapter_config(const std::filesystem::path& folder);

// Adapters for `base` (not merged yet). Every tensor of the file must belong to a module of the
// model with a fitting shape; what does not is named, with both shapes. An adapter of ours that was
// trained on other base weights is refused, unless `any_base`.
core::Result<std::unique_ptr<Lora>> load_adapter(const std::filesystem::path& folder,
                                                 const ParamStore& base,
                                                 bool any_base = false);

}  // namespace troupe::model
