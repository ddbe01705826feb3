// A model ready to generate: tokenizer, chat template, packed weights, thread pool and engine, for
// the commands that sample without a run. Owned by the command, used on its thread.
#pragma once

#include "actors/generator/tokenizer_text.hpp"
#include "runtime/async/cpu_pool.hpp"
#include "runtime/core/result.hpp"
#include "runtime/engine/engine.hpp"
#include "runtime/text/chat_template.hpp"
#include "runtime/text/tokenizer.hpp"

#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace troupe::app {

class EngineHost {
 public:
  // `name`: a folder or org/name. `threads` 0: all usable cores.
  static core::Result<std::unique_ptr<EngineHost>> load(const std::string& name,
                                                        std::int64_t threads);

  engine::Engine& engine() { return *engine_; }
  const text::Tokenizer& tokenizer() const { return tokenizer_; }
  const std::string& model_name() const { return name_; }
  std::int64_t context() const { return context_; }
  const std::filesystem::path& folder() const { return folder_; }
  // Null when the model has no chat template.
  const text::ChatTemplate* chat() const { return chat_ ? &*chat_ : nullptr; }

  // Token ids of a completion prompt.
  core::Result<std::vector<std::int32_t>> encode(const std::string& prompt) const;
  // Token ids of a dialogue, ready for the model's answer. Error: the model has no chat template.
  core::Result<std::vector<std::int32_t>> encode_chat(
      const std::vector<text::ChatMessage>& messages) const;

 private:
  EngineHost(std::string name, text::Tokenizer tokenizer, int threads);

  std::string name_;
  text::Tokenizer tokenizer_;
  std::optional<text::ChatTemplate> chat_;
  std::string no_chat_;  // why there is no template
  actors::TokenizerText text_;
  async::CpuPool pool_;
  std::filesystem::path folder_;
  std::int64_t context_ = 0;
  std::unique_ptr<engine::Engine> engine_;
};

}  // namespace troupe::app
