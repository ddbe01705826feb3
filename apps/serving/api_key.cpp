#include "apps/serving/api_key.hpp"

#include "apps/serving/limits.hpp"
#include "runtime/core/secret.hpp"
#include "runtime/core/texts.hpp"

#include <algorithm>
#include <array>
#include <cctype>
#include <cstdlib>
#include <fstream>
#include <set>
#include <sstream>
#include <utility>

namespace troupe::serving {

namespace {

bool has_space(const std::string& text) {
  return std::any_of(text.begin(), text.end(),
                     [](unsigned char c) { return std::isspace(c) != 0; });
}

bool is_key_name(std::string_view text) {
  constexpr std::size_t kName_bytes_max = 64;
  return !text.empty() && text.size() <= kName_bytes_max &&
         std::all_of(text.begin(), text.end(), [](unsigned char c) {
           return std::isalnum(c) != 0 || c == '-' || c == '_' || c == '.';
         });
}

constexpr std::int64_t kLimit_max = 1'000'000'000;

struct LimitWord {
  std::string_view name;
  std::int64_t KeyLimits::*field;
};
constexpr std::array kLimitWords = {
    LimitWord{"requests", &KeyLimits::requests},
    LimitWord{"requests_per_minute", &KeyLimits::requests_per_minute},
    LimitWord{"tokens_per_minute", &KeyLimits::tokens_per_minute}};

// Reads `control` or `name=value` into the key; what is wrong with it, or "".
std::string read_word(const std::string& word, ApiKey& key) {
  if (word == "control") {
    key.control = true;
    return {};
  }
  const auto cut = word.find('=');
  const std::string name = word.substr(0, cut);
  const std::string value = cut == word.npos ? "" : word.substr(cut + 1);
  if (name == "name") {
    if (!is_key_name(value)) return "name= takes up to 64 letters, digits, '-', '_' and '.'";
    key.name = value;
    return {};
  }
  for (const LimitWord& limit : kLimitWords) {
    if (name != limit.name) continue;
    const std::int64_t number = core::number_of<std::int64_t>(value).value_or(0);
    if (number < 1 || number > kLimit_max)
      return name + "= takes a whole number between 1 and " + std::to_string(kLimit_max);
    key.limits.*limit.field = number;
    return {};
  }
  // The word may be a part of a key, so it is not shown.
  return "behind the key stand only name=, requests=, requests_per_minute=, tokens_per_minute= and "
         "control";
}

core::Result<std::vector<ApiKey>> read_keys(const std::string& file) {
  std::ifstream in(file);
  if (!in) return fail(ErrorCode::kConfig, "--api-key-file: cannot read " + file);
  std::vector<ApiKey> keys;
  std::size_t number = 0;
  bool plain = true;  // nothing is said of any key
  for (std::string line; std::getline(in, line);) {
    ++number;
    std::istringstream words(line);
    ApiKey key;
    key.control = false;
    if (!(words >> key.secret) || key.secret == "#") continue;
    for (std::string word; words >> word;) {
      plain = false;
      const std::string wrong = read_word(word, key);
      if (!wrong.empty()) {
        return fail(ErrorCode::kConfig, "--api-key-file: line " + std::to_string(number) + " of " +
                                            file + ": " + wrong);
      }
    }
    keys.push_back(std::move(key));
  }
  if (keys.empty()) return fail(ErrorCode::kConfig, "--api-key-file: no key in " + file);
  for (ApiKey& key : keys)
    key.control = key.control || plain;
  return {std::move(keys)};
}

}  // namespace

core::Result<ApiKeys> ApiKeys::gather(const std::vector<std::string>& flags,
                                      const std::string& file) {
  std::vector<ApiKey> keys;
  if (!file.empty()) TROUPE_TRY_SET(keys, read_keys(file));
  std::set<std::string> secrets, names;
  for (const ApiKey& key : keys) {
    if (!secrets.insert(key.secret).second)
      return fail(ErrorCode::kConfig, "--api-key-file: a key stands twice in " + file);
  }
  std::vector<std::string> others = flags;
  if (const char* one = std::getenv("TROUPE_API_KEY"); one != nullptr && *one != '\0')
    others.emplace_back(one);
  for (std::string& secret : others) {
    if (secret.empty() || has_space(secret))
      return fail(ErrorCode::kConfig, "an API key is empty or holds white space");
    if (secrets.insert(secret).second) keys.push_back({std::move(secret), "", {}});
  }
  if (keys.size() > limits::kServeKeys_max) {
    return fail(ErrorCode::kConfig, "--api-key-file: " + std::to_string(keys.size()) + " keys",
                "at most " + std::to_string(limits::kServeKeys_max) + " are taken");
  }
  for (std::size_t i = 0; i < keys.size(); ++i) {
    if (keys[i].name.empty()) keys[i].name = "key-" + std::to_string(i + 1);
    if (!names.insert(keys[i].name).second)
      return fail(ErrorCode::kConfig, "--api-key-file: two keys have the name " + keys[i].name);
  }
  return ApiKeys(std::move(keys));
}

std::optional<std::size_t> ApiKeys::find(std::string_view secret) const {
  std::optional<std::size_t> found;
  for (std::size_t i = 0; i < keys_.size(); ++i) {
    if (core::same_secret(secret, keys_[i].secret)) found = i;
  }
  return found;
}

}  // namespace troupe::serving
