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
  TROUPE_TRY_ASSIGN(folder, trained_folder(config));
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
                      const config::TrainConfig& form,
                      actors::environment::SessionAddress& address) {
  if (form.env.open) return {};
  const std::string flag = "--env.listen_key";
  if (!form.env.listen_key.empty()) {
    TROUPE_TRY_SET(address.key, actors::read_key(form.env.listen_key, kKeyOf, flag));
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

Result<actors::environment::EnvironmentParts> make_environment(const config::TrainConfig& config,
                                                               const config::TrainConfig& form) {
  const auto& own = form.env;
  actors::environment::EnvironmentParts parts;
  TROUPE_TRY_SET(parts.model, policy_model(config));
  parts.take(config.env);
  parts.settings.take(config.env);
  if (!own.command.empty()) {
    actors::environment::AgentProgramOptions options;
    options.take(own);
    options.time_limit = parts.settings.episode_timeout_s;
    options.say = &cli::warn;
    TROUPE_TRY_SET(parts.program, actors::environment::make_agent_program(std::move(options)));
  } else if (!own.openenv.empty()) {
    actors::environment::OpenEnvOptions options;
    options.take(own);
    TROUPE_TRY_SET(parts.environment,
                   actors::environment::make_openenv_environment(std::move(options)));
  } else if (!own.listen.empty()) {
    TROUPE_TRY_ASSIGN(place, parse_address(own.listen, "--env.listen"));
    parts.address = actors::environment::SessionAddress{place.first, place.second, ""};
    TROUPE_TRY(give_key(config, form, *parts.address));
  } else {
    actors::environment::PythonEnvironmentOptions options;
    options.take(own);
    options.say = &cli::warn;
    TROUPE_TRY_SET(parts.environment,
                   actors::environment::make_python_environment(std::move(options)));
  }
  parts.settings.reward_timeout = config::Seconds(config.session.reward_timeout_s);
  parts.settings.needs_reward = std::ranges::any_of(
      reward_parts(config),
      [](const RewardPart& part) { return part.kind == RewardPart::Kind::kFeedback; });
  parts.settings.history =
      config.session.history == "keep" ? sessions::History::kKeep : sessions::History::kTemplate;
  parts.settings.now_unix_s = kTemplateDate;
  parts.settings.front = config.data.add_special_tokens;
  parts.note = &cli::warn;
  return parts;
}

}  // namespace troupe::session
