// `troupe log RUN --to wandb|mlflow|trackio`: sends the metrics of a run to a service that it
// lacks. See docs/loggers.md.
#include "apps/cli/flags.hpp"
#include "apps/cli/stop_signal.hpp"
#include "apps/loggers/side_process.hpp"
#include "apps/troupe/commands.hpp"
#include "runtime/core/split.hpp"

#include <chrono>
#include <cstdio>

namespace troupe::app {
namespace {

namespace fs = std::filesystem;

struct LogFlags {
  std::string to, project, name, group, org, uri;
};

std::optional<std::string> given(const std::string& text) {
  return text.empty() ? std::nullopt : std::optional(text);
}

Result<void> send(loggers::LoggerSettings settings) {
  TROUPE_TRY_ASSIGN(process, loggers::SideProcess::start(settings));
  std::string last;
  const auto note = [&](const std::string& text) {
    last = text;
    std::fprintf(stderr, "%s\n", text.c_str());
  };
  while (process.running()) {
    process.listen(std::chrono::milliseconds(200), note);
    if (cli::stop_requested()) {
      process.kill();
      return fail(ErrorCode::kInterrupted, "stopped", "the same command sends the rest");
    }
    if (process.frozen()) {
      process.kill();
      return fail(ErrorCode::kDeadline, "the logger of " + settings.logger + " has stopped",
                  "the same command sends the rest");
    }
  }
  process.listen(core::Duration::zero(), note);
  if (!process.finished()) {
    return fail(ErrorCode::kPeerLost,
                "the logger of " + settings.logger + " " + process.how_it_ended() +
                    (last.empty() ? "" : " (" + last.substr(0, last.find(';')) + ")"),
                "its log is " + (settings.run / "loggers" / (settings.logger + ".log")).string());
  }
  std::printf("%s: %lu rows sent to %s\n", settings.run.c_str(), process.sent(),
              settings.logger.c_str());
  return {};
}

}  // namespace

Result<void> run_log(cli::Words words) {
  LogFlags options;
  std::vector<std::string> runs;
  TROUPE_TRY_ASSIGN(
      outcome, cli::parse_flags(
                   "troupe log RUN: send the metrics of a run to other services, docs/loggers.md",
                   {{"--to", &options.to, "wandb, mlflow or trackio; several with commas"},
                    {"--project", &options.project, "project or experiment; else the run's"},
                    {"--run-name", &options.name, "name of the run at the service; else the run's"},
                    {"--group", &options.group, "group of wandb and trackio"},
                    {"--org", &options.org, "user or team of wandb"},
                    {"--mlflow-uri", &options.uri, "a server's URL or sqlite:///FILE"}},
                   words, &runs));
  if (outcome == cli::FlagsOutcome::kHelpShown) return {};
  if (runs.size() > 1)
    return fail(ErrorCode::kConfig, "troupe log: '" + runs[1] + "' is a second run", "give one");
  if (runs.empty())
    return fail(ErrorCode::kConfig, "troupe log: give the folder of a run (its --run.path)");

  const fs::path run = fs::absolute(runs[0]).lexically_normal();
  if (!fs::exists(run / "metrics.jsonl")) {
    return fail(ErrorCode::kNotFound, "troupe log: " + run.string() + " holds no metrics.jsonl",
                "give the folder of a run");
  }
  const auto services = core::split(options.to, ",");
  for (const std::string_view service : services) {
    if (service == "wandb" || service == "mlflow" || service == "trackio") continue;
    return fail(ErrorCode::kConfig, "troupe log: --to '" + std::string(service) + "' is unknown",
                "give wandb, mlflow or trackio");
  }
  for (const std::string_view service : services) {
    TROUPE_TRY(send({std::string(service), run, false, given(options.project), given(options.name),
                     given(options.group), given(options.org), given(options.uri)}));
  }
  return {};
}

}  // namespace troupe::app
