// `troupe report`: writes one HTML file that shows one or several run folders, or one chart of them
// as SVG. See docs/report.md.
#include "apps/cli/flags.hpp"
#include "apps/report/limits.hpp"
#include "apps/report/page.hpp"
#include "apps/report/run_report.hpp"
#include "apps/report/svg_chart.hpp"
#include "apps/troupe/commands.hpp"
#include "runtime/core/edit_distance.hpp"
#include "runtime/core/error_list.hpp"
#include "runtime/observe/terminal_text.hpp"
#include "runtime/store/atomic_folder.hpp"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <set>
#include <utility>

namespace troupe::app {
namespace {

namespace fs = std::filesystem;

constexpr double kSamplesShown_max = 20'000;
constexpr std::string_view kPageBegin = "<!doctype html>", kChartBegin = "<svg ";

struct ReportFlags {
  std::vector<std::string> runs;
  std::string out, svg;
  std::int64_t rollouts = 1000;
  bool log_scale = false;
};

bool holds_run(const fs::path& folder) {
  std::error_code error;
  return fs::exists(folder / "metrics.jsonl", error) ||
         fs::exists(folder / "resolved_config.yaml", error);
}

// The runs in a folder that is no run's itself.
std::string runs_in(const fs::path& folder) {
  std::set<std::string> names;
  std::error_code error;
  for (const fs::directory_entry& entry : fs::directory_iterator(folder, error))
    if (holds_run(entry.path())) names.insert(entry.path().string());
  std::string all;
  for (const std::string& name : names)
    all += (all.empty() ? "" : ", ") + name;
  return all;
}

Result<void> check_runs(const std::vector<std::string>& runs) {
  core::ErrorList wrong;
  if (runs.empty()) {
    wrong.add(ErrorCode::kConfig, "troupe report: no run is given",
              "give the folder of a run (its --run.path)");
  }
  if (runs.size() > report::limits::kReportRuns_max) {
    wrong.add(ErrorCode::kConfig,
              "troupe report: " + std::to_string(runs.size()) + " runs are given",
              "give at most " + std::to_string(report::limits::kReportRuns_max));
  }
  std::set<fs::path> seen;
  for (const std::string& run : runs) {
    std::error_code error;
    if (!fs::is_directory(run, error)) {
      const bool there = fs::exists(run, error);
      wrong.add(ErrorCode::kNotFound,
                "troupe report: " + run + (there ? " is not a folder" : " is not there"),
                "give the folder of a run (its --run.path)");
    } else if (const std::string in = holds_run(run) ? "" : runs_in(run); !in.empty()) {
      wrong.add(ErrorCode::kNotFound, "troupe report: " + run + " is a folder of runs",
                "give some of them: " + in);
    } else if (!seen.insert(fs::canonical(run, error)).second) {
      wrong.add(ErrorCode::kConfig, "troupe report: " + run + " is given twice", "give it once");
    }
  }
  return wrong.result();
}

// So that a mistyped --out does not replace a run's own file.
Result<void> check_out(const std::string& out, std::string_view begin) {
  std::error_code error;
  if (fs::is_directory(out, error))
    return fail(ErrorCode::kConfig, "--out " + out + " is a folder", "give the name of a file");
  if (!fs::exists(out, error)) return {};
  std::ifstream in(out, std::ios::binary);
  std::string first(begin.size(), '\0');
  in.read(first.data(), static_cast<std::streamsize>(first.size()));
  if (in.gcount() == 0 || first == begin) return {};
  return fail(ErrorCode::kConfig, "--out " + out + " is there and was not written by troupe report",
              "choose another name, or remove it");
}

// The error for a metric that no run has.
Result<void> refuse_metric(const std::string& name,
                           const std::vector<report::MetricCurves>& metrics) {
  std::vector<std::string_view> names;
  for (const report::MetricCurves& run : metrics) {
    for (const auto& [known, curve] : run.curves)
      names.push_back(known);
  }
  const std::string near(core::nearest_word(name, names));
  return fail(ErrorCode::kConfig, "--svg " + name + ": no run has this metric",
              (near.empty() ? "docs/metrics.md lists them" : "did you mean " + near + "?"));
}

Result<void> write_chart(const ReportFlags& flags, const std::string& out) {
  const std::vector<fs::path> runs(flags.runs.begin(), flags.runs.end());
  const auto names = report::run_names(runs);
  report::Notes notes;
  std::vector<report::MetricCurves> metrics;
  for (const fs::path& run : runs)
    metrics.push_back(report::read_metrics(run / "metrics.jsonl", notes));
  std::vector<std::pair<std::string, const report::Curve*>> lines;
  for (std::size_t i = 0; i < metrics.size(); ++i) {
    const report::Curve* const curve = metrics[i].find(flags.svg);
    if (curve != nullptr) lines.emplace_back(names[i], curve);
  }
  if (lines.empty()) return refuse_metric(flags.svg, metrics);
  for (const std::string& note : notes.all())
    cli::warn(observe::terminal_safe(note));
  const auto scale = flags.log_scale ? report::Scale::kLog : report::Scale::kLinear;
  TROUPE_TRY(store::replace_file(out, report::svg_chart(flags.svg, lines, scale)));
  cli::say(out + ": " + flags.svg + " of " + std::to_string(lines.size()) +
           (lines.size() == 1 ? " run" : " runs"));
  return {};
}

Result<void> write_page(const ReportFlags& flags, const std::string& out) {
  report::ReportOptions options;
  options.runs.assign(flags.runs.begin(), flags.runs.end());
  options.samples_max = static_cast<std::uint64_t>(flags.rollouts);
  auto data = report::report_json(options);
  const auto now = std::chrono::system_clock::now().time_since_epoch();
  data["made_s"] = std::chrono::duration_cast<std::chrono::seconds>(now).count();
  for (const auto& run : data["runs"]) {
    for (const auto& note : run["notes"])
      cli::warn(
          observe::terminal_safe(run["name"].get<std::string>() + ": " + note.get<std::string>()));
  }
  const std::string text = report::page(data);
  TROUPE_TRY(store::replace_file(out, text));
  std::uint64_t samples = 0;
  for (const auto& run : data["runs"])
    samples += run["rollouts"]["samples"].get<std::uint64_t>();
  cli::say(out + ": " + std::to_string(flags.runs.size()) +
           (flags.runs.size() == 1 ? " run, " : " runs, ") + std::to_string(samples) +
           " rollouts, " + std::to_string(text.size() >> 10) + " KiB");
  return {};
}

}  // namespace

Result<void> run_report(cli::Words words) {
  ReportFlags flags;
  TROUPE_TRY_ASSIGN(
      outcome, cli::parse_flags(
                   "troupe report: one HTML page of one or several run folders, RUN..., that needs "
                   "no network; also of a run in progress",
                   {{"--out", &flags.out, "file to write (default: report.html, or METRIC.svg)"},
                    {"--rollouts", &flags.rollouts, "most samples to show of a run", false, 0,
                     kSamplesShown_max},
                    {"--svg", &flags.svg, "write the chart of this metric alone, as SVG"},
                    {"--log", &flags.log_scale, "with --svg: a logarithmic scale"}},
                   words, &flags.runs));
  if (outcome == cli::FlagsOutcome::kHelpShown) return {};
  TROUPE_TRY(check_runs(flags.runs));
  if (flags.log_scale && flags.svg.empty())
    return fail(ErrorCode::kConfig, "--log is for --svg", "the page has a switch for it");
  std::string out = flags.out;
  if (out.empty()) {
    out = flags.svg.empty() ? "report.html" : flags.svg + ".svg";
    std::replace(out.begin(), out.end(), '/', '_');
  }
  TROUPE_TRY(check_out(out, flags.svg.empty() ? kPageBegin : kChartBegin));
  return flags.svg.empty() ? write_page(flags, out) : write_chart(flags, out);
}

}  // namespace troupe::app
