#include "apps/report/run_report.hpp"

#include "apps/cli/build_facts.hpp"
#include "apps/report/configuration.hpp"
#include "apps/report/line_reader.hpp"
#include "apps/report/metric_groups.hpp"
#include "apps/report/rollouts.hpp"
#include "apps/report/run_parts.hpp"
#include "runtime/parse/bounded_json.hpp"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <set>
#include <utility>

namespace troupe::report {
namespace {

namespace fs = std::filesystem;

// The checkpoints of a run, oldest first.
std::vector<std::string> checkpoints_of(const fs::path& run) {
  std::vector<std::string> names;
  std::error_code error;
  for (fs::directory_iterator it(run / "ckpt", error), end; !error && it != end;
       it.increment(error)) {
    const std::string name = it->path().filename().string();
    if (name.starts_with("step_") && names.size() < 10'000) names.push_back(name);
  }
  std::sort(names.begin(), names.end());
  return names;
}

// The class of arithmetic that the newest checkpoint's manifest names; empty if it names none.
std::string arithmetic_of(const fs::path& run, const std::vector<std::string>& checkpoints) {
  if (checkpoints.empty()) return "";
  const auto whole = read_whole(run / "ckpt" / checkpoints.back() / "manifest.json",
                                limits::kReportFile_bytes_max);
  if (!whole) return "";
  const auto manifest = parse::bounded_json<ordered_json>(whole->text, {});
  if (!manifest || !manifest->is_object()) return "";
  const auto state = manifest->find("state");
  if (state == manifest->end() || !state->is_object()) return "";
  const auto name = state->find("arithmetic");
  return name != state->end() && name->is_string() ? name->get<std::string>() : "";
}

ordered_json config_json(const std::vector<ConfigLine>& lines) {
  ordered_json out = ordered_json::array();
  for (const ConfigLine& line : lines)
    out.push_back({line.key, line.value, line.origin});
  return out;
}

class RunReader {
 public:
  RunReader(const fs::path& run, std::string name, std::uint64_t samples_max, Budget budget)
      : run_(run), name_(std::move(name)), samples_max_(samples_max), budget_(budget) {}

  ordered_json read() {
    read_config();
    const MetricCurves metrics = read_metrics(run_ / "metrics.jsonl", notes_);
    const auto checkpoints = checkpoints_of(run_);
    ModelFolders models = {config_value(config_, "actor.model_name_or_path")};
    std::erase(models, "");
    for (auto name = checkpoints.rbegin(); name != checkpoints.rend(); ++name)
      models.push_back((run_ / "ckpt" / *name / "model").string());
    // Before the rollouts, which take the rest of the budget.
    ordered_json held_out = held_out_json(run_, budget_, notes_);
    ordered_json rollouts = rollouts_json(run_, samples_max_, models, budget_, notes_);
    ordered_json out = {{"name", name_},
                        {"path", fs::absolute(run_).lexically_normal().string()},
                        {"method", config_value(config_, "method")},
                        {"model", config_value(config_, "actor.model_name_or_path")},
                        {"steps_wanted", config_value(config_, "train.max_steps")},
                        {"running", is_running(run_)},
                        {"rows", metrics.rows},
                        {"last_step", metrics.last_step},
                        {"first_time_s", metrics.first_time_s},
                        {"last_time_s", metrics.last_time_s},
                        {"arithmetic", arithmetic_of(run_, checkpoints)},
                        {"checkpoints", checkpoints},
                        {"metrics", curves_json(metrics)},
                        {"clock", clock_json(metrics)},
                        {"held_out", std::move(held_out)},
                        {"rollouts", std::move(rollouts)},
                        {"log", log_json(run_, notes_)},
                        {"ledger", ledger_json(run_, notes_)},
                        {"node_logs", node_logs_json(run_, notes_)},
                        {"company", company_json(run_, notes_)},
                        {"trace", trace_json(run_, notes_)},
                        {"failed_steps", failed_steps_json(run_)},
                        {"config", config_json(config_)}};
    out["notes"] = notes_.all();
    return out;
  }

 private:
  void read_config() {
    const auto whole = read_whole(run_ / "resolved_config.yaml", limits::kReportConfig_bytes_max);
    if (!whole) {
      notes_.add("resolved_config.yaml is not there or cannot be read: no configuration");
      return;
    }
    if (whole->cut) {
      notes_.add("resolved_config.yaml: only the first " +
                 std::to_string(limits::kReportConfig_bytes_max >> 10) + " KiB are read");
    }
    config_ = config_lines(whole->text);
    if (config_.empty()) notes_.add("resolved_config.yaml has no key: no configuration");
  }

  const fs::path run_;
  const std::string name_;
  const std::uint64_t samples_max_;
  Budget budget_;
  Notes notes_;
  std::vector<ConfigLine> config_;
};

}  // namespace

std::vector<std::string> run_names(const std::vector<fs::path>& runs) {
  std::vector<fs::path> whole;
  for (const fs::path& run : runs) {
    fs::path path = fs::absolute(run).lexically_normal();
    if (path.filename().empty()) path = path.parent_path();  // it ended with a slash
    whole.push_back(std::move(path));
  }
  std::vector<std::string> names;
  for (std::size_t parents = 0;; ++parents) {
    names.clear();
    bool more = false;
    for (const fs::path& path : whole) {
      fs::path name = path.filename(), rest = path.parent_path();
      for (std::size_t i = 0; i < parents && rest.has_relative_path(); ++i) {
        name = rest.filename() / name;
        rest = rest.parent_path();
      }
      more = more || rest.has_relative_path();
      names.push_back(name.string());
    }
    const std::set<std::string> different(names.begin(), names.end());
    if (different.size() == names.size() || !more) return names;
  }
}

ordered_json report_json(const ReportOptions& options) {
  const auto names = run_names(options.runs);
  const std::uint64_t count = std::max<std::uint64_t>(options.runs.size(), 1);
  ordered_json runs = ordered_json::array();
  for (std::size_t i = 0; i < options.runs.size(); ++i) {
    const Budget share(limits::kReportTexts_bytes_max / count, limits::kReportTokens_max / count);
    runs.push_back(RunReader(options.runs[i], names[i], options.samples_max, share).read());
  }
  return {{"program", cli::build_version()}, {"groups", kMetricGroups}, {"runs", std::move(runs)}};
}

}  // namespace troupe::report
