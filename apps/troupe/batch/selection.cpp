#include "apps/troupe/batch/selection.hpp"

#include "apps/troupe/batch/output.hpp"
#include "runtime/core/texts.hpp"
#include "runtime/parse/written_numbers.hpp"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <cmath>
#include <map>
#include <optional>
#include <regex>
#include <set>
#include <utility>

namespace troupe::app {
namespace {

struct Row {
  Json columns;
  std::optional<double> reward;
};

Result<std::vector<Row>> parse(std::string_view lines, const SelectionKeys& keys) {
  std::vector<Row> rows;
  for (std::size_t number = 1; !lines.empty(); ++number) {
    const auto end = std::min(lines.find('\n'), lines.size());
    Row row{parse::written_json<Json>(lines.substr(0, end)), std::nullopt};
    lines.remove_prefix(std::min(end + 1, lines.size()));
    if (!row.columns.is_object() || !row.columns.contains(keys.reward)) {
      return fail(ErrorCode::kData,
                  "scored row " + std::to_string(number) + " has no column '" + keys.reward + "'");
    }
    row.reward = parse::number_in(row.columns[keys.reward]);
    rows.push_back(std::move(row));
  }
  return rows;
}

// The rows with a score, by prompt, in the order in which prompts first come. Counts all prompts.
std::vector<std::vector<const Row*>> by_prompt(const std::vector<Row>& rows,
                                               const SelectionKeys& keys,
                                               Selected& counts) {
  std::map<std::string, std::size_t> places;
  std::vector<std::vector<const Row*>> groups;
  for (const Row& row : rows) {
    const auto id = row.columns.find("prompt_id");
    const auto prompt = row.columns.find(keys.input);
    std::string key = "row";
    if (id != row.columns.end()) {
      key = "id " + parse::written_text(*id);
    } else if (prompt != row.columns.end()) {
      key = "prompt " + parse::written_text(*prompt);
    }
    const auto [place, fresh] = places.emplace(std::move(key), groups.size());
    if (fresh) groups.emplace_back();
    if (row.reward) groups[place->second].push_back(&row);
  }
  counts.prompts = groups.size();
  return groups;
}

void add_line(const Json& row, Selected& out) {
  out.lines += json_line(row);
  ++out.rows;
}

// The first row with the highest (sign 1) or lowest (sign -1) score; null for no rows.
const Row* extreme(const std::vector<const Row*>& group, double sign) {
  const Row* found = nullptr;
  for (const Row* row : group) {
    if (found == nullptr || sign * *row->reward > sign * *found->reward) found = row;
  }
  return found;
}

// A place of a template for conditional rows.
struct Attribute {
  std::string column;
  int decimals = 2;
  double mean = 0, deviation = 0;  // of the rows that count
};

struct Template {
  std::vector<std::string> texts;  // around the places: one more than places
  std::vector<Attribute> places;   // with column "" for the prompt
};

Template parse_template(const std::string& pattern, const SelectionKeys& keys) {
  static const std::regex place(R"(\{([A-Za-z_][A-Za-z0-9_.-]*)?(:\.([0-9])f)?\})");
  Template out{{""}, {}};
  auto rest = pattern.cbegin();
  for (std::sregex_iterator it(pattern.begin(), pattern.end(), place), end; it != end; ++it) {
    const std::smatch& match = *it;
    const std::string name = match[1];
    if (name.empty() && !match[2].matched) continue;  // {} is no place
    out.texts.back().append(rest, match[0].first);
    rest = match[0].second;
    Attribute attribute;
    attribute.column = name.empty() || name == "reward" ? keys.reward : name == "input" ? "" : name;
    if (match[3].matched) attribute.decimals = match[3].str()[0] - '0';
    out.places.push_back(std::move(attribute));
    out.texts.emplace_back();
  }
  out.texts.back().append(rest, pattern.cend());
  return out;
}

bool has_attributes(const Json& columns, const Template& form) {
  return std::all_of(form.places.begin(), form.places.end(), [&](const Attribute& place) {
    const auto found = columns.find(place.column);
    return place.column.empty() ||
           (found != columns.end() &&
            (parse::number_in(*found) || found->is_string() || found->is_boolean()));
  });
}

void measure(const std::vector<Json>& rows, Attribute& place) {
  double sum = 0, squares = 0, count = 0;
  for (const Json& row : rows) {
    if (const auto number = parse::number_in(row[place.column])) sum += *number, ++count;
  }
  place.mean = sum / std::max(count, 1.0);
  for (const Json& row : rows) {
    const auto number = parse::number_in(row[place.column]);
    if (!number) continue;
    const double distance = *number - place.mean;
    squares += distance * distance;
  }
  place.deviation = count > 1 ? std::sqrt(squares / (count - 1)) : 0;
}

std::string attribute_text(const Json& value, const Attribute& place, bool normalise) {
  if (value.is_string()) return value.get<std::string>();
  const auto given = parse::number_in(value);
  if (!given) return value.dump();
  double number = *given;
  if (normalise) number = place.deviation > 0 ? (number - place.mean) / place.deviation : 0;
  return core::printed("%.*f", place.decimals, number);
}

Json pair_of(const Row& best, const Row& worse, const SelectionKeys& keys) {
  Json row = best.columns;
  for (const char* own : {"sample", "finish_reason", "response_tokens", "tokens", "logprobs"})
    row.erase(own);
  row.erase(keys.response);
  row.erase(keys.reward);
  row["chosen"] = best.columns[keys.response];
  row["rejected"] = worse.columns[keys.response];
  row["chosen_reward"] = *best.reward;
  row["rejected_reward"] = *worse.reward;
  return row;
}

}  // namespace

std::string with_response(std::string_view lines, const SelectionKeys& keys) {
  std::string out;
  while (!lines.empty()) {
    const auto end = std::min(lines.find('\n'), lines.size());
    const Json row = parse::written_json<Json>(lines.substr(0, end));
    if (!row.is_object() || row.value(keys.response, Json()) != "")
      out += std::string(lines.substr(0, end)) + "\n";
    lines.remove_prefix(std::min(end + 1, lines.size()));
  }
  return out;
}

Result<Selected> best_of_n(std::string_view lines, const SelectionKeys& keys) {
  TROUPE_TRY_ASSIGN(rows, parse(lines, keys));
  Selected out;
  for (const auto& group : by_prompt(rows, keys, out)) {
    if (const Row* best = extreme(group, 1)) add_line(best->columns, out);
  }
  return out;
}

Result<Selected> best_against_worst(std::string_view lines,
                                    const SelectionKeys& keys,
                                    std::uint64_t pairs) {
  TROUPE_TRY_ASSIGN(rows, parse(lines, keys));
  Selected out;
  for (auto& group : by_prompt(rows, keys, out)) {
    const Row* best = extreme(group, 1);
    if (best == nullptr) continue;
    std::stable_sort(group.begin(), group.end(), [](const Row* one, const Row* other) {
      return *one->reward < *other->reward;
    });
    std::set<Json> used = {best->columns.value(keys.response, Json())};
    std::uint64_t made = 0;
    for (const Row* worse : group) {
      if (made == pairs || *worse->reward >= *best->reward) break;
      if (!worse->columns.contains(keys.response)) continue;
      if (!used.insert(worse->columns[keys.response]).second) continue;
      add_line(pair_of(*best, *worse, keys), out);
      ++made;
    }
    if (made == 0) ++out.equal;
  }
  return out;
}

Result<Selected> conditional_rows(std::string_view lines,
                                  const SelectionKeys& keys,
                                  const std::string& pattern,
                                  bool normalise) {
  Template form = parse_template(pattern, keys);
  const auto attributes = std::count_if(form.places.begin(), form.places.end(),
                                        [](const Attribute& one) { return !one.column.empty(); });
  if (attributes == 0) {
    return fail(ErrorCode::kConfig, "--csft '" + pattern + "' has no place for the score",
                "give {:.2f}, {reward} or, for a column of its own, {COLUMN:.2f}");
  }
  if (attributes == std::ssize(form.places))
    form = parse_template("{input} " + pattern + " ", keys);
  Selected out;
  std::vector<Row> all;
  for (std::size_t number = 1; !lines.empty(); ++number) {
    const auto end = std::min(lines.find('\n'), lines.size());
    Json row = parse::written_json<Json>(lines.substr(0, end));
    lines.remove_prefix(std::min(end + 1, lines.size()));
    if (!row.is_object())
      return fail(ErrorCode::kData, "scored row " + std::to_string(number) + " is not an object");
    all.push_back({std::move(row), std::nullopt});
  }
  static_cast<void>(by_prompt(all, keys, out));
  std::vector<Json> rows;
  for (Row& row : all) {
    if (has_attributes(row.columns, form)) rows.push_back(std::move(row.columns));
  }
  if (rows.empty()) {
    return fail(ErrorCode::kData,
                "--csft '" + pattern + "': no row has all of the columns that it names");
  }
  for (Attribute& place : form.places) {
    if (!place.column.empty()) measure(rows, place);
  }
  for (Json& row : rows) {
    const auto input = row.find(keys.input);
    if (input == row.end() || !input->is_string()) {
      return fail(ErrorCode::kData, "--csft writes the score into the text of column '" +
                                        keys.input + "', which a row lacks or has as messages");
    }
    std::string text = form.texts[0];
    for (std::size_t i = 0; i < form.places.size(); ++i) {
      const Attribute& place = form.places[i];
      text += place.column.empty() ? input->get<std::string>()
                                   : attribute_text(row[place.column], place, normalise);
      text += form.texts[i + 1];
    }
    *input = std::move(text);
    add_line(row, out);
  }
  return out;
}

}  // namespace troupe::app
