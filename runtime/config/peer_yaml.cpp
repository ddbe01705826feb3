#include "runtime/config/peer_yaml.hpp"

#include "runtime/config/peer_names.hpp"
#include "runtime/config/refuse.hpp"
#include "runtime/core/limits.hpp"

#include <yaml-cpp/yaml.h>

namespace troupe::config {
namespace {

using core::Result;

constexpr int kSections_max = 12;
constexpr std::size_t kPeerSettings_max = 5000;

class YamlSettings {
 public:
  YamlSettings(const Table& table, const std::string& where, Methods methods)
      : table_(table), where_(where), methods_(methods) {}

  Result<std::vector<PeerSetting>> all(const YAML::Node& root) {
    TROUPE_TRY(visit(root, "", 0));
    return std::move(out_);
  }

 private:
  std::string place(const YAML::Node& node) const {
    return joined(where_, ":", node.Mark().line + 1);
  }

  Result<void> visit(const YAML::Node& map, const std::string& prefix, int depth) {
    if (depth > kSections_max) return refuse(place(map), ": sections nested too deeply");
    for (const auto& entry : map) {
      const YAML::Node &key = entry.first, &value = entry.second;
      if (!key.IsScalar()) return refuse(place(key), ": a key must be a plain word");
      const std::string name = prefix + key.Scalar();
      const auto [row, peer] = meaning_of(table_, name, methods_);
      const bool section = value.IsMap() && value.size() > 0 && row == nullptr && peer == nullptr;
      if (section) {
        TROUPE_TRY(visit(value, name + ".", depth + 1));
      } else {
        add(name, key, value);
      }
      if (out_.size() > kPeerSettings_max) return refuse(place(key), ": too many keys");
    }
    return {};
  }

  void add(const std::string& name, const YAML::Node& key, const YAML::Node& value) {
    PeerSetting setting;
    setting.written = {name, {}, value.IsSequence(), place(key)};
    if (!value.IsSequence()) setting.written.values = {text_of(value)};
    for (const YAML::Node& item : value.IsSequence() ? value : YAML::Node())
      setting.written.values.push_back(text_of(item));
    for (const std::string& one : setting.written.values) {
      // "${oc.select:a.b,null}": another key's value, which Hydra fills in.
      if (one.find("${") != one.npos) setting.unknown = one;
    }
    out_.push_back(std::move(setting));
  }

  static std::string text_of(const YAML::Node& node) {
    return node.IsScalar() ? node.Scalar() : node.IsNull() ? "null" : "{...}";
  }

  const Table& table_;
  const std::string& where_;
  const Methods methods_;
  std::vector<PeerSetting> out_;
};

}  // namespace

Result<std::vector<PeerSetting>> peer_yaml(const Table& table,
                                           const std::string& text,
                                           const std::string& where,
                                           Methods methods) {
  if (text.size() > core::limits::kConfigFile_bytes_max)
    return refuse(where, ": too large for a configuration (", text.size(), " bytes)");
  try {
    const std::vector<YAML::Node> documents = YAML::LoadAll(text);
    if (documents.size() > 1) {
      return refuse(where, ": holds several YAML documents", kThen, "one is expected");
    }
    if (documents.empty() || !documents.front().IsMap())
      return refuse(where, ": expected `key: value` pairs at the top");
    return YamlSettings(table, where, methods).all(documents.front());
  } catch (const YAML::ParserException& error) {
    return refuse(where, ":", error.mark.line + 1, ": not valid YAML: ", error.msg);
  } catch (const YAML::Exception& error) {
    return refuse(where, ": not valid YAML: ", error.what());
  }
}

}  // namespace troupe::config
