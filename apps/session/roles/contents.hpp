// Hashes the files that a run learns from: models, tokenizers, training data and reward files. The
// hashes are compared when the run is resumed and when a node on another host starts one of its
// roles.
#pragma once

#include "runtime/config/train_config.hpp"
#include "runtime/core/result.hpp"
#include "runtime/store/run_start.hpp"

#include <atomic>
#include <filesystem>
#include <functional>
#include <future>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace troupe::session {

// One thing that is hashed.
struct Content {
  std::string name;  // "the weights of actor.model_name_or_path"
  std::vector<std::filesystem::path> files;
  std::filesystem::path place;  // the file, or the folder that holds them
  bool only_warns = false;      // reward code, which the user may change
};

// SHA-256 by name.
using Hashes = std::map<std::string, std::string>;

// All contents of a run. Errors (missing file, unreadable weights) name the key.
core::Result<std::vector<Content>> contents_of(const config::TrainConfig& config);
// The contents that a role reads; `kind` as in "reference", `role` as in "reference/0". No weights
// for a generator, which gets them from the policy.
core::Result<std::vector<Content>> contents_of_role(const config::TrainConfig& config,
                                                    const std::string& kind,
                                                    const std::string& role);

// Hashes contents on a thread of low priority, while others load the same files. Owned by one
// thread; `get` may be called on any. The destructor stops the hashing.
class Hashing {
 public:
  explicit Hashing(std::vector<Content> contents);
  Hashing(const Hashing&) = delete;
  Hashing& operator=(const Hashing&) = delete;
  ~Hashing();

  const std::vector<Content>& contents() const { return contents_; }
  // Blocks until everything is hashed.
  const core::Result<Hashes>& get() const { return future_.get(); }
  // Has `put` write the hashes once they are there, on a thread of its own; an error is ignored.
  // Once.
  void write_by(std::function<core::Result<void>(const std::string& json)> put);

 private:
  const std::vector<Content> contents_;
  std::atomic<bool> stop_{false};
  std::shared_future<core::Result<Hashes>> future_;
  std::future<void> written_;
};

// A content whose hash differs from the checkpoint's, or from that of another host.
struct ContentDifference {
  std::string name;
  std::filesystem::path place;
  std::string theirs, ours;  // first digits of the hashes, for messages
  bool only_warns = false;
};
// The contents whose hashes differ; ignores a name that only one side has.
std::vector<ContentDifference> differences(const std::vector<Content>& contents,
                                           const Hashes& theirs,
                                           const Hashes& ours);

// store::start_run, then compares `contents` with the checkpoint's hashes and notes what differs.
// Error kConfig, naming old and new hash: data, weights or tokenizer changed under the same names,
// which would alter the results. A run that branches off may change them.
core::Result<store::RunStart> start_run(const config::TrainConfig& config,
                                        const config::Origins& origins,
                                        const Hashing& contents);

// Removes the experience log of the run folder, with a note, unless it was sampled with the same
// contents; then has `contents` write its hashes next to it. For the first session of a process.
core::Result<void> check_experience(store::RunStart& start, Hashing& contents);

// Converts hashes, and the class of arithmetic, to and from the JSON text in a checkpoint's
// manifest, which also gets `first` (store::RunStart). Damaged or empty text gives no hashes, and
// no class.
std::string hashes_json(const Hashes& hashes,
                        const std::string& arithmetic = "",
                        std::optional<std::uint64_t> first = std::nullopt);
Hashes hashes_of_json(const std::string& text);
std::string arithmetic_of_json(const std::string& text);

// Compares the class of arithmetic that the run computes in with that of the checkpoint that it
// goes on from, if both are known. Returns a note when a run that branches off changes it. Error
// kConfig, naming both: the results would be those of neither.
core::Result<std::string> check_arithmetic(const store::RunStart& start, const std::string& now);

// Converts hashes to and from the settings that a Spawn message carries.
using Settings = std::vector<std::pair<std::string, std::string>>;
Settings settings_of(const Hashes& hashes);
Hashes hashes_of_settings(const Settings& settings);

}  // namespace troupe::session
