#include "apps/session/kept_keys.hpp"

#include "runtime/config/read.hpp"
#include "runtime/learn/state/state_counts.hpp"
#include "runtime/store/append_file.hpp"

#include <filesystem>
#include <optional>

namespace troupe::session {
namespace {

namespace fs = std::filesystem;
constexpr const char* kLanes = "train.lanes";

struct Found {
  config::TrainConfig config;
  fs::path where;
};

// What the configuration of a run folder says; nothing when it cannot be read.
std::optional<Found> config_of_run(const fs::path& folder) {
  const fs::path file = folder / "resolved_config.yaml";
  const auto text = store::read_all(file);
  if (!text || text->empty()) return std::nullopt;
  const auto settings = config::read_yaml(*text, file.string());
  if (!settings) return std::nullopt;
  const auto method = config::method_of(*settings);
  if (!method) return std::nullopt;
  config::Builder before(config::keys(), *method);
  if (!before.set_run(*settings)) return std::nullopt;
  return Found{before.current(), file};
}

bool has_results(const fs::path& folder) {
  std::error_code error;
  const auto metrics = fs::file_size(folder / "metrics.jsonl", error);
  if (!error && metrics > 0) return true;
  const bool empty = fs::is_empty(folder / "ckpt", error);
  return !error && !empty;
}

core::Result<void> keep_lanes(config::Builder& builder,
                              const std::optional<Found>& run,
                              const fs::path& checkpoint) {
  if (builder.origins().contains(kLanes)) return {};
  const auto set = [&](std::int64_t lanes, const fs::path& where) {
    return builder.set({kLanes, {std::to_string(lanes)}, false, where.string()});
  };
  if (run) return set(run->config.train.lanes, run->where);
  if (checkpoint.empty()) return {};
  const auto counts = learn::read_counts(checkpoint / "policy");
  return counts ? set(counts->lanes, checkpoint / "policy") : core::Result<void>();
}

core::Result<void> keep_older(config::Builder& builder, const Found& run) {
  for (const config::Row& row : config::keys().rows()) {
    if (row.older.empty() || builder.origins().contains(row.name)) continue;
    if (!row.is_read_by(builder.current().method)) continue;
    TROUPE_TRY(builder.set({row.name, {row.yaml(run.config)}, false, run.where.string()}));
  }
  return {};
}

// The checkpoint that `resume` names; empty: it says "auto".
fs::path checkpoint_of(const config::TrainConfig& given) {
  return given.resume == "auto" ? fs::path() : fs::path(given.resume);
}

bool goes_on(const config::TrainConfig& given) {
  return !given.run.path.empty() && given.resume != "off";
}

// The run in the folder that is given, if it has begun.
std::optional<Found> own_run(const config::TrainConfig& given) {
  return has_results(given.run.path) ? config_of_run(given.run.path) : std::nullopt;
}

// A branch goes on from the checkpoint of another run: RUN/ckpt/step_000010.
std::optional<Found> branched_run(const config::TrainConfig& given) {
  const fs::path checkpoint = checkpoint_of(given);
  if (checkpoint.empty()) return std::nullopt;
  return config_of_run(fs::absolute(checkpoint).parent_path().parent_path());
}

}  // namespace

core::Result<void> keep_of_run(config::Builder& builder) {
  const config::TrainConfig given = builder.current();
  if (!goes_on(given)) return {};
  const auto own = own_run(given);
  TROUPE_TRY(keep_lanes(builder, own, checkpoint_of(given)));
  const auto run = own ? own : branched_run(given);
  return run ? keep_older(builder, *run) : core::Result<void>();
}

std::optional<config::TrainConfig> run_before(const config::TrainConfig& given) {
  if (!goes_on(given)) return std::nullopt;
  auto run = own_run(given);
  if (!run) run = branched_run(given);
  return run ? std::optional(std::move(run->config)) : std::nullopt;
}

}  // namespace troupe::session
