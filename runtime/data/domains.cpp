#include "runtime/data/domains.hpp"

#include "runtime/data/supervised_rows.hpp"
#include "runtime/parse/written_numbers.hpp"

#include <algorithm>

namespace troupe::data {

core::Result<std::uint32_t> teacher_of_row(const Domains& domains, const Json& row) {
  const auto& [key, names] = domains;
  if (key.empty()) return 0u;
  const auto found = row.is_object() ? row.find(key) : row.end();
  if (found == row.end() || found->is_null())
    return bad_row("no column '" + key + "', which has a row's domain (--teacher.domain_key)");
  const std::string value =
      found->is_string() ? found->get<std::string>() : parse::written_text(*found);
  const auto place = std::find(names.begin(), names.end(), value);
  if (place != names.end()) return static_cast<std::uint32_t>(place - names.begin());
  if (!names.empty() && names.back() == "other")
    return static_cast<std::uint32_t>(names.size() - 1);
  return bad_row("no teacher for '" + value + "' in column '" + key + "'",
                 "name it in --teacher.domains, or make `other` the last of them");
}

core::Result<std::uint32_t> Domains::teacher_of(const std::string& row) const {
  if (key.empty()) return 0u;
  return teacher_of_row(*this, parse::written_json<Json>(row));
}

}  // namespace troupe::data
