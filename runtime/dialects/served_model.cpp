#include "runtime/dialects/served_model.hpp"

#include "runtime/dialects/tools/forced_call.hpp"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <ctime>

namespace troupe::dialects {

namespace {

using Tokens = std::vector<std::int32_t>;

ApiError bad(std::string param, std::string message) {
  return {.message = std::move(message), .param = std::move(param)};
}

// The error for text sent to a server that was started without a tokenizer.
ApiError no_text(const std::string& param) {
  return bad(param,
             "this server has no tokenizer (--skip-tokenizer-init); give token ids, as "
             "\"prompt\": [1, 2, 3] of /v1/completions");
}

ApiError too_long(const ServedModel& model, const std::string& what) {
  return {
      .message = "this model's context holds " + std::to_string(model.context) + " tokens; " + what,
      .param = "prompt",
      .code = "context_length_exceeded"};
}

std::variant<Tokens, ApiError> encode_chat(const ServedModel& model, const Dialogue& dialogue) {
  text::RenderOptions options;
  options.now_unix_s = static_cast<std::int64_t>(std::time(nullptr));
  options.add_generation_prompt = dialogue.add_generation_prompt;
  options.tools_json = dialogue.tools_json;
  options.variables_json = dialogue.template_variables_json;
  auto rendered = render_chat(model, dialogue.messages_json, options);
  if (auto* error = std::get_if<ApiError>(&rendered)) return *error;
  return encode_text(model, std::get<std::string>(rendered), dialogue.add_special_tokens);
}

std::optional<ApiError> check_tokens(const ServedModel& model, const Tokens& tokens) {
  if (tokens.empty()) return bad("prompt", "a prompt is empty; at least one token is needed");
  for (const std::int32_t token : tokens) {
    if (token < 0 || token >= model.vocab) {
      return bad("prompt", "token id " + std::to_string(token) + " is outside the vocabulary of " +
                               std::to_string(model.vocab));
    }
  }
  return std::nullopt;
}

// How many tokens may follow a prompt of `prompt` tokens. A request without max_tokens gets what
// the context and the KV memory leave.
std::variant<std::int32_t, ApiError> room_for(const ServedModel& model,
                                              const GenerateRequest& request,
                                              std::size_t prompt) {
  const auto size = static_cast<std::int64_t>(prompt);
  if (!request.max_tokens) {
    const std::int64_t left = std::min(model.context, model.positions_max) - size;
    if (left < 1) return too_long(model, "the prompt alone has " + std::to_string(size));
    return static_cast<std::int32_t>(left);
  }
  const std::int64_t wanted = std::max<std::int64_t>(*request.max_tokens, 1);
  if (size + wanted > model.context) {
    return too_long(model, "the prompt has " + std::to_string(size) + " and max_tokens is " +
                               std::to_string(*request.max_tokens));
  }
  return static_cast<std::int32_t>(wanted);
}

// The guide of the request's responses; null if any text will do.
std::variant<std::shared_ptr<const engine::TokenGuide>, ApiError> guide_for(
    const ServedModel& model, const GenerateRequest& request) {
  if ((!request.grammar && !request.must_call) || request.scores_only())
    return std::shared_ptr<const engine::TokenGuide>();
  const std::string field = request.must_call ? "tool_choice" : request.grammar_field;
  if (!model.tokenizer) return no_text(field);
  if (!model.guides) return bad(field, "is not supported by this server: it guides no output");
  std::optional<guide::Grammar> grammar = request.grammar;
  if (request.must_call) {
    auto made = forced_call(request, model.tool_format, *model.tokenizer);
    if (auto* error = std::get_if<ApiError>(&made)) return *error;
    grammar = std::move(std::get<guide::Grammar>(made));
  }
  auto made = model.guides->make(*grammar);
  if (made) return std::move(*made);
  ApiError error = api_error_of(made.error());
  error.param = field;
  return error;
}

}  // namespace

bool ServedModel::has_name(const std::string& name) const {
  return std::find(names.begin(), names.end(), name) != names.end();
}

std::optional<ApiError> check_model_name(const ServedModel& model, const std::string& name) {
  if (model.has_name(name)) return std::nullopt;
  return ApiError{.status = 404,
                  .message = "there is no model '" + name + "' here; this server has '" +
                             model.names.front() + "'",
                  .param = "model",
                  .code = "model_not_found"};
}

nlohmann::ordered_json model_card(const ServedModel& model, const std::string& name) {
  return {{"id", name},
          {"object", "model"},
          {"created", model.created_s},
          {"owned_by", "troupe"},
          {"root", model.root},
          {"parent", nullptr},
          {"max_model_len", model.context}};
}

nlohmann::ordered_json model_list(const ServedModel& model) {
  nlohmann::ordered_json list = {{"object", "list"}, {"data", nlohmann::ordered_json::array()}};
  for (const std::string& name : model.names)
    list["data"].push_back(model_card(model, name));
  return list;
}

std::shared_ptr<guide::GuideMaker> guides_of(const std::filesystem::path& folder,
                                             std::int64_t vocab) {
  return std::make_shared<guide::GuideMaker>(
      [file = folder / "tokenizer.json"] {
        return text::read_file(file, text::kTokenizerJson_bytes_max);
      },
      vocab);
}

std::size_t longest_token_bytes(const text::Tokenizer& tokenizer) {
  std::size_t longest = 1;
  for (std::size_t id = 0; id < tokenizer.id_limit(); ++id) {
    const auto token = tokenizer.id_to_token(static_cast<text::TokenId>(id));
    if (token) longest = std::max(longest, token->size());
  }
  return longest;
}

std::variant<std::string, ApiError> render_chat(const ServedModel& model,
                                                const std::string& messages_json,
                                                const text::RenderOptions& options) {
  if (!model.tokenizer) return no_text("messages");
  if (!model.chat) {
    return bad("messages", "this model has no chat template: " + model.no_chat +
                               "; use /v1/completions, or serve it with --chat-template FILE");
  }
  auto rendered = model.chat->render(messages_json, options);
  if (!rendered) return bad("messages", rendered.error().message);
  return std::move(*rendered);
}

std::variant<Tokens, ApiError> encode_text(const ServedModel& model,
                                           const std::string& text,
                                           bool add_special) {
  if (!model.tokenizer) return no_text("prompt");
  // A text that can never fit into the context is refused without tokenizing it.
  const auto most = static_cast<std::size_t>(model.context) * model.token_bytes_max;
  if (text.size() > most)
    return too_long(model, "a prompt of " + std::to_string(text.size()) + " bytes has more");
  auto ids = model.tokenizer->ids(text, add_special);
  if (!ids) return api_error_of(ids.error());
  return std::move(*ids);
}

std::variant<Encoded, ApiError> fit_prompts(const ServedModel& model,
                                            const GenerateRequest& request,
                                            std::vector<EncodedPrompt> prompts) {
  if (request.sampling.routed_experts && model.moe_layers == 0)
    return bad("return_routed_experts", "this model has no experts");
  Encoded out;
  out.prompts = std::move(prompts);
  for (const EncodedPrompt& prompt : out.prompts) {
    if (auto error = check_tokens(model, prompt.tokens)) return *error;
    auto room = room_for(model, request, prompt.tokens.size());
    if (auto* error = std::get_if<ApiError>(&room)) return *error;
    out.max_new_tokens.push_back(std::get<std::int32_t>(room));
  }
  auto guide = guide_for(model, request);
  if (auto* error = std::get_if<ApiError>(&guide)) return *error;
  out.guide = std::move(std::get<0>(guide));
  return out;
}

std::variant<std::vector<EncodedPrompt>, ApiError> encode_prompts(const ServedModel& model,
                                                                  const GenerateRequest& request) {
  std::vector<EncodedPrompt> out;
  if (request.is_dialogue()) {
    auto tokens = encode_chat(model, request);
    if (auto* error = std::get_if<ApiError>(&tokens)) return *error;
    out.push_back({std::move(std::get<Tokens>(tokens)), ""});
  }
  for (const Prompt& prompt : request.prompts) {
    EncodedPrompt made;
    if (const auto* given = std::get_if<std::string>(&prompt)) {
      auto tokens = encode_text(model, *given, request.add_special_tokens);
      if (auto* error = std::get_if<ApiError>(&tokens)) return *error;
      made.tokens = std::move(std::get<Tokens>(tokens));
      if (request.echo) made.text = *given;
    } else {
      made.tokens = std::get<Tokens>(prompt);
      if (request.echo && model.tokenizer) {
        auto text = model.tokenizer->decode(made.tokens, false);
        if (!text) return api_error_of(text.error());
        made.text = std::move(*text);
      }
    }
    out.push_back(std::move(made));
  }
  return out;
}

std::variant<Encoded, ApiError> encode_request(const ServedModel& model,
                                               const GenerateRequest& request) {
  auto prompts = encode_prompts(model, request);
  if (auto* error = std::get_if<ApiError>(&prompts)) return *error;
  return fit_prompts(model, request, std::move(std::get<0>(prompts)));
}

std::variant<std::vector<std::int32_t>, ApiError> encode_tokenize(const ServedModel& model,
                                                                  const TokenizeRequest& request) {
  if (request.prompt) return encode_text(model, *request.prompt, request.add_special_tokens);
  return encode_chat(model, request);
}

}  // namespace troupe::dialects
