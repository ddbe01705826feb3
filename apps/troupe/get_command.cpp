// `troupe get NAME`: downloads a model or a data set by its name on a hub. See docs/hub.md.
#include "apps/cli/flags.hpp"
#include "apps/hub/consent.hpp"
#include "apps/hub/hub.hpp"
#include "apps/hub/moved_line.hpp"
#include "apps/troupe/commands.hpp"
#include "runtime/names/locate.hpp"

#include <cstdio>
#include <optional>

namespace troupe::app {
namespace {

// What --offline finds: no hub is asked.
Result<hub::Fetched> find_offline(const names::HubName& name) {
  TROUPE_TRY_ASSIGN(found, names::locate(name));
  return hub::Fetched{std::move(found), "", "", 0};
}

Result<names::HubName> name_of(const std::string& text, bool dataset, const std::string& revision) {
  const auto kind = dataset ? names::Kind::kDataset : names::Kind::kModel;
  auto name = names::hub_name(text, kind);
  if (!name) {
    return fail(ErrorCode::kConfig, "troupe get: '" + text + "' is no name of a hub",
                dataset ? "give OWNER/NAME[@REVISION][:CONFIG][:SPLIT]"
                        : "give OWNER/NAME[@REVISION]; --dataset for a data set");
  }
  if (revision.empty()) return *name;
  if (!name->revision.empty()) {
    return fail(ErrorCode::kConfig,
                "troupe get: '" + text + "' and --revision both give a revision", "give one");
  }
  return name->at(revision);
}

}  // namespace

Result<void> run_get(cli::Words words) {
  bool dataset = false, yes = false, offline = false, check = false;
  std::string revision;
  std::vector<std::string> given;
  TROUPE_TRY_ASSIGN(
      outcome, cli::parse_flags(
                   "troupe get NAME: download a model or a data set of the Hugging Face hub, "
                   "docs/hub.md",
                   {{"--dataset", &dataset, "NAME is a data set: OWNER/NAME[:CONFIG][:SPLIT]"},
                    {"--revision", &revision, "branch, tag or commit; or NAME@REVISION"},
                    {"--yes", &yes, "do not ask (TROUPE_YES=1)"},
                    {"--check", &check, "hash all files, not only those that came"},
                    {"--offline", &offline, "only find what is in the cache (HF_HUB_OFFLINE=1)"}},
                   words, &given));
  if (outcome == cli::FlagsOutcome::kHelpShown) return {};
  if (given.size() != 1) {
    return fail(ErrorCode::kConfig, "troupe get: " + std::to_string(given.size()) + " names",
                "give one: OWNER/NAME");
  }
  if (yes) hub::say_yes();
  if (offline) hub::stay_offline();
  TROUPE_TRY_ASSIGN(name, name_of(given[0], dataset, revision));
  names::allow_fetching(hub::fetch_named);  // which finds rows that other programs put there
  const bool only_here = names::offline();
  auto got = only_here ? find_offline(name) : hub::fetch(name, check);
  if (!got) return got.failure();
  std::printf("%s\n", name.at(got->found.commit).text().c_str());
  if (got->found.files.empty()) std::printf("%s\n", got->found.folder.c_str());
  for (const auto& file : got->found.files)
    std::printf("%s\n", file.c_str());
  std::fprintf(stderr, "%s\n",
               got->bytes == 0 ? "nothing had to be downloaded"
                               : (hub::size_text(got->bytes) + " downloaded and checked").c_str());
  return {};
}

}  // namespace troupe::app
