#include "apps/troupe/batch/prompt_flags.hpp"

#include "actors/reward/model_reward.hpp"
#include "runtime/config/read.hpp"
#include "runtime/model/params.hpp"

namespace troupe::app {

void PromptFlags::add_to(std::vector<cli::Flag>& flags) {
  flags.push_back({"--data", &data, "rows: files, patterns or folders, separated by commas"});
  flags.push_back({"--input-key,--data.input_key", &input_key, "column of the prompt"});
  flags.push_back({"--label-key,--data.label_key", &label_key, "column of the expected answer"});
  flags.push_back({"--chat,--apply-chat-template,--data.apply_chat_template", &chat,
                   "apply the model's chat template"});
  flags.push_back({"--add-special-tokens,--data.add_special_tokens", &special,
                   "plain text begins with what the tokenizer puts in front of a text (BOS)"});
  flags.push_back({"--input-template,--data.input_template", &input_template,
                   "text around a prompt, which replaces {}; \\n is a newline"});
  flags.push_back({"--max-samples,--data.max_samples", &samples_max,
                   "only the first rows of the data; 0 = all", false, 0, 1e12});
}

Result<actors::data::DatasetPromptsOptions> PromptFlags::options() const {
  actors::data::DatasetPromptsOptions options;
  options.files = data;
  options.columns.input_key = input_key;
  options.columns.label_key = label_key;
  options.columns.apply_chat_template = chat;
  options.columns.add_special_tokens = special;
  options.columns.input_template = config::unescape_flag(input_template);
  options.columns.max_samples = static_cast<std::uint64_t>(samples_max);
  options.shuffle = false;
  if (!input_template.empty() && chat) {
    return fail(ErrorCode::kConfig, "--input-template cannot be combined with --chat",
                "leave one out");
  }
  if (!input_template.empty() && input_template.find("{}") == std::string::npos)
    return fail(ErrorCode::kConfig, "--input-template has no {} where the prompt would go");
  return options;
}

Result<std::unique_ptr<actors::reward::RewardSource>> PromptFlags::model_source(
    const std::string& name, bool stored, core::TeamRunner& team) const {
  TROUPE_TRY_ASSIGN(prompts, options());
  TROUPE_TRY_ASSIGN(folder, model::resolve_model(name));
  return actors::reward::make_model_reward(
      {.folder = folder, .normalise = stored, .columns = prompts.columns}, team);
}

std::vector<std::pair<std::string, std::string>> PromptFlags::settings() const {
  return {{"--input-key", input_key},
          {"--label-key", label_key},
          {"--chat", chat ? "true" : "false"},
          {"--input-template", input_template},
          {"--max-samples", std::to_string(samples_max)}};
}

}  // namespace troupe::app
