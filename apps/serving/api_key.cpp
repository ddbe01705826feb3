#include "apps/serving/api_key.hpp"

#include "runtime/core/secret.hpp"

#include <algorithm>
#include <cctype>
#include <cstdlib>
#include <fstream>

namespace troupe::app {

using core::ErrorCode;
using core::fail;

namespace {

bool has_space(const std::string& text) {
  return std::any_of(text.begin(), text.end(),
                     [](unsigned char c) { return std::isspace(c) != 0; });
}

}  // namespace

core::Result<ApiKeys> ApiKeys::gather(const std::vector<std::string>& flags,
                                      const std::string& file) {
  std::vector<std::string> keys = flags;
  if (!file.empty()) {
    std::ifstream in(file);
    if (!in) return fail(ErrorCode::kConfig, "--api-key-file: cannot read " + file);
    const std::size_t before = keys.size();
    std::size_t number = 0;
    for (std::string line; std::getline(in, line);) {
      ++number;
      if (!line.empty() && line.back() == '\r') line.pop_back();
      if (has_space(line)) {
        return fail(ErrorCode::kConfig, "--api-key-file: line " + std::to_string(number) + " of " +
                                            file + " holds white space; a line is one key");
      }
      if (!line.empty()) keys.push_back(line);
    }
    if (keys.size() == before) return fail(ErrorCode::kConfig, "--api-key-file: no key in " + file);
  }
  if (const char* one = std::getenv("TROUPE_API_KEY"); one != nullptr && *one != '\0') {
    keys.emplace_back(one);
  }
  for (const std::string& key : keys) {
    if (key.empty() || has_space(key)) {
      return fail(ErrorCode::kConfig, "an API key is empty or holds white space");
    }
  }
  return ApiKeys(std::move(keys));
}

bool ApiKeys::admits(std::string_view authorization) const {
  if (keys_.empty()) return true;
  constexpr std::string_view kScheme = "bearer ";
  if (authorization.size() < kScheme.size()) return false;
  for (std::size_t i = 0; i < kScheme.size(); ++i) {
    if (std::tolower(static_cast<unsigned char>(authorization[i])) != kScheme[i]) return false;
  }
  return has(authorization.substr(kScheme.size()));
}

bool ApiKeys::has(std::string_view given) const {
  if (keys_.empty()) return true;
  bool admitted = false;
  for (const std::string& key : keys_)
    admitted = core::same_secret(given, key) || admitted;
  return admitted;
}

}  // namespace troupe::app
