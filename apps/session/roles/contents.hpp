// What a run's numbers depend on beside its configuration: the contents of models, tokenizers, data
// sets and reward files, by hash. Held against each other where a run is resumed and where a node
// on another host starts a role of it.
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
#include <string>
#include <utility>
#include <vector>

namespace troupe::app {

// One thing that is hashed.
struct Content {
  std::string name;  // "the weights of actor.model_name_or_path"
  std::vector<std::filesystem::path> files;
  std::filesystem::path place;  // the file, or the folder that holds them
  bool only_warns = false;      // reward code: a mended reward is the user's business
};

// SHA-256 by name.
using Hashes = std::map<std::string, std::string>;

// All of a run. Errors name the key: a file that is not there, weights that cannot be read.
core::Result<std::vector<Content>> contents_of(const config::TrainConfig& config);
// Those that a role reads ("reference", "reference/0"). A generator gets its weights from the
// policy.
core::Result<std::vector<Content>> contents_of_role(const config::TrainConfig& config,
                                                    const std::string& kind,
                                                    const std::string& role);

// Hashes on a thread of low priority that runs beside whatever loads the same files. Owned by one
// thread; `get` may be called on any. Going away stops the thread.
class Hashing {
 public:
  explicit Hashing(std::vector<Content> contents);
  Hashing(const Hashing&) = delete;
  Hashing& operator=(const Hashing&) = delete;
  ~Hashing();

  const std::vector<Content>& contents() const { return contents_; }
  // Blocks until all is hashed.
  const core::Result<Hashes>& get() const { return future_.get(); }

 private:
  const std::vector<Content> contents_;
  std::atomic<bool> stop_{false};
  std::shared_future<core::Result<Hashes>> future_;
};

// One thing that is not what it was, or not what it is elsewhere.
struct ContentDifference {
  std::string name;
  std::filesystem::path place;
  std::string theirs, ours;  // as far as people compare them
  bool only_warns = false;
};
// Names that only one side has are no difference.
std::vector<ContentDifference> differences(const std::vector<Content>& contents,
                                           const Hashes& theirs,
                                           const Hashes& ours);

// store::start_run of a run whose contents are kept in every checkpoint: other data, weights or
// another tokenizer under the same names would be another run. What differs from the checkpoint's
// is noted. Error kConfig, naming old and new: it alters the result, unless the run is a branch.
core::Result<store::RunStart> start_run(const config::TrainConfig& config,
                                        const config::Origins& origins,
                                        const Hashing& contents);

// As a checkpoint's manifest holds them; what is damaged or not there gives none.
std::string hashes_json(const Hashes& hashes);
Hashes hashes_of_json(const std::string& text);

// As a Spawn's settings hold them.
using Settings = std::vector<std::pair<std::string, std::string>>;
Settings settings_of(const Hashes& hashes);
Hashes hashes_of_settings(const Settings& settings);

}  // namespace troupe::app
