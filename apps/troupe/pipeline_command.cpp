// `troupe pipeline FILE`: runs the stages of a file, each a `troupe` subcommand, and ends with a
// table. See docs/pipelines.md.
#include "apps/cli/flags.hpp"
#include "apps/cli/stop_signal.hpp"
#include "apps/pipeline/pipeline_run.hpp"
#include "apps/pipeline/processes.hpp"
#include "apps/session/roles/run_settings.hpp"
#include "apps/troupe/commands.hpp"
#include "runtime/config/read.hpp"
#include "runtime/store/atomic_folder.hpp"

#include <cstdio>

namespace troupe::app {
namespace {

namespace fs = std::filesystem;

constexpr unsigned kGrace_s = 40;  // more than run.grace_s of a stage

struct PipelineFlags {
  std::string folder;
  std::vector<std::string> settings;
  bool dry = false, json = false;
};

// The keys of a training stage, before an hour of others has passed.
Result<void> check_words(const std::vector<std::string>& words) {
  if (words[0] != "train") return {};
  const config::Methods method =
      words.size() > 1 ? config::method_named(words[1]) : config::kNoMethod;
  if (method == config::kNoMethod) {
    return fail(ErrorCode::kConfig, "`train` names no known method",
                "one of " + config::method_names(config::kAllMethods));
  }
  TROUPE_TRY_ASSIGN(builder,
                    config::read(session::run_table(), cli::Words(words).subspan(2), method));
  TROUPE_TRY_ASSIGN(config, builder.finish());
  static_cast<void>(config);
  return {};
}

// The flags with their values; `files` gets the other words. parse_flags cannot tell these apart: a
// flag with a list of words, such as --set, takes all up to the next flag.
std::vector<std::string> flags_of(cli::Words words, std::vector<std::string>& files) {
  std::vector<std::string> flags;
  for (std::size_t i = 0; i < words.size(); ++i) {
    (words[i].starts_with("-") ? flags : files).push_back(words[i]);
    const bool takes_value = words[i] == "--set" || words[i] == "--folder";
    if (takes_value && i + 1 < words.size()) flags.push_back(words[++i]);
  }
  return flags;
}

fs::path default_folder(const std::string& file) {
  return fs::path("runs") / fs::path(file).stem();
}

}  // namespace

Result<void> run_pipeline(cli::Words words) {
  PipelineFlags options;
  std::vector<std::string> files;
  const std::vector<std::string> flags = flags_of(words, files);
  if (files.size() > 1) {
    return fail(ErrorCode::kConfig, "troupe pipeline: '" + files[1] + "' is a second file",
                "a pipeline has one");
  }
  TROUPE_TRY_ASSIGN(
      outcome, cli::parse_flags(
                   "troupe pipeline FILE.yaml: run stages one after the other, docs/pipelines.md",
                   {{"--folder", &options.folder, "folder for all output; else runs/NAME of FILE"},
                    {"--set", &options.settings, "name=value of one of the file's variables"},
                    {"--dry-run", &options.dry, "check all, print what would be run, and end"},
                    {"--json", &options.json, "end with JSON in place of the table"}},
                   flags));
  if (outcome == cli::FlagsOutcome::kHelpShown) return {};
  if (files.empty()) {
    return fail(ErrorCode::kConfig,
                "troupe pipeline: give the YAML file of a pipeline, such as "
                "configs/pipelines/tour.yaml");
  }
  TROUPE_TRY_ASSIGN(file, pipeline::read_pipeline(files[0]));
  TROUPE_TRY(pipeline::set_variables(file, options.settings));
  const fs::path folder =
      options.folder.empty() ? default_folder(files[0]) : fs::path(options.folder);
  pipeline::PipelineRun run(file, fs::absolute(folder).lexically_normal(), check_words);
  TROUPE_TRY(run.check(options.dry));
  if (options.dry) return {};
  cli::limit_stop(kGrace_s,
                  "stopped before its stage had ended; the same command continues from there");
  pipeline::adopt_orphans();
  const auto done = run.run();
  pipeline::end_descendants();
  const bool stopped = !done && done.error().code == ErrorCode::kInterrupted;
  const std::string state = done ? "finished" : stopped ? "stopped" : "failed";
  const std::string json = pipeline::summary_json(run, file, state);
  if (run.holds_folder()) TROUPE_TRY(store::replace_file(run.folder() / "pipeline.json", json));
  if (!done) return done.failure();
  std::printf("\n%s", options.json ? json.c_str() : pipeline::summary_text(run).c_str());
  std::printf("everything is in %s\n", run.folder().c_str());
  return {};
}

}  // namespace troupe::app
