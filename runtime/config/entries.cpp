#include "runtime/config/entries.hpp"

#include "runtime/config/refuse.hpp"
#include "runtime/core/limits.hpp"

#include <algorithm>
#include <cctype>

namespace troupe::config {

bool good_entry_name(const std::string& name) {
  return !name.empty() && name.size() <= core::limits::kEvalSetName_bytes_max &&
         std::ranges::all_of(name, [](unsigned char c) {
           return std::isalnum(c) != 0 || c == '_' || c == '-' || c == '.';
         });
}

core::Result<Setting> entry_setting(const std::string& key,
                                    const YAML::Node& value,
                                    const std::string& of) {
  if (!value.IsScalar() && !value.IsSequence()) return refuse(key, " has no plain value");
  Setting setting{key, {}, value.IsSequence(), of};
  if (value.IsScalar()) setting.values.push_back(value.Scalar());
  for (const YAML::Node& item : value) {  // a scalar has none
    if (!item.IsScalar()) return refuse(key, ": a plain value or a list of them expected");
    setting.values.push_back(item.Scalar());
  }
  return setting;
}

core::Failure not_yaml(const std::string& text, const YAML::Exception& error) {
  return refuse("'", text.substr(0, 80), "' is not valid YAML: ", error.what());
}

}  // namespace troupe::config
