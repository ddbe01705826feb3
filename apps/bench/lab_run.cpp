#include "apps/bench/lab_run.hpp"

#include <signal.h>

#include <algorithm>
#include <fstream>

namespace troupe::app {
namespace {

using nlohmann::json;

constexpr std::size_t kShown_bytes_max = 2000;

json part_named(const json& list, const std::string& name) {
  for (const json& part : list) {
    if (part.value("name", "") == name) return part;
  }
  return json::object();
}

}  // namespace

core::Result<LabRun> LabRun::start(const LabFiles& files, const std::vector<std::string>& more) {
  TROUPE_TRY_ASSIGN(process, LoggedProcess::start("", files.train_words(more), files / "run.log"));
  return LabRun(files, std::move(process));
}

std::uint64_t LabRun::updates() const {
  std::ifstream in(std::filesystem::path(files_->run()) / "metrics.jsonl", std::ios::binary);
  return static_cast<std::uint64_t>(std::count(std::istreambuf_iterator<char>(in), {}, '\n'));
}

core::Result<void> LabRun::reach(std::uint64_t updates, double limit_s) {
  bool ended = false;
  const bool there = holds_within(limit_s, [&] {
    ended = !process_.running();
    return ended || this->updates() >= updates;
  });
  if (there && this->updates() >= updates) return {};
  return trouble(ended ? "ended before update " + std::to_string(updates)
                       : "did not reach update " + std::to_string(updates) + " within " +
                             std::to_string(limit_s) + " s");
}

core::Result<json> LabRun::status(double limit_s) {
  TROUPE_TRY_ASSIGN(text, run_command_logged({"status", "--join", files_->run(), "--json"},
                                          *files_ / "status.log", limit_s));
  json status = json::parse(text, nullptr, false);
  if (status.is_object()) return status;
  return core::fail(core::ErrorCode::kData, "troupe status --json printed no JSON: " + text);
}

core::Result<void> LabRun::finish(double limit_s) {
  const auto status = process_.wait(limit_s);
  if (status == 0) return {};
  return trouble(status ? "ended with status " + std::to_string(*status)
                        : "did not end within " + std::to_string(limit_s) + " s");
}

core::Result<void> LabRun::interrupt(double limit_s) {
  process_.signal(SIGINT);
  const auto status = process_.wait(limit_s);
  if (status == 130 || status == 0) return {};
  return trouble(status ? "ended with status " + std::to_string(*status) + " when interrupted"
                        : "did not end within " + std::to_string(limit_s) + " s of an interrupt");
}

core::Failure LabRun::trouble(const std::string& what) const {
  std::string text = process_.output();
  if (text.size() > kShown_bytes_max) text.erase(0, text.size() - kShown_bytes_max);
  return core::fail(core::ErrorCode::kPeerLost, "the run " + what + "; it printed:\n" + text);
}

std::vector<double> LabRun::metric(const std::string& name, std::uint64_t first) const {
  std::vector<double> values;
  std::ifstream in(std::filesystem::path(files_->run()) / "metrics.jsonl");
  for (std::string line; std::getline(in, line);) {
    const json row = json::parse(line, nullptr, false);
    if (!row.is_object() || !row.contains(name)) continue;
    if (row.value("step", std::uint64_t{0}) >= first) values.push_back(row[name].get<double>());
  }
  return values;
}

double role_seconds(const json& status, const std::string& role, const std::string& what) {
  return part_named(status.value("roles", json::array()), role).value(what, 0.0);
}

double idle_seconds(const json& status, const std::string& role) {
  double sum = 0;
  const json part = part_named(status.value("roles", json::array()), role);
  const json causes = part.value("idle_s", json::object());
  for (const auto& [cause, seconds] : causes.items())
    sum += seconds.get<double>();
  return sum;
}

pid_t pid_of_role(const json& status, const std::string& role) {
  // The cast names every role from the start; accounts come half a second later.
  const json part = part_named(status.value("cast", json::array()), role);
  const json node = part_named(status.value("nodes", json::array()), part.value("node", ""));
  return node.value("pid", 0);
}

}  // namespace troupe::app
