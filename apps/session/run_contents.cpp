#include "apps/session/run_contents.hpp"

#include "runtime/store/run_start.hpp"

#include <utility>

namespace troupe::app {

core::Result<std::unique_ptr<RunContents>> RunContents::open(const config::TrainConfig& config) {
  TROUPE_TRY_ASSIGN(contents, contents_of(config));
  return std::unique_ptr<RunContents>(new RunContents(std::move(contents), config.run.path));
}

core::Result<std::vector<std::string>> RunContents::check(const store::Checkpoint& checkpoint,
                                                          bool branch) const {
  const Hashes theirs = hashes_of_json(checkpoint.state_json);
  std::vector<std::string> notes;
  if (theirs.empty()) return notes;
  if (!hashes()) return hashes().failure();
  std::string refused;
  for (const ContentDifference& one : differences(hashing_.contents(), theirs, *hashes())) {
    const std::string text = "the SHA-256 of " + one.name + " (" + one.place.string() + ") was " +
                             one.theirs + "... and is " + one.ours + "...";
    if (branch || one.only_warns) {
      notes.push_back("changed since the checkpoint: " + text);
    } else {
      refused += (refused.empty() ? "" : ", ") + text;
    }
  }
  if (refused.empty()) return notes;
  return core::fail(core::ErrorCode::kConfig,
                    checkpoint.folder.string() + " was made with other contents: " + refused +
                        "; put back what was there, or start a branch: the same command with " +
                        store::branch_flags(checkpoint.folder, run_path_) +
                        " goes on from there with the new");
}

std::string RunContents::state(const Note& note) const {
  if (hashes()) return hashes_json(*hashes());
  note("a resume cannot tell whether the contents are the same: " + hashes().error().message);
  return "{}";
}

}  // namespace troupe::app
