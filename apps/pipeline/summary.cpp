// The table and the JSON that a pipeline ends with.
#include "apps/pipeline/pipeline_run.hpp"
#include "runtime/core/texts.hpp"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <set>

namespace troupe::pipeline {
namespace {

using Json = nlohmann::ordered_json;

std::string figure_text(const Figure& figure) {
  std::string out = core::printed("%.4g", figure.mean);
  if (figure.low && figure.high) out += core::printed(" [%.4g, %.4g]", *figure.low, *figure.high);
  return out;
}

// The figure of a report's column; null where the stage did not give it.
const Figure* reported(const StageRow& row, const std::string& column) {
  if (!row.turn->finished()) return nullptr;
  for (const auto& [name, key] : row.report) {
    if (name != column) continue;
    const auto found = row.turn->record.figures.find(key);
    return found == row.turn->record.figures.end() ? nullptr : &found->second;
  }
  return nullptr;
}

double total_wall_s(const PipelineRun& run) {
  double total = 0;
  for (const StageRow& row : run.rows())
    total += row.turn->record.wall_s;
  return total;
}

std::vector<std::string> columns_of(const PipelineRun& run) {
  std::vector<std::string> out;
  std::set<std::string> seen;
  for (const StageRow& row : run.rows()) {
    for (const auto& [name, key] : row.report) {
      if (seen.insert(name).second) out.push_back(name);
    }
  }
  return out;
}

std::string table_text(const std::vector<std::vector<std::string>>& rows) {
  std::vector<std::size_t> widths(rows.front().size(), 0);
  for (const auto& row : rows) {
    for (std::size_t i = 0; i < row.size(); ++i)
      widths[i] = std::max(widths[i], row[i].size());
  }
  std::string out;
  for (const auto& row : rows) {
    std::string line;
    for (std::size_t i = 0; i < row.size(); ++i)
      line += row[i] + std::string(widths[i] - row[i].size() + 2, ' ');
    line.erase(line.find_last_not_of(' ') + 1);
    out += line + "\n";
  }
  return out;
}

}  // namespace

std::string summary_text(const PipelineRun& run) {
  const double total = total_wall_s(run);
  const auto columns = columns_of(run);
  std::vector<std::vector<std::string>> rows = {{"stage", "command", "time", "share", "processor"}};
  rows[0].insert(rows[0].end(), columns.begin(), columns.end());
  for (const StageRow& row : run.rows()) {
    const StageRecord& record = row.turn->record;
    std::vector<std::string> cells = {
        row.id, row.command, core::printed("%.1f s", record.wall_s),
        core::printed("%.0f %%", total > 0 ? 100 * record.wall_s / total : 0.0),
        core::printed("%.1f s", record.cpu_s)};
    for (const std::string& column : columns) {
      const Figure* figure = reported(row, column);
      cells.push_back(figure == nullptr ? "" : figure_text(*figure));
    }
    rows.push_back(std::move(cells));
  }
  std::string out = table_text(rows);
  for (const SearchRow& search : run.searches()) {
    out += "\n" + search.id + ", points and their figures:\n";
    std::vector<std::vector<std::string>> lines;
    for (std::size_t i = 0; i < search.points.size(); ++i) {
      std::string words;
      for (const auto& [name, value] : search.points[i].variables)
        words +=
            (words.empty() ? "" : " ") + name + "=" + (value.items.empty() ? "" : value.items[0]);
      lines.push_back({"  " + words, core::printed("%.4g", search.points[i].figure),
                       i == search.best ? "the best" : ""});
    }
    out += table_text(lines);
  }
  return out;
}

std::string summary_json(const PipelineRun& run,
                         const PipelineFile& file,
                         const std::string& state) {
  const double total = total_wall_s(run);
  Json out = {{"file", file.path.string()}, {"state", state}};
  for (const auto& [name, value] : file.variables)
    out["variables"][name] = value.is_list ? Json(value.items) : Json(value.items.at(0));
  double cpu_s = 0;
  out["stages"] = Json::array();
  for (const StageRow& row : run.rows()) {
    const StageRecord& record = row.turn->record;
    Json one = {{"stage", row.id},
                {"command", row.command},
                {"state", record.state},
                {"folder", row.turn->folder.string()},
                {"wall_s", record.wall_s},
                {"cpu_s", record.cpu_s},
                {"share", total > 0 ? record.wall_s / total : 0},
                {"attempts", record.attempts},
                {"losses", record.losses}};
    for (const auto& [column, key] : row.report) {
      const Figure* figure = reported(row, column);
      if (figure == nullptr) continue;
      one["figures"][column]["mean"] = figure->mean;
      if (figure->low) one["figures"][column]["low"] = *figure->low;
      if (figure->high) one["figures"][column]["high"] = *figure->high;
    }
    cpu_s += record.cpu_s;
    out["stages"].push_back(std::move(one));
  }
  for (const SearchRow& search : run.searches()) {
    Json one = {{"search", search.id}, {"best", search.best + 1}, {"points", Json::array()}};
    for (const SearchRow::Point& point : search.points) {
      Json json = {{"figure", point.figure}};
      for (const auto& [name, value] : point.variables)
        json[name] = value.items.size() == 1 ? Json(value.items[0]) : Json(value.items);
      one["points"].push_back(std::move(json));
    }
    out["searches"].push_back(std::move(one));
  }
  out["wall_s"] = total;
  out["cpu_s"] = cpu_s;
  return out.dump(1, ' ', false, Json::error_handler_t::replace) + "\n";
}

}  // namespace troupe::pipeline
