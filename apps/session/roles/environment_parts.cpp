#include "apps/session/roles/environment_parts.hpp"

#include "actors/environment/agent_program.hpp"
#include "actors/environment/openenv_environment.hpp"
#include "actors/environment/python_environment.hpp"
#include "actors/protocol/key_place.hpp"
#include "apps/cli/words.hpp"
#include "apps/session/node/join_flags.hpp"
#include "apps/session/roles/model_roles.hpp"
#include "apps/session/roles/run_settings.hpp"
#include "runtime/model/spec.hpp"
#include "runtime/net/gateway_auth.hpp"
#include "runtime/text/chat_template.hpp"
#include "runtime/text/tokenizer.hpp"

#include <algorithm>

namespace troupe::session {
namespace {

// Templates that write a date write this one, so that a run's prompts do not depend on the day:
// 2024-07-26, the one of Llama's own examples.
constexpr std::int64_t kTemplateDate = 1'721'952'000;

Result<std::shared_ptr<const dialects::ServedModel>> policy_model(
    const config::TrainConfig& config) {
  TROUPE_TRY_ASSIGN(folder, model::resolve_model(config.actor.model_name_or_path));
  TROUPE_TRY_ASSIGN(spec, model::read_spec(folder));
  auto made = std::make_shared<dialects::ServedModel>();
  made->names = {"policy", config.actor.model_name_or_path};
  made->root = folder.string();
  TROUPE_TRY_SET(made->tokenizer, text::Tokenizer::load(folder));
  auto chat = text::ChatTemplate::load(folder);
  if (chat) {
    made->chat = std::move(*chat);
    made->tool_format = dialects::tool_format_of_template(made->chat->source());
  } else {
    made->no_chat = chat.error().message;
  }
  made->vocab = spec.vocab;
  made->context = std::min<std::int64_t>(spec.context, config.train.micro_tokens_max);
  made->positions_max = made->context;
  made->token_bytes_max = dialects::longest_token_bytes(*made->tokenizer);
  made->guides = dialects::guides_of(folder, made->vocab);
  return std::shared_ptr<const dialects::ServedModel>(std::move(made));
}

constexpr const char* kKeyOf = "the key of sessions";

// The key that opening a session wants: the one that the configuration names, else one of the run,
// in a file that only its user can read.
Result<void> give_key(const config::TrainConfig& config,
                      actors::environment::SessionAddress& address) {
  if (config.env.open) return {};
  const std::string flag = "--env.listen_key";
  if (!config.env.listen_key.empty()) {
    TROUPE_TRY_SET(address.key, actors::read_key(config.env.listen_key, kKeyOf, flag));
    return {};
  }
  std::error_code error;
  const auto file = std::filesystem::absolute(config.run.path, error) / "listen_key";
  if (!std::filesystem::exists(file, error)) {
    auto made = net::create_token_file(file);
    if (!made) return core::fail(made.error().within(flag + " is not set"));
  }
  address.key_file = file.string();
  TROUPE_TRY_SET(address.key, actors::read_key("file:" + file.string(), kKeyOf, flag));
  return {};
}

}  // namespace

Result<actors::environment::EnvironmentParts> make_environment(const config::TrainConfig& config) {
  actors::environment::EnvironmentParts parts;
  TROUPE_TRY_SET(parts.model, policy_model(config));
  if (!config.env.command.empty()) {
    actors::environment::AgentProgramOptions options;
    options.command = config.env.command;
    options.confined = config.env.confined;
    options.time_limit = seconds_of(config.env.episode_timeout_s);
    options.say = &cli::warn;
    TROUPE_TRY_SET(parts.program, actors::environment::make_agent_program(std::move(options)));
  } else if (!config.env.openenv.empty()) {
    actors::environment::OpenEnvOptions options;
    options.url = config.env.openenv;
    options.action = config.env.action;
    TROUPE_TRY_SET(parts.environment,
                   actors::environment::make_openenv_environment(std::move(options)));
  } else if (!config.env.listen.empty()) {
    TROUPE_TRY_ASSIGN(place, parse_address(config.env.listen, "--env.listen"));
    parts.address = actors::environment::SessionAddress{place.first, place.second, ""};
    TROUPE_TRY(give_key(config, *parts.address));
  } else {
    actors::environment::PythonEnvironmentOptions options;
    options.file = config.env.python;
    options.workers = static_cast<std::size_t>(config.env.workers);
    options.interpreter = config.env.interpreter;
    options.say = &cli::warn;
    TROUPE_TRY_SET(parts.environment,
                   actors::environment::make_python_environment(std::move(options)));
  }
  parts.settings.turns_max = static_cast<std::int32_t>(config.env.turns_max);
  parts.settings.tokens_max = config.env.tokens_max;
  parts.settings.turn_limit = seconds_of(config.env.turn_timeout_s);
  parts.settings.episode_limit = seconds_of(config.env.episode_timeout_s);
  parts.settings.reward_timeout = seconds_of(config.session.reward_timeout_s);
  parts.settings.needs_reward = std::ranges::any_of(
      reward_parts(config),
      [](const RewardPart& part) { return part.kind == RewardPart::Kind::kFeedback; });
  parts.settings.reward_by_turn = config.env.turn_rewards;
  parts.settings.history =
      config.session.history == "keep" ? sessions::History::kKeep : sessions::History::kTemplate;
  parts.settings.now_unix_s = kTemplateDate;
  parts.settings.front = config.data.add_special_tokens;
  parts.episodes_max = static_cast<std::size_t>(config.env.episodes_max);
  parts.note = &cli::warn;
  return parts;
}

}  // namespace troupe::session
