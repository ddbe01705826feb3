#include "runtime/config/flat_yaml.hpp"

#include "runtime/config/refuse.hpp"
#include "runtime/core/limits.hpp"

#include <yaml-cpp/yaml.h>

#include <algorithm>

namespace troupe::config {
namespace {

constexpr std::size_t kItems_max = 1000;

Result<Setting> plain_value(const YAML::Node& key, const YAML::Node& value, std::string where) {
  where += joined(":", key.Mark().line + 1);
  if (!key.IsScalar()) return refuse(where, ": a key must be a plain word");
  Setting setting{key.Scalar(), {}, value.IsSequence(), where};
  if (!value.IsScalar() && !value.IsSequence()) {
    return refuse(where, ": ", setting.name, " needs a plain value or a list of them");
  }
  if (value.IsScalar()) setting.values.push_back(value.Scalar());
  for (const YAML::Node& item : value) {  // a scalar has none
    if (!item.IsScalar() || setting.values.size() == kItems_max) {
      return refuse(where, ": ", setting.name, ": expected a list of at most ", kItems_max,
                    " plain values");
    }
    setting.values.push_back(item.Scalar());
  }
  return setting;
}

Result<std::vector<Setting>> plain_values(const YAML::Node& root, const std::string& where) {
  std::vector<Setting> all;
  if (!root.IsMap()) return refuse(where, ": expected `key: value` pairs at the top");
  for (const auto& entry : root) {
    TROUPE_TRY_ASSIGN(setting, plain_value(entry.first, entry.second, where));
    const auto same = [&](const Setting& other) { return other.name == setting.name; };
    if (std::ranges::any_of(all, same) || all.size() == kItems_max) {
      return refuse(setting.where, ": ", setting.name, " is given twice, or there are too many");
    }
    all.push_back(std::move(setting));
  }
  return all;
}

}  // namespace

Result<std::vector<Setting>> read_flat_yaml(const std::string& text, const std::string& where) {
  if (text.size() > core::limits::kConfigFile_bytes_max) {
    return refuse(where, ": too large (", text.size(), " bytes)");
  }
  try {
    const std::vector<YAML::Node> documents = YAML::LoadAll(text);
    if (documents.size() != 1) return refuse(where, ": one YAML document expected");
    return plain_values(documents.front(), where);
  } catch (const YAML::ParserException& error) {
    return refuse(where, ":", error.mark.line + 1, ": not valid YAML: ", error.msg);
  } catch (const YAML::Exception& error) {
    return refuse(where, ": not valid YAML: ", error.what());
  }
}

}  // namespace troupe::config
