#include "apps/report/metric_curves.hpp"

#include "apps/report/line_reader.hpp"
#include "apps/report/metric_groups.hpp"
#include "runtime/core/texts.hpp"

#include <nlohmann/json.hpp>

#include <cstdlib>
#include <limits>
#include <map>

namespace troupe::report {
namespace {

using nlohmann::ordered_json;

class MetricsReader {
 public:
  // False for a row that is none of metrics.
  bool add(const ordered_json& row) {
    const auto step = row.find("step");
    if (step == row.end() || !step->is_number_unsigned()) return false;
    metrics_.last_step = step->get<std::uint64_t>();
    ++metrics_.rows;
    for (const auto& [name, value] : row.items()) {
      if (name == "step") continue;
      if (name == "time") {
        add_time(value);
      } else if (value.is_number()) {
        add(name, value.get<double>());
      } else if (value == "nan" || value == "inf" || value == "-inf") {
        add(name, std::numeric_limits<double>::quiet_NaN());
      }
    }
    return true;
  }

  MetricCurves finish(Notes& notes) {
    if (left_out_ > 0) {
      notes.add("metrics.jsonl: more than " + std::to_string(limits::kReportMetrics_max) +
                " metrics; further ones are left out");
    }
    return std::move(metrics_);
  }

 private:
  void add_time(const ordered_json& value) {
    if (!value.is_number()) return;
    metrics_.last_time_s = value.get<double>();
    if (metrics_.first_time_s == 0) metrics_.first_time_s = metrics_.last_time_s;
    metrics_.clock.add(static_cast<double>(metrics_.last_step),
                       metrics_.last_time_s - metrics_.first_time_s);
  }

  void add(const std::string& name, double value) {
    const auto [place, fresh] = places_.try_emplace(name, metrics_.curves.size());
    if (fresh && places_.size() > limits::kReportMetrics_max) {
      places_.erase(place);
      ++left_out_;
      return;
    }
    if (fresh) metrics_.curves.emplace_back(name, Curve());
    metrics_.curves[place->second].second.add(static_cast<double>(metrics_.last_step), value);
  }

  MetricCurves metrics_;
  std::map<std::string, std::size_t> places_;
  std::uint64_t left_out_ = 0;
};

// Steps and values as two lists.
void add_points(ordered_json& curve,
                const char* x,
                const char* y,
                const std::vector<CurvePoint>& points) {
  ordered_json steps = ordered_json::array(), values = ordered_json::array();
  for (const CurvePoint& point : points) {
    steps.push_back(static_cast<std::uint64_t>(point.step));
    values.push_back(point.value ? ordered_json(rounded(*point.value)) : ordered_json());
  }
  curve[x] = std::move(steps);
  curve[y] = std::move(values);
}

}  // namespace

const Curve* MetricCurves::find(std::string_view name) const {
  for (const auto& [known, curve] : curves) {
    if (known == name) return &curve;
  }
  return nullptr;
}

MetricCurves read_metrics(const std::filesystem::path& file, Notes& notes) {
  MetricsReader reader;
  std::uint64_t strange = 0;
  const auto read = read_objects(file, "metrics.jsonl", {}, notes, [&](ordered_json& row) {
    strange += reader.add(row) ? 0 : 1;
    return true;
  });
  if (!read.there) notes.add("metrics.jsonl is not there or cannot be read: no curves");
  if (strange > 0)
    notes.add("metrics.jsonl: rows without a step are left out: " + std::to_string(strange));
  return reader.finish(notes);
}

ordered_json clock_json(const MetricCurves& metrics) {
  ordered_json out = ordered_json::object();
  add_points(out, "x", "y", metrics.clock.points());
  return out;
}

double rounded(double value) {
  return std::strtod(core::printed("%.6g", value).c_str(), nullptr);
}

ordered_json curves_json(const MetricCurves& metrics) {
  ordered_json out = ordered_json::object();
  for (const auto& [name, curve] : metrics.curves) {
    ordered_json one = {{"group", group_of_metric(name)},
                        {"count", curve.count()},
                        {"sum", rounded(curve.sum())},
                        {"bucket", curve.bucket_values()}};
    add_points(one, "x", "y", curve.points());
    if (curve.bucket_values() > 1) add_points(one, "mean_x", "mean_y", curve.means());
    if (curve.not_finite() > 0) one["not_finite"] = curve.not_finite();
    if (curve.first()) one["first"] = *curve.first();
    if (curve.last()) one["last"] = *curve.last();
    out[name] = std::move(one);
  }
  return out;
}

}  // namespace troupe::report
