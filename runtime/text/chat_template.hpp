// The chat template of a model folder. Turns a list of messages into the text format that the model
// was trained on; the output is byte for byte that of transformers' apply_chat_template. Immutable
// once loaded; any number of threads may render at once. A template is untrusted code: RenderLimits
// bound each rendering, and an error names the limit that was hit.
#pragma once

#include "runtime/core/result.hpp"
#include "runtime/text/limits.hpp"
#include "runtime/text/special_tokens.hpp"

#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>

struct troupe_text_template;

namespace troupe::text {

struct ChatMessage {
  std::string role;
  std::string content;  // its text; parts are joined
  // The whole message as a JSON object, for the template; empty: role and content are all of it.
  std::string json = {};
  std::optional<bool> weight = {};  // whether the row says that it is learned, or not

  friend bool operator==(const ChatMessage&, const ChatMessage&) = default;
};

// What a row or request gives to the template besides its messages.
struct ChatInputs {
  std::string tools_json;      // a JSON array; empty for none
  std::string variables_json;  // a JSON object; empty for none

  bool any() const { return !tools_json.empty() || !variables_json.empty(); }
  friend bool operator==(const ChatInputs&, const ChatInputs&) = default;
};

// What each limit counts: troupe_text_limits in troupe_text.h.
struct RenderLimits {
  std::uint64_t fuel = limits::kTemplateFuel_max;
  std::uint64_t depth = limits::kTemplateDepth_max;
  std::uint64_t output_bytes = limits::kTemplateOutput_bytes_max;
};

struct RenderOptions {
  bool add_generation_prompt = true;
  std::string tools_json;       // a JSON array; empty for none
  std::string variables_json;   // a JSON object of further variables, which override bos_token and
                                // the like; empty for none
  std::int64_t now_unix_s = 0;  // the time that strftime_now formats, in the local time zone
  RenderLimits limits;

  static RenderOptions with(const ChatInputs& inputs, bool add_generation_prompt);
};

// The messages as the JSON array that a template gets.
std::string to_json(std::span<const ChatMessage> messages);

class ChatTemplate {
 public:
  // Reads chat_template.jinja, else "chat_template" of tokenizer_config.json. kNotFound, with
  // advice, if the folder has neither; kData if the template does not parse.
  static core::Result<ChatTemplate> load(const std::filesystem::path& folder);

  // Parses a Jinja source. `where` names it in errors.
  static core::Result<ChatTemplate> parse(std::string_view source,
                                          SpecialTokens special,
                                          std::string where);

  // Renders messages in the form that the template reads (message_forms.hpp). kInvalidArgument for
  // malformed messages or options, and for messages that the template refuses by raise_exception;
  // kData if the template itself fails or hits a limit, which the error names.
  core::Result<std::string> render(std::span<const ChatMessage> messages,
                                   const RenderOptions& options = {}) const;
  // Renders messages given as a JSON array.
  core::Result<std::string> render(std::string_view messages_json,
                                   const RenderOptions& options = {}) const;

  // Renders the JSON array as it is, without converting messages.
  core::Result<std::string> render_json(std::string_view messages_json,
                                        const RenderOptions& options = {}) const;

  const std::string& source() const;
  const std::string& where() const;  // the file that it is from

 private:
  struct State;
  explicit ChatTemplate(std::shared_ptr<const State> state) : state_(std::move(state)) {}

  std::shared_ptr<const State> state_;
};

// Loads the template of a model folder. If it is not `needed`, a missing or unreadable template
// gives nullopt; otherwise the errors are those of ChatTemplate::load.
core::Result<std::optional<ChatTemplate>> load_template(const std::filesystem::path& folder,
                                                        bool needed);

}  // namespace troupe::text
