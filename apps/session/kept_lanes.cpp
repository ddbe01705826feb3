#include "apps/session/kept_lanes.hpp"

#include "runtime/config/read.hpp"
#include "runtime/learn/saved_lanes.hpp"
#include "runtime/store/append_file.hpp"

#include <filesystem>
#include <optional>

namespace troupe::app {
namespace {

namespace fs = std::filesystem;
constexpr const char* kLanes = "train.lanes";

struct Found {
  std::int64_t lanes = 0;
  fs::path where;
};

// What the configuration of a run folder says; nothing when it holds no results of a run.
std::optional<Found> lanes_of_run(const fs::path& folder) {
  std::error_code error;
  const auto metrics = fs::file_size(folder / "metrics.jsonl", error);
  const bool counted = !error && metrics > 0;
  if (!counted && (fs::is_empty(folder / "ckpt", error) || error)) return std::nullopt;
  const fs::path file = folder / "resolved_config.yaml";
  const auto text = store::read_all(file);
  if (!text || text->empty()) return std::nullopt;
  const auto settings = config::read_yaml(*text, file.string());
  if (!settings) return std::nullopt;
  const auto method = config::method_of(*settings);
  if (!method) return std::nullopt;
  config::Builder before(config::keys(), *method);
  if (!before.set_all(*settings)) return std::nullopt;
  return Found{before.current().train.lanes, file};
}

std::optional<Found> lanes_of(const config::TrainConfig& config) {
  if (config.run.path.empty() || config.resume == "off") return std::nullopt;
  if (auto run = lanes_of_run(config.run.path)) return run;
  if (config.resume == "auto") return std::nullopt;
  const fs::path state = fs::path(config.resume) / "policy";
  const auto lanes = learn::saved_lanes(state);
  return lanes ? std::optional<Found>({*lanes, state}) : std::nullopt;
}

}  // namespace

core::Result<void> keep_lanes(config::Builder& builder) {
  if (builder.origins().contains(kLanes)) return {};
  const auto found = lanes_of(builder.current());
  if (!found) return {};
  return builder.set({kLanes, {std::to_string(found->lanes)}, false, found->where.string()});
}

}  // namespace troupe::app
