#include "apps/troupe/batch/selection.hpp"

#include "apps/troupe/batch/output.hpp"

#include <nlohmann/json.hpp>

#include <cmath>
#include <cstdio>
#include <map>
#include <optional>
#include <regex>
#include <utility>

namespace troupe::app {
namespace {

using core::ErrorCode;
using core::fail;
using core::Result;
using Json = nlohmann::ordered_json;

struct Row {
  Json columns;
  std::optional<double> reward;
};

Result<std::vector<Row>> parse(std::string_view lines, const SelectionKeys& keys) {
  std::vector<Row> rows;
  for (std::size_t number = 1; !lines.empty(); ++number) {
    const auto end = std::min(lines.find('\n'), lines.size());
    Row row{Json::parse(lines.substr(0, end), nullptr, false), std::nullopt};
    lines.remove_prefix(std::min(end + 1, lines.size()));
    if (!row.columns.is_object() || !row.columns.contains(keys.reward)) {
      return fail(ErrorCode::kData,
                  "scored row " + std::to_string(number) + " has no column '" + keys.reward + "'");
    }
    const Json& reward = row.columns[keys.reward];
    if (reward.is_number()) row.reward = reward.get<double>();
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
      key = "id " + id->dump();
    } else if (prompt != row.columns.end()) {
      key = "prompt " + prompt->dump(-1, ' ', false, Json::error_handler_t::replace);
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

std::string fixed(double value, int decimals) {
  char text[400];
  std::snprintf(text, sizeof text, "%.*f", decimals, value);
  return text;
}

void replace_all(std::string& text, const std::string& what, const std::string& by) {
  for (auto at = text.find(what); at != text.npos; at = text.find(what, at + by.size()))
    text.replace(at, what.size(), by);
}

void normalise_rewards(std::vector<Row>& rows) {
  double sum = 0, squares = 0, count = 0;
  for (const Row& row : rows) {
    if (row.reward) sum += *row.reward, ++count;
  }
  const double mean = sum / std::max(count, 1.0);
  for (const Row& row : rows) {
    if (row.reward) squares += (*row.reward - mean) * (*row.reward - mean);
  }
  const double deviation = count > 1 ? std::sqrt(squares / (count - 1)) : 0;
  for (Row& row : rows) {
    if (row.reward) row.reward = deviation > 0 ? (*row.reward - mean) / deviation : 0;
  }
}

}  // namespace

std::string with_response(std::string_view lines, const SelectionKeys& keys) {
  std::string out;
  while (!lines.empty()) {
    const auto end = std::min(lines.find('\n'), lines.size());
    const Json row = Json::parse(lines.substr(0, end), nullptr, false);
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

Result<Selected> best_against_worst(std::string_view lines, const SelectionKeys& keys) {
  TROUPE_TRY_ASSIGN(rows, parse(lines, keys));
  Selected out;
  for (const auto& group : by_prompt(rows, keys, out)) {
    const Row* best = extreme(group, 1);
    const Row* worst = extreme(group, -1);
    if (best == nullptr) continue;
    const bool pair = best->columns.contains(keys.response) &&
                      worst->columns.contains(keys.response) && *best->reward > *worst->reward &&
                      best->columns[keys.response] != worst->columns[keys.response];
    if (!pair) {
      ++out.equal;
      continue;
    }
    Json row = best->columns;
    for (const char* own : {"sample", "finish_reason", "response_tokens", "tokens", "logprobs"})
      row.erase(own);
    row.erase(keys.response);
    row.erase(keys.reward);
    row["chosen"] = best->columns[keys.response];
    row["rejected"] = worst->columns[keys.response];
    row["chosen_reward"] = *best->reward;
    row["rejected_reward"] = *worst->reward;
    add_line(row, out);
  }
  return out;
}

Result<Selected> conditional_rows(std::string_view lines,
                                  const SelectionKeys& keys,
                                  const std::string& pattern,
                                  bool normalise) {
  std::string form = pattern;
  std::smatch place;
  int decimals = 2;
  if (std::regex_search(form, place, std::regex(R"(\{:\.([0-9])f\})"))) {
    decimals = place[1].str()[0] - '0';
    replace_all(form, place[0].str(), "{reward}");
  }
  if (form.find("{reward}") == form.npos) {
    return fail(ErrorCode::kConfig,
                "--csft '" + pattern + "' has no place for the score; give {:.2f} or {reward}");
  }
  if (form.find("{input}") == form.npos) form = "{input} " + form + " ";
  TROUPE_TRY_ASSIGN(rows, parse(lines, keys));
  if (normalise) normalise_rewards(rows);
  Selected out;
  static_cast<void>(by_prompt(rows, keys, out));
  for (Row& row : rows) {
    if (!row.reward) continue;
    const auto input = row.columns.find(keys.input);
    if (input == row.columns.end() || !input->is_string()) {
      return fail(ErrorCode::kData, "--csft writes the score into the text of column '" +
                                        keys.input + "', which a row lacks or has as messages");
    }
    std::string text = form;
    replace_all(text, "{reward}", fixed(*row.reward, decimals));
    replace_all(text, "{input}", input->get<std::string>());
    *input = std::move(text);
    add_line(row.columns, out);
  }
  return out;
}

}  // namespace troupe::app
