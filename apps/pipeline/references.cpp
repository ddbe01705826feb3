#include "apps/pipeline/references.hpp"

#include "runtime/core/texts.hpp"

namespace troupe::pipeline {
core::Result<std::string> fill(std::string_view text, const Lookup& lookup) {
  std::string out;
  for (std::size_t at = 0; at < text.size();) {
    const std::string_view rest = text.substr(at);
    if (rest.starts_with("$$")) {
      out += '$';
      at += 2;
    } else if (rest.starts_with("${")) {
      const auto end = rest.find('}');
      if (end == rest.npos) {
        return core::fail(core::ErrorCode::kConfig,
                          "'" + std::string(text) + "' begins a reference that does not end",
                          "write ${name}, and $$ for a dollar sign");
      }
      TROUPE_TRY_ASSIGN(value, lookup(rest.substr(2, end - 2)));
      out += core::joined(value.items, ",");
      at += end + 1;
    } else {
      out += text[at++];
    }
  }
  return out;
}

core::Result<Value> fill(const Value& value, const Lookup& lookup) {
  Value out{{}, value.is_list};
  for (const std::string& item : value.items) {
    const bool whole = item.starts_with("${") && item.find('}') == item.size() - 1;
    if (whole) {
      TROUPE_TRY_ASSIGN(found, lookup(std::string_view(item).substr(2, item.size() - 3)));
      out.is_list = out.is_list || found.is_list;
      out.items.insert(out.items.end(), found.items.begin(), found.items.end());
    } else {
      TROUPE_TRY_ASSIGN(text, fill(std::string_view(item), lookup));
      out.items.push_back(std::move(text));
    }
  }
  return out;
}

}  // namespace troupe::pipeline
