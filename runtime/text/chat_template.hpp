// The chat template of a model folder: a list of messages becomes the text the model was trained
// on, byte for byte what transformers' apply_chat_template gives. Immutable once loaded; any number
// of threads may render at once. A template is foreign code: each rendering is bounded by
// RenderLimits and ends with an error that names the one it met.
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
  std::string content;
};

struct RenderLimits {
  std::uint64_t fuel = limits::kTemplateFuel_max;
  std::uint64_t depth = limits::kTemplateDepth_max;
  std::uint64_t output_bytes = limits::kTemplateOutput_bytes_max;
};

struct RenderOptions {
  bool add_generation_prompt = true;
  std::string tools_json;       // a JSON array; empty for none
  std::string variables_json;   // a JSON object of further variables, which go before bos_token and
                                // the like; empty for none
  std::int64_t now_unix_s = 0;  // what strftime_now formats, in the local time zone
  RenderLimits limits;
};

// The messages as the JSON array that templates see.
std::string to_json(std::span<const ChatMessage> messages);

class ChatTemplate {
 public:
  // chat_template.jinja, else "chat_template" of tokenizer_config.json. kNotFound, with what to do,
  // where the folder has neither; kData where it does not parse.
  static core::Result<ChatTemplate> load(const std::filesystem::path& folder);

  // From a Jinja source. `where` names it in errors.
  static core::Result<ChatTemplate> parse(std::string_view source,
                                          SpecialTokens special,
                                          std::string where);

  // kInvalidArgument for messages the template refuses (its raise_exception) or that are malformed;
  // kData where the template itself fails or meets a limit, which the message names.
  core::Result<std::string> render(std::span<const ChatMessage> messages,
                                   const RenderOptions& options = {}) const;

  // The same for messages with further fields (tool calls, content parts), as a JSON array.
  core::Result<std::string> render_json(std::string_view messages_json,
                                        const RenderOptions& options = {}) const;

  const std::string& source() const;

 private:
  struct State;
  explicit ChatTemplate(std::shared_ptr<const State> state) : state_(std::move(state)) {}

  std::shared_ptr<const State> state_;
};

// The template of a model's folder. Where none is needed, one that is missing or cannot be read is
// none; else the error is that of ChatTemplate::load.
core::Result<std::optional<ChatTemplate>> load_template(const std::filesystem::path& folder,
                                                        bool needed);

}  // namespace troupe::text
