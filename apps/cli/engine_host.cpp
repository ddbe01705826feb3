#include "apps/cli/engine_host.hpp"

#include "apps/cli/end_tokens.hpp"
#include "runtime/model/packed.hpp"
#include "runtime/model/params.hpp"
#include "runtime/text/special_tokens.hpp"

#include <cstdio>
#include <ctime>
#include <utility>

namespace troupe::cli {

namespace {

core::Result<std::optional<text::Tokenizer>> load_tokenizer(const std::filesystem::path& folder,
                                                            TokenizerUse use) {
  std::optional<text::Tokenizer> tokenizer;
  if (use == TokenizerUse::kNone) return tokenizer;
  auto loaded = text::Tokenizer::load(folder);
  if (loaded) {
    tokenizer.emplace(std::move(*loaded));
  } else if (use == TokenizerUse::kNeeded || loaded.error().code != core::ErrorCode::kNotFound) {
    return loaded.failure();
  }
  return tokenizer;
}

// The tokens that end a response. Without a tokenizer: those that the folder's files give as ids.
core::Result<std::vector<std::int32_t>> end_tokens_of(
    const std::filesystem::path& folder,
    const std::optional<text::Tokenizer>& tokenizer,
    const model::ModelSpec& spec) {
  if (tokenizer) return end_tokens(tokenizer->eos_ids(), spec);
  TROUPE_TRY_ASSIGN(special, text::read_special_tokens(folder));
  return end_tokens(std::move(special.eos_ids), spec);
}

}  // namespace

core::Result<std::unique_ptr<EngineHost>> EngineHost::prepare(const std::string& name,
                                                              const Placement& placement,
                                                              TokenizerUse use) {
  std::unique_ptr<EngineHost> host(new EngineHost);
  host->name_ = name;
  TROUPE_TRY_SET(host->folder_, model::resolve_model(name));
  const std::filesystem::path& folder = host->folder_;
  TROUPE_TRY_SET(host->spec_, model::read_spec(folder));
  const model::ModelSpec& spec = host->spec_;
  TROUPE_TRY_SET(host->tokenizer_, load_tokenizer(folder, use));
  TROUPE_TRY_SET(host->eos_, end_tokens_of(folder, host->tokenizer_, spec));
  if (const auto note = model::longrope_note(spec)) std::fprintf(stderr, "%s\n", note->c_str());
  TROUPE_TRY_SET(host->team_, make_team(placement));
  if (spec.moe.any() && !host->team_->memory().on_host()) {
    return core::fail(core::ErrorCode::kConfig,
                      "--device " + placement.device + ": the experts of " + spec.architecture +
                          " are computed on the processor only",
                      "give --device cpu");
  }
  if (host->tokenizer_) host->text_.emplace(*host->tokenizer_);
  if (!host->tokenizer_) {
    host->no_chat_ = "there is no tokenizer";
  } else if (auto chat = text::ChatTemplate::load(folder)) {
    host->chat_.emplace(std::move(*chat));
  } else {
    host->no_chat_ = chat.error().message;
  }
  return host;
}

core::Result<std::unique_ptr<EngineHost>> EngineHost::load(const std::string& name,
                                                           const Placement& placement,
                                                           engine::EngineLimits limits,
                                                           kernels::PanelDtype dtype,
                                                           TokenizerUse use) {
  TROUPE_TRY_ASSIGN(host, prepare(name, placement, use));
  host->dtype_ = dtype;
  TROUPE_TRY_ASSIGN(packed, host->pack_weights());
  TROUPE_TRY_ASSIGN(engine, host->make_engine(std::move(packed), limits));
  host->driver_ = std::make_unique<engine::EngineDriver>(std::move(engine), host->team());
  return host;
}

std::unique_ptr<engine::EngineDriver> EngineHost::make_driver(engine::EngineLimits limits) {
  engine::EngineMaker maker = [this, limits](std::shared_ptr<const model::PackedWeights> first) {
    return make_engine(std::move(first), limits);
  };
  return std::make_unique<engine::EngineDriver>(std::move(maker), *team_);
}

core::Result<std::unique_ptr<engine::Engine>> EngineHost::make_engine(
    std::shared_ptr<const model::PackedWeights> weights, engine::EngineLimits limits) {
  return engine::Engine::create(std::move(weights), limits, eos_, text_ ? &*text_ : nullptr,
                                *team_);
}

core::Result<std::shared_ptr<const model::PackedWeights>> EngineHost::pack_weights() {
  TROUPE_TRY_ASSIGN(params, model::load_model(folder_));
  auto packed = std::make_shared<model::PackedWeights>(params->spec(), dtype_, team_->memory());
  team_->run([&](core::Team team) { packed->fill(team, *params, 0); });
  return std::shared_ptr<const model::PackedWeights>(std::move(packed));
}

core::Result<std::vector<std::int32_t>> EngineHost::encode(const std::string& prompt,
                                                           bool front) const {
  TROUPE_TRY_ASSIGN(ids, tokenizer_->ids(prompt, front));
  if (!ids.empty()) return ids;
  return core::fail(core::ErrorCode::kData, "the prompt has no tokens", "give some text");
}

core::Result<std::vector<std::int32_t>> EngineHost::encode_chat(
    const std::vector<text::ChatMessage>& messages, const text::ChatInputs& inputs) const {
  if (!chat_) return core::fail(core::ErrorCode::kConfig, no_chat_);
  text::RenderOptions options = text::RenderOptions::with(inputs, true);
  options.now_unix_s = static_cast<std::int64_t>(std::time(nullptr));
  TROUPE_TRY_ASSIGN(rendered, chat_->render(messages, options));
  TROUPE_TRY_ASSIGN(encoding, tokenizer_->encode(rendered));
  return std::move(encoding.ids);
}

}  // namespace troupe::cli
