#include "apps/session/roles/loaded_modules.hpp"

#include <nlohmann/json.hpp>

#include <algorithm>

namespace troupe::session {
namespace {

constexpr std::string_view kModule = "the module ";
constexpr std::size_t kDigits_shown = 12, kHash_digits = 64;

bool is_hash(const std::string& text) {
  return text.size() == kHash_digits && std::all_of(text.begin(), text.end(), [](char c) {
           return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f');
         });
}

}  // namespace

LoadedModules::LoadedModules(const Hashes& hashes) {
  for (const auto& [name, hash] : hashes)
    if (name.starts_with(kModule)) known_[name] = hash;
}

std::vector<std::string> LoadedModules::take(const std::string& who, const std::string& json) {
  std::vector<std::string> changed;
  if (json.size() > kReport_bytes_max) return changed;
  const auto report = nlohmann::json::parse(json, nullptr, false);
  if (!report.is_object()) return changed;
  for (const auto& [file, value] : report.items()) {
    if (!value.is_string() || !is_hash(value.get_ref<const std::string&>())) continue;
    const std::string name = std::string(kModule) + file + " of " + who;
    const auto before = known_.find(name);
    if (before == known_.end() && known_.size() >= kModules_max) continue;
    const auto hash = value.get<std::string>();
    if (before != known_.end() && before->second != hash) {
      changed.push_back("changed since the checkpoint: the SHA-256 of " + name + " was " +
                        before->second.substr(0, kDigits_shown) + "... and is " +
                        hash.substr(0, kDigits_shown) + "...");
    }
    known_[name] = hash;
  }
  return changed;
}

void LoadedModules::add_to(Hashes& hashes) const {
  hashes.insert(known_.begin(), known_.end());
}

}  // namespace troupe::session
