#include "apps/pipeline/yaml_fields.hpp"

#include "runtime/core/edit_distance.hpp"
#include "runtime/core/texts.hpp"

#include <algorithm>
#include <set>
#include <vector>

namespace troupe::pipeline {

core::Result<YAML::Node> load_yaml(const std::string& text, const std::string& name) {
  try {
    const std::vector<YAML::Node> documents = YAML::LoadAll(text);
    if (documents.size() == 1 && documents[0].IsMap()) return documents[0];
    return core::fail(ErrorCode::kConfig, name + ": holds no pipeline",
                      "it begins with `stages:`, docs/pipelines.md");
  } catch (const YAML::Exception& error) {
    return core::fail(ErrorCode::kConfig, name + ":" + std::to_string(error.mark.line + 1) +
                                              ": not valid YAML: " + error.msg);
  }
}

std::string YamlFields::place(const YAML::Node& node) const {
  const YAML::Mark mark = node.Mark();
  return mark.is_null() ? file_ : file_ + ":" + std::to_string(mark.line + 1);
}

void YamlFields::wrong(const YAML::Node& node, const std::string& what) {
  wrong_.add(ErrorCode::kConfig, place(node) + ": " + what);
}

bool YamlFields::map(const YAML::Node& node,
                     const std::string& what,
                     std::span<const std::string_view> known) {
  if (!node.IsMap()) {
    wrong(node, "`field: value` pairs expected for " + what);
    return false;
  }
  std::set<std::string> seen;
  for (const auto& entry : node) {
    const std::string name = entry.first.IsScalar() ? entry.first.Scalar() : "";
    if (!seen.insert(name).second) wrong(entry.first, "'" + name + "' is given twice");
    if (std::ranges::count(known, name) > 0) continue;
    const std::string near(core::nearest_word(name, known));
    wrong(entry.first,
          what + " has no field '" + name + "'; " +
              (near.empty() ? "it has " + core::joined(known) : "did you mean '" + near + "'?"));
  }
  return true;
}

std::string YamlFields::text(const YAML::Node& map, const char* field) {
  const YAML::Node node = map[field];
  if (!node) return {};
  if (node.IsScalar()) return node.Scalar();
  wrong(node, std::string(field) + ": plain text expected");
  return {};
}

std::string YamlFields::needed(const YAML::Node& map, const char* field) {
  if (!map[field]) wrong(map, std::string("`") + field + ":` is missing");
  return text(map, field);
}

double YamlFields::number(const YAML::Node& map, const char* field) {
  double out = 0;
  if (!YAML::convert<double>::decode(map[field], out))
    wrong(map[field], std::string(field) + ": a number expected");
  return out;
}

bool YamlFields::truth(const YAML::Node& map, const char* field) {
  bool out = false;
  if (map[field] && !YAML::convert<bool>::decode(map[field], out))
    wrong(map[field], std::string(field) + ": true or false expected");
  return out;
}

Value YamlFields::value(const YAML::Node& node, const std::string& what) {
  Value out;
  out.is_list = node.IsSequence();
  if (node.IsScalar()) out.items.push_back(node.Scalar());
  bool plain = node.IsScalar() || node.IsSequence();
  for (const YAML::Node& item : node) {
    if (!out.is_list || !item.IsScalar()) {
      plain = false;
    } else {
      out.items.push_back(item.Scalar());
    }
  }
  if (!plain) wrong(node, what + ": a plain value or a list of them expected");
  return out;
}

}  // namespace troupe::pipeline
