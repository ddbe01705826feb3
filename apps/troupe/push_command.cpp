// `troupe push FOLDER NAME`: uploads a model or an adapter to a hub, with its card. See
// docs/hub.md.
#include "apps/cli/flags.hpp"
#include "apps/hub/consent.hpp"
#include "apps/hub/hub.hpp"
#include "apps/troupe/commands.hpp"
#include "runtime/model/spec.hpp"
#include "runtime/names/hub_name.hpp"

#include <cstdio>
#include <filesystem>

namespace troupe::app {
namespace {

namespace fs = std::filesystem;

bool has(const fs::path& folder, const char* file) {
  std::error_code error;
  return fs::exists(folder / file, error);
}

// The folder of a model or an adapter: itself, or the model of a checkpoint or run.
Result<fs::path> folder_of(const std::string& text) {
  const fs::path folder = fs::absolute(text).lexically_normal();
  if (!fs::is_directory(folder)) {
    return fail(ErrorCode::kNotFound, "troupe push: no folder " + folder.string(),
                "give the folder of a model, an adapter, a checkpoint or a run");
  }
  if (has(folder, "adapter_config.json")) return folder;
  return model::resolve_model(folder.string());
}

}  // namespace

Result<void> run_push(cli::Words words) {
  hub::Upload upload;
  bool yes = false;
  std::vector<std::string> given;
  TROUPE_TRY_ASSIGN(
      outcome,
      cli::parse_flags("troupe push FOLDER NAME: upload a model or an adapter to the Hugging Face "
                       "hub, docs/hub.md",
                       {{"--private", &upload.is_private, "make a new repository private"},
                        {"--dry-run", &upload.dry, "only list what would be uploaded"},
                        {"--yes", &yes, "do not ask (TROUPE_YES=1)"}},
                       words, &given));
  if (outcome == cli::FlagsOutcome::kHelpShown) return {};
  if (given.size() != 2) {
    return fail(ErrorCode::kConfig, "troupe push: " + std::to_string(given.size()) + " words",
                "give a folder and OWNER/NAME");
  }
  if (yes) hub::say_yes();
  const auto name = names::hub_name(given[1], names::Kind::kModel);
  if (!name || !name->revision.empty()) {
    return fail(ErrorCode::kConfig, "troupe push: '" + given[1] + "' is no name of a repository",
                "give OWNER/NAME");
  }
  TROUPE_TRY_SET(upload.folder, folder_of(given[0]));
  upload.name = name->repository;
  if (!has(upload.folder, "README.md"))
    std::fprintf(stderr, "%s has no README.md: the model will have no card\n",
                 upload.folder.c_str());
  TROUPE_TRY_ASSIGN(address, hub::push(upload));
  if (!address.empty()) std::printf("%s\n", address.c_str());
  return {};
}

}  // namespace troupe::app
