// A model ready to generate: tokenizer, chat template, packed weights, team and engine, for the
// commands that sample (`generate`, `chat`, `eval`, `serve`). Owned by the command, used on its
// thread.
#pragma once

#include "actors/generator/tokenizer_text.hpp"
#include "apps/cli/placement.hpp"
#include "runtime/core/result.hpp"
#include "runtime/engine/driver.hpp"
#include "runtime/text/chat_template.hpp"
#include "runtime/text/tokenizer.hpp"

#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace troupe::cli {

// Whether to load the model's tokenizer; without one, prompts and responses are token ids.
enum class TokenizerUse {
  kNeeded,
  kIfThere,  // load it when the folder has a tokenizer.json
  kNone,
};

class EngineHost {
 public:
  // `name`: a folder or org/name. `dtype`: how the weights are stored, also by pack_weights.
  static core::Result<std::unique_ptr<EngineHost>> load(
      const std::string& name,
      const Placement& placement,
      engine::EngineLimits limits = {},
      kernels::PanelDtype dtype = kernels::PanelDtype::kF32,
      TokenizerUse use = TokenizerUse::kNeeded);

  // Without weights and driver, for a caller that receives the weights from a run.
  static core::Result<std::unique_ptr<EngineHost>> prepare(
      const std::string& name,
      const Placement& placement,
      TokenizerUse use = TokenizerUse::kNeeded);
  // A driver that makes its engine when the first weights arrive; this host outlives it.
  std::unique_ptr<engine::EngineDriver> make_driver(engine::EngineLimits limits);

  engine::EngineDriver& driver() { return *driver_; }
  const model::ModelSpec& spec() const { return spec_; }
  // Gives the driver to a caller that uses it on another thread; the host outlives it. Do not call
  // `driver` after this.
  std::unique_ptr<engine::EngineDriver> take_driver() { return std::move(driver_); }
  core::TeamRunner& team() { return *team_; }
  // Loads the weights from the folder and packs them.
  core::Result<std::shared_ptr<const model::PackedWeights>> pack_weights();
  bool has_tokenizer() const { return tokenizer_.has_value(); }
  // Only when has_tokenizer(), as always with kNeeded.
  const text::Tokenizer& tokenizer() const { return *tokenizer_; }
  const std::string& model_name() const { return name_; }
  std::int64_t context() const { return spec_.context; }
  const std::filesystem::path& folder() const { return folder_; }
  // Null when the model has no chat template.
  const text::ChatTemplate* chat() const { return chat_ ? &*chat_ : nullptr; }
  const std::string& no_chat() const { return no_chat_; }  // why there is none

  // Token ids of a completion prompt, with what the tokenizer puts in front of a text. Error kData:
  // it has none. Only when has_tokenizer().
  core::Result<std::vector<std::int32_t>> encode(const std::string& prompt,
                                                 bool front = true) const;
  // Token ids of a dialogue, ready for the model's answer. Error: the model has no chat template.
  core::Result<std::vector<std::int32_t>> encode_chat(
      const std::vector<text::ChatMessage>& messages, const text::ChatInputs& inputs = {}) const;

 private:
  EngineHost() = default;
  core::Result<std::unique_ptr<engine::Engine>> make_engine(
      std::shared_ptr<const model::PackedWeights> weights, engine::EngineLimits limits);

  std::string name_;
  model::ModelSpec spec_;
  std::optional<text::Tokenizer> tokenizer_;
  std::optional<text::ChatTemplate> chat_;
  std::string no_chat_;  // why there is no template
  std::optional<actors::generator::TokenizerText> text_;
  std::unique_ptr<core::TeamRunner> team_;
  std::filesystem::path folder_;
  std::vector<std::int32_t> eos_;
  kernels::PanelDtype dtype_ = kernels::PanelDtype::kF32;
  std::unique_ptr<engine::EngineDriver> driver_;
};

}  // namespace troupe::cli
