#include "runtime/text/special_tokens.hpp"

#include "runtime/parse/bounded_json.hpp"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <fstream>
#include <limits>

namespace troupe::text {
namespace {

using nlohmann::json;

constexpr std::size_t kConfigFile_bytes_max = 64u << 20;
constexpr int kConfigNesting_max = 128;  // freeing and traversing a value recurse

// Reads a file as a JSON object; a missing file gives an empty one.
core::Result<json> read_object(const std::filesystem::path& path) {
  const auto text = read_file(path, kConfigFile_bytes_max);
  if (!text && text.error().code == ErrorCode::kNotFound) return json::object();
  if (!text) return text.failure();
  auto value = parse::bounded_json<json>(*text, {.depth_max = kConfigNesting_max});
  if (!value) return fail(ErrorCode::kData, path.string() + " " + value.error().message);
  if (value->is_object()) return value;
  return fail(ErrorCode::kData, path.string() + " must hold a JSON object");
}

core::Failure bad_key(const std::filesystem::path& path, const char* key, const char* wanted) {
  return fail(ErrorCode::kData, path.string() + ": \"" + key + "\" must be " + wanted);
}

// A token's spelling: a string, or an object with "content". Empty if the key is null or absent.
core::Result<std::string> spelling(const std::filesystem::path& path,
                                   const json& file,
                                   const char* key) {
  const auto found = file.find(key);
  if (found == file.end() || found->is_null()) return std::string();
  if (found->is_string()) return found->get<std::string>();
  if (found->is_object()) {
    const auto content = found->find("content");
    if (content != found->end() && content->is_string()) return content->get<std::string>();
  }
  return bad_key(path, key, "a string or an object with a \"content\" string");
}

core::Result<std::vector<TokenId>> ids_of(const std::filesystem::path& path,
                                          const json& file,
                                          const char* key) {
  std::vector<TokenId> ids;
  const auto found = file.find(key);
  if (found == file.end() || found->is_null()) return ids;
  const json list = found->is_array() ? *found : json::array({*found});
  for (const json& item : list) {
    if (!item.is_number_integer() || item.get<double>() < 0 ||
        item.get<double>() > std::numeric_limits<TokenId>::max()) {
      return bad_key(path, key, "a token id or a list of token ids");
    }
    ids.push_back(item.get<TokenId>());
  }
  return ids;
}

core::Result<void> add_spellings(const std::filesystem::path& path, SpecialTokens& tokens) {
  TROUPE_TRY_ASSIGN(file, read_object(path));
  for (const auto& [key, member] : kSpellings) {
    TROUPE_TRY_ASSIGN(found, spelling(path, file, key));
    if ((tokens.*member).empty()) tokens.*member = std::move(found);
  }
  return {};
}

core::Result<void> add_ids(const std::filesystem::path& path, SpecialTokens& tokens) {
  TROUPE_TRY_ASSIGN(file, read_object(path));
  TROUPE_TRY_ASSIGN(bos, ids_of(path, file, "bos_token_id"));
  TROUPE_TRY_ASSIGN(pad, ids_of(path, file, "pad_token_id"));
  TROUPE_TRY_ASSIGN(eos, ids_of(path, file, "eos_token_id"));
  if (tokens.bos_id < 0 && !bos.empty()) tokens.bos_id = bos.front();
  if (tokens.pad_id < 0 && !pad.empty()) tokens.pad_id = pad.front();
  for (const TokenId id : eos) {
    if (std::find(tokens.eos_ids.begin(), tokens.eos_ids.end(), id) == tokens.eos_ids.end())
      tokens.eos_ids.push_back(id);
  }
  return {};
}

}  // namespace

core::Result<std::string> read_file(const std::filesystem::path& path, std::size_t bytes_max) {
  std::error_code failure;
  const auto status = std::filesystem::status(path, failure);
  if (!std::filesystem::exists(status))
    return fail(ErrorCode::kNotFound, "there is no " + path.string());
  if (!std::filesystem::is_regular_file(status))
    return fail(ErrorCode::kData, path.string() + " is not a file");
  const auto size = std::filesystem::file_size(path, failure);
  if (!failure && size > bytes_max) {
    return fail(ErrorCode::kData, path.string() + " has " + std::to_string(size) + " bytes",
                "at most " + std::to_string(bytes_max) + " are read");
  }
  std::ifstream stream(path, std::ios::binary);
  std::string text;
  if (!failure && stream) {
    text.resize(size);
    stream.read(text.data(), static_cast<std::streamsize>(size));
  }
  if (failure || !stream) {
    const int why = errno;
    return fail(ErrorCode::kData, "cannot read " + path.string() + ": " + std::strerror(why));
  }
  return text;
}

core::Result<SpecialTokens> read_special_tokens(const std::filesystem::path& folder) {
  SpecialTokens tokens;
  TROUPE_TRY(add_spellings(folder / "tokenizer_config.json", tokens));
  TROUPE_TRY(add_spellings(folder / "special_tokens_map.json", tokens));
  TROUPE_TRY(add_ids(folder / "generation_config.json", tokens));
  TROUPE_TRY(add_ids(folder / "config.json", tokens));
  return tokens;
}

core::Result<std::optional<std::string>> read_config_template(const std::filesystem::path& folder) {
  using Found = std::optional<std::string>;
  const auto path = folder / "tokenizer_config.json";
  TROUPE_TRY_ASSIGN(file, read_object(path));
  const auto entry = file.find("chat_template");
  if (entry == file.end() || entry->is_null()) return Found();
  if (entry->is_string()) return Found(entry->get<std::string>());
  if (entry->is_array()) {
    for (const json& named : *entry) {
      if (named.is_object() && named.value("name", json()) == json("default")) {
        const auto text = named.find("template");
        if (text != named.end() && text->is_string()) return Found(text->get<std::string>());
      }
    }
    return fail(ErrorCode::kData, path.string() +
                                      ": \"chat_template\" is a list without an entry "
                                      "named \"default\" that holds a template");
  }
  return bad_key(path, "chat_template", "a string or a list of named templates");
}

}  // namespace troupe::text
