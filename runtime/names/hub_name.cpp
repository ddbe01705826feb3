#include "runtime/names/hub_name.hpp"

#include <algorithm>
#include <cctype>
#include <utility>

namespace troupe::names {
namespace {

bool all_of(std::string_view text, std::string_view also) {
  return !text.empty() && std::ranges::all_of(text, [&](unsigned char c) {
    return std::isalnum(c) != 0 || also.find(static_cast<char>(c)) != also.npos;
  });
}

// One of the two parts of OWNER/NAME.
bool is_part(std::string_view text) {
  return all_of(text, "-_.") && text.front() != '.' && text.front() != '-' &&
         text.find("..") == text.npos && text.find("--") == text.npos;
}

bool is_revision(std::string_view text) {
  return all_of(text, "-_./+") && text.front() != '.' && text.front() != '/' &&
         text.back() != '/' && text.find("..") == text.npos && text.find("//") == text.npos;
}

bool is_file_name(std::string_view text) {
  for (const std::string_view ending : {".jsonl", ".ndjson", ".json", ".csv", ".tsv", ".parquet",
                                        ".arrow", ".gz", ".zst", ".xlsx", ".zip", ".safetensors"})
    if (text.ends_with(ending)) return true;
  return false;
}

// Cuts `text` at its first `mark` and returns what stands behind it; nothing without one.
std::optional<std::string> cut(std::string_view& text, char mark) {
  const auto at = text.find(mark);
  if (at == text.npos) return std::nullopt;
  std::string rest(text.substr(at + 1));
  text = text.substr(0, at);
  return rest;
}

}  // namespace

std::string HubName::text() const {
  std::string out = repository;
  if (!revision.empty()) out += "@" + revision;
  if (!first.empty() || !second.empty()) out += ":" + first;
  if (!second.empty()) out += ":" + second;
  return out;
}

HubName HubName::at(std::string other) const {
  HubName out = *this;
  out.revision = std::move(other);
  return out;
}

bool HubName::pinned() const {
  return is_commit(revision);
}

bool is_commit(std::string_view text) {
  return text.size() == 40 && text.find_first_not_of("0123456789abcdef") == text.npos;
}

std::optional<HubName> hub_name(std::string_view text, Kind kind) {
  HubName name;
  name.kind = kind;
  if (kind == Kind::kDataset) {
    if (auto parts = cut(text, ':')) {
      std::string_view first = *parts;
      const auto second = cut(first, ':');
      if (first.empty() && (!second || second->empty())) return std::nullopt;
      if (!first.empty() && !all_of(first, "-_.+ ")) return std::nullopt;
      if (second && !all_of(*second, "-_.+ ")) return std::nullopt;
      name.first = first;
      name.second = second.value_or("");
    }
  }
  if (auto revision = cut(text, '@')) {
    if (!is_revision(*revision)) return std::nullopt;
    name.revision = std::move(*revision);
  }
  const auto slash = text.find('/');
  if (slash == text.npos || is_file_name(text)) return std::nullopt;
  if (!is_part(text.substr(0, slash)) || !is_part(text.substr(slash + 1))) return std::nullopt;
  name.repository = text;
  return name;
}

}  // namespace troupe::names
