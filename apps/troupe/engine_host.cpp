// Loads what generation needs, cheapest first, so that a wrong name fails at once.
#include "apps/troupe/engine_host.hpp"

#include "apps/troupe/end_tokens.hpp"
#include "runtime/model/packed.hpp"
#include "runtime/model/params.hpp"

#include <ctime>
#include <utility>

namespace troupe::app {

EngineHost::EngineHost(std::string name,
                       model::ModelSpec spec,
                       text::Tokenizer tokenizer,
                       std::unique_ptr<core::TeamRunner> team)
    : name_(std::move(name)),
      spec_(std::move(spec)),
      tokenizer_(tokenizer),
      text_(std::move(tokenizer)),
      team_(std::move(team)) {}

core::Result<std::unique_ptr<EngineHost>> EngineHost::prepare(const std::string& name,
                                                              const Placement& placement) {
  TROUPE_TRY_ASSIGN(folder, model::resolve_model(name));
  TROUPE_TRY_ASSIGN(spec, model::read_spec(folder));
  TROUPE_TRY_ASSIGN(tokenizer, text::Tokenizer::load(folder));
  std::vector<std::int32_t> eos = end_tokens(tokenizer, spec);
  TROUPE_TRY_ASSIGN(team, make_team(placement));
  if (spec.moe.any() && !team->memory().on_host()) {
    return core::fail(core::ErrorCode::kConfig,
                      "--device " + placement.device + ": the experts of " + spec.architecture +
                          " are computed on the processor only; give --device cpu");
  }
  std::unique_ptr<EngineHost> host(
      new EngineHost(name, std::move(spec), std::move(tokenizer), std::move(team)));
  host->eos_ = std::move(eos);
  host->folder_ = folder;
  if (auto chat = text::ChatTemplate::load(folder)) {
    host->chat_.emplace(std::move(*chat));
  } else {
    host->no_chat_ = chat.error().message;
  }
  return host;
}

core::Result<std::unique_ptr<EngineHost>> EngineHost::load(const std::string& name,
                                                           const Placement& placement,
                                                           engine::EngineLimits limits,
                                                           kernels::PanelDtype dtype) {
  TROUPE_TRY_ASSIGN(host, prepare(name, placement));
  host->dtype_ = dtype;
  TROUPE_TRY_ASSIGN(packed, host->pack_weights());
  TROUPE_TRY_ASSIGN(engine, host->make_engine(std::move(packed), limits));
  host->engine_ = std::move(engine);
  return host;
}

core::Result<std::unique_ptr<engine::Engine>> EngineHost::make_engine(
    std::shared_ptr<const model::PackedWeights> weights, engine::EngineLimits limits) {
  return engine::Engine::create(std::move(weights), limits, eos_, &text_, *team_);
}

core::Result<std::shared_ptr<const model::PackedWeights>> EngineHost::pack_weights() {
  TROUPE_TRY_ASSIGN(params, model::load_model(folder_));
  auto packed = std::make_shared<model::PackedWeights>(params->spec(), dtype_, team_->memory());
  team_->run([&](core::Team team) { packed->fill(team, *params, 0); });
  return std::shared_ptr<const model::PackedWeights>(std::move(packed));
}

core::Result<std::vector<std::int32_t>> EngineHost::encode(const std::string& prompt) const {
  TROUPE_TRY_ASSIGN(encoding, tokenizer_.encode(prompt, {.add_special = true}));
  if (encoding.ids.empty()) {
    return core::fail(core::ErrorCode::kData, "the prompt has no tokens; give some text");
  }
  return std::move(encoding.ids);
}

core::Result<std::vector<std::int32_t>> EngineHost::encode_chat(
    const std::vector<text::ChatMessage>& messages) const {
  if (!chat_) return core::fail(core::ErrorCode::kConfig, no_chat_);
  text::RenderOptions options;
  options.now_unix_s = static_cast<std::int64_t>(std::time(nullptr));
  TROUPE_TRY_ASSIGN(rendered, chat_->render(messages, options));
  TROUPE_TRY_ASSIGN(encoding, tokenizer_.encode(rendered));
  return std::move(encoding.ids);
}

}  // namespace troupe::app
