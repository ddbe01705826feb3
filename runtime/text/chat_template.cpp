// Implements ChatTemplate on the C interface of the Rust library: finds the template source, adds
// the special tokens as variables, and translates statuses into error codes.
#include "runtime/text/chat_template.hpp"

#include "runtime/parse/bounded_json.hpp"
#include "runtime/parse/written_numbers.hpp"
#include "runtime/text/message_forms.hpp"
#include "runtime/text/rust_edge.hpp"

#include <nlohmann/json.hpp>

#include <utility>

namespace troupe::text {

// Keeps the order of keys, because a template may print them.
using nlohmann::ordered_json;

struct ChatTemplate::State {
  std::shared_ptr<const troupe_text_template> handle;
  std::string source;
  std::string where;
  ordered_json variables = ordered_json::object();  // bos_token and the like
};

namespace {

constexpr std::size_t kTemplateSource_bytes_max = 1u << 20;
constexpr std::size_t kVariables_bytes_max = 1u << 20;

core::Failure template_failure(troupe_text_status status,
                               const RustString& why,
                               const std::string& where) {
  if (status == TROUPE_TEXT_RAISED) {
    return fail(ErrorCode::kInvalidArgument,
                where + ": the chat template refuses these messages: " + why.str());
  }
  if (status == TROUPE_TEXT_INVALID)
    return fail(ErrorCode::kInvalidArgument, where + ": " + why.str());
  return rust_failure(status, why, where);
}

// The special tokens and the caller's variables, which override them, as one JSON object.
core::Result<std::string> variables_text(const ordered_json& special, const std::string& given) {
  if (given.empty()) return special.dump();
  if (given.size() > kVariables_bytes_max) {
    return fail(ErrorCode::kInvalidArgument, "the variables of the chat template have more than " +
                                                 std::to_string(kVariables_bytes_max) + " bytes");
  }
  const auto parsed =
      parse::bounded_json<ordered_json>(given, {.numbers = parse::Numbers::kWholeIntegers});
  if (!parsed || !parsed->is_object()) {
    return fail(ErrorCode::kInvalidArgument,
                "the variables of the chat template must be a JSON object");
  }
  ordered_json all = special;
  all.update(*parsed);
  return parse::written_text(all);
}

}  // namespace

RenderOptions RenderOptions::with(const ChatInputs& inputs, bool add_generation_prompt) {
  RenderOptions options;
  options.add_generation_prompt = add_generation_prompt;
  options.tools_json = inputs.tools_json;
  options.variables_json = inputs.variables_json;
  return options;
}

std::string to_json(std::span<const ChatMessage> messages) {
  std::string list = "[";
  for (const ChatMessage& message : messages) {
    const ordered_json plain = {{"role", message.role}, {"content", message.content}};
    if (list.size() > 1) list += ',';
    // Invalid UTF-8 becomes U+FFFD rather than an exception.
    list += message.json.empty()
                ? plain.dump(-1, ' ', false, ordered_json::error_handler_t::replace)
                : message.json;
  }
  return list + ']';
}

core::Result<ChatTemplate> ChatTemplate::load(const std::filesystem::path& folder) {
  TROUPE_TRY_ASSIGN(special, read_special_tokens(folder));
  const auto file = folder / "chat_template.jinja";
  const auto source = read_file(file, kTemplateSource_bytes_max);
  if (source) return parse(*source, std::move(special), file.string());
  if (source.error().code != ErrorCode::kNotFound) return source.failure();
  TROUPE_TRY_ASSIGN(configured, read_config_template(folder));
  if (!configured) {
    return fail(ErrorCode::kNotFound,
                folder.string() +
                    " has no chat template: neither chat_template.jinja nor \"chat_template\" in "
                    "tokenizer_config.json. A base model has none: use completion prompts, or put "
                    "a chat_template.jinja into the folder");
  }
  return parse(*configured, std::move(special), (folder / "tokenizer_config.json").string());
}

core::Result<ChatTemplate> ChatTemplate::parse(std::string_view source,
                                               SpecialTokens special,
                                               std::string where) {
  troupe_text_template* raw = nullptr;
  RustString why;
  const auto status = troupe_text_template_new(view_of(source), &raw, why.out());
  if (status != TROUPE_TEXT_OK) return template_failure(status, why, where);

  auto state = std::make_shared<State>();
  state->handle = std::shared_ptr<const troupe_text_template>(raw, [](const auto* handle) {
    troupe_text_template_free(const_cast<troupe_text_template*>(handle));
  });
  for (const auto& [name, spelling] : kSpellings) {
    if (!(special.*spelling).empty()) state->variables[name] = special.*spelling;
  }
  state->source = source;
  state->where = std::move(where);
  return ChatTemplate(std::move(state));
}

core::Result<std::string> ChatTemplate::render(std::span<const ChatMessage> messages,
                                               const RenderOptions& options) const {
  return render(to_json(messages), options);
}

core::Result<std::string> ChatTemplate::render(std::string_view messages_json,
                                               const RenderOptions& options) const {
  return render_in_form(
      messages_json, [&](const std::string& messages) { return render_json(messages, options); });
}

core::Result<std::string> ChatTemplate::render_json(std::string_view messages_json,
                                                    const RenderOptions& options) const {
  TROUPE_TRY_ASSIGN(variables, variables_text(state_->variables, options.variables_json));
  const troupe_text_render request{view_of(messages_json), view_of(options.tools_json),
                                   view_of(variables), options.add_generation_prompt ? 1 : 0,
                                   options.now_unix_s};
  const troupe_text_limits limits{options.limits.fuel, options.limits.depth,
                                  options.limits.output_bytes};
  RustString text, why;
  const auto status =
      troupe_text_template_render(state_->handle.get(), &request, &limits, text.out(), why.out());
  if (status != TROUPE_TEXT_OK) return template_failure(status, why, state_->where);
  return text.str();
}

const std::string& ChatTemplate::source() const {
  return state_->source;
}

const std::string& ChatTemplate::where() const {
  return state_->where;
}

core::Result<std::optional<ChatTemplate>> load_template(const std::filesystem::path& folder,
                                                        bool needed) {
  auto loaded = ChatTemplate::load(folder);
  if (loaded) return std::optional<ChatTemplate>(std::move(*loaded));
  if (needed) return loaded.failure();
  return std::optional<ChatTemplate>();
}

}  // namespace troupe::text
