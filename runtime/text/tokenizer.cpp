#include "runtime/text/tokenizer.hpp"

#include "runtime/text/limits.hpp"
#include "runtime/text/rust_edge.hpp"

#include <algorithm>

namespace troupe::text {

namespace {

// Copies the result of a call and frees the original.
Encoding take(troupe_text_encoding& raw) {
  Encoding encoding{{raw.ids, raw.ids + raw.size}, {}};
  encoding.offsets.reserve(raw.size);
  for (std::size_t i = 0; i < raw.size; ++i)
    encoding.offsets.push_back({raw.offsets[2 * i], raw.offsets[2 * i + 1]});
  troupe_text_encoding_free(&raw);
  return encoding;
}

std::optional<TokenId> find(const troupe_text_tokenizer* handle, std::string_view token) {
  std::uint32_t id = 0;
  if (troupe_text_token_to_id(handle, view_of(token), &id) == 0) return std::nullopt;
  return static_cast<TokenId>(id);
}

// The id of a special token: that of its spelling if it has one, else the given id. kData if the
// vocabulary lacks the token.
core::Result<std::optional<TokenId>> role_id(const troupe_text_tokenizer* handle,
                                             std::string_view where,
                                             const char* key,
                                             const std::string& spelling,
                                             TokenId given) {
  using Found = std::optional<TokenId>;
  if (!spelling.empty()) {
    const Found id = find(handle, spelling);
    if (id) return id;
    return fail(ErrorCode::kData,
                std::string(where) + ": the " + key + " \"" + spelling +
                    "\" is not in the vocabulary of tokenizer.json",
                std::string("correct \"") + key + "\" in tokenizer_config.json");
  }
  return given >= 0 ? Found(given) : Found();
}

// The ids of a text, with what the post-processor adds or without.
std::vector<TokenId> encoded_ids(const troupe_text_tokenizer* handle,
                                 std::string_view text,
                                 bool all) {
  troupe_text_encoding raw{nullptr, nullptr, 0};
  RustString why;
  const auto status = troupe_text_encode(handle, view_of(text), all ? 1 : 0, &raw, why.out());
  return status == TROUPE_TEXT_OK ? take(raw).ids : std::vector<TokenId>();
}

// What the post-processor puts in front of a text, whatever the text: it is read off a short one.
std::vector<TokenId> front_of(const troupe_text_tokenizer* handle) {
  for (const std::string_view text : {"a", "0", "the"}) {
    const std::vector<TokenId> bare = encoded_ids(handle, text, false);
    if (bare.empty()) continue;
    const std::vector<TokenId> whole = encoded_ids(handle, text, true);
    const auto at = std::search(whole.begin(), whole.end(), bare.begin(), bare.end());
    return at == whole.end() ? std::vector<TokenId>() : std::vector<TokenId>(whole.begin(), at);
  }
  return {};
}

}  // namespace

core::Result<Tokenizer> Tokenizer::load(const std::filesystem::path& folder) {
  const auto path = folder / "tokenizer.json";
  auto json = read_file(path, kTokenizerJson_bytes_max);
  if (!json) {
    if (json.error().code != ErrorCode::kNotFound) return json.failure();
    return fail(ErrorCode::kNotFound,
                "there is no " + path.string() +
                    ": a model folder needs the tokenizer.json that `save_pretrained` of a fast "
                    "tokenizer writes (tokenizer.model and vocab.txt are not read)");
  }
  TROUPE_TRY_ASSIGN(special, read_special_tokens(folder));
  return parse(*json, std::move(special), folder.string());
}

core::Result<Tokenizer> Tokenizer::parse(std::string_view json,
                                         SpecialTokens special,
                                         std::string where) {
  troupe_text_tokenizer* raw = nullptr;
  RustString why;
  const troupe_text_tokenizer_limits bounds{
      limits::kTokenizerGrowth_max,   limits::kTokenizerText_bytes_max,
      limits::kDecodedText_bytes_max, limits::kTokenizerLiteral_bytes_max,
      limits::kTokenizerSteps_max,    limits::kTokenizerSpecialIds_max};
  const auto status = troupe_text_tokenizer_new(view_of(json), &bounds, &raw, why.out());
  if (status != TROUPE_TEXT_OK) return rust_failure(status, why, where);

  auto state = std::make_shared<State>();
  state->handle = std::shared_ptr<const troupe_text_tokenizer>(raw, [](const auto* handle) {
    troupe_text_tokenizer_free(const_cast<troupe_text_tokenizer*>(handle));
  });
  TROUPE_TRY_ASSIGN(bos, role_id(raw, where, "bos_token", special.bos, special.bos_id));
  TROUPE_TRY(role_id(raw, where, "pad_token", special.pad, special.pad_id));
  TROUPE_TRY(role_id(raw, where, "unk_token", special.unk, -1));
  TROUPE_TRY_ASSIGN(eos, role_id(raw, where, "eos_token", special.eos, -1));
  state->bos = bos;
  if (eos) state->eos.push_back(*eos);
  for (const TokenId id : special.eos_ids) {
    if (std::find(state->eos.begin(), state->eos.end(), id) == state->eos.end())
      state->eos.push_back(id);
  }
  state->front = front_of(raw);
  state->special = std::move(special);
  state->where = std::move(where);
  return Tokenizer(std::move(state));
}

core::Result<Encoding> Tokenizer::encode(std::string_view text, EncodeOptions options) const {
  troupe_text_encoding raw{nullptr, nullptr, 0};
  RustString why;
  const auto status = troupe_text_encode(state_->handle.get(), view_of(text),
                                         options.add_special ? 1 : 0, &raw, why.out());
  if (status != TROUPE_TEXT_OK) return rust_failure(status, why, "");
  return take(raw);
}

core::Result<std::vector<TokenId>> Tokenizer::ids(std::string_view text, bool front) const {
  TROUPE_TRY_ASSIGN(encoded, encode(text));
  if (!front || state_->front.empty()) return std::move(encoded.ids);
  std::vector<TokenId> all = state_->front;
  all.insert(all.end(), encoded.ids.begin(), encoded.ids.end());
  return all;
}

core::Result<TokenId> Tokenizer::single(std::string_view text) const {
  TROUPE_TRY_ASSIGN(encoded, encode(text));
  if (encoded.ids.size() == 1) return encoded.ids[0];
  return core::fail(core::ErrorCode::kConfig,
                    "'" + std::string(text) + "' is " + std::to_string(encoded.ids.size()) +
                        " tokens of the tokenizer of " + where() + ", not one");
}

core::Result<std::string> Tokenizer::decode(std::span<const TokenId> ids, bool skip_special) const {
  // A negative id becomes one above any vocabulary, so it is skipped like any unknown id.
  const std::vector<std::uint32_t> raw(ids.begin(), ids.end());
  RustString text, why;
  const auto status = troupe_text_decode(state_->handle.get(), raw.data(), raw.size(),
                                         skip_special ? 1 : 0, text.out(), why.out());
  if (status != TROUPE_TEXT_OK) return rust_failure(status, why, "");
  return text.str();
}

std::optional<std::string> Tokenizer::id_to_token(TokenId id) const {
  RustString token;
  const auto* handle = state_->handle.get();
  if (troupe_text_id_to_token(handle, static_cast<std::uint32_t>(id), token.out()) == 0)
    return std::nullopt;
  return token.str();
}

std::optional<std::string> Tokenizer::bytes_of(TokenId id) const {
  RustString bytes;
  const auto* handle = state_->handle.get();
  if (troupe_text_token_bytes(handle, static_cast<std::uint32_t>(id), bytes.out()) == 0)
    return std::nullopt;
  return bytes.str();
}

bool Tokenizer::is_special(TokenId id) const {
  return troupe_text_is_special(state_->handle.get(), static_cast<std::uint32_t>(id)) != 0;
}

std::size_t Tokenizer::id_limit() const {
  return troupe_text_id_limit(state_->handle.get());
}

bool Tokenizer::is_eos(TokenId id) const {
  return std::find(state_->eos.begin(), state_->eos.end(), id) != state_->eos.end();
}

}  // namespace troupe::text
