// Runs one episode: asks the environment for its opening, the controller for the policy's turns,
// and the environment for its answers, until one of them ends it or a limit does. The calls are
// kept in a session's tree, whose prompts are the engine's own tokens. Owned by the group of its
// ticket, on the environment role's strand; rendering and decoding run on the role's device queue.
// Bounds: EpisodeSettings.
#pragma once

#include "actors/environment/environment.hpp"
#include "actors/environment/episode_room.hpp"
#include "actors/protocol/messages.hpp"
#include "actors/protocol/messages_calls.hpp"
#include "actors/protocol/role_shell.hpp"
#include "runtime/sessions/episode_rows.hpp"
#include "runtime/sessions/history.hpp"

#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace troupe::actors::environment {

struct EpisodeSettings {
#define KEYS "actors/environment/environment_keys.def"
#include "runtime/config/fill.def"
  // For the reward of a program's session, since anything was last heard of it; needs_reward: it is
  // waited for.
  core::Duration reward_timeout{};
  bool needs_reward = false;
  sessions::History history = sessions::History::kTemplate;
  std::int64_t now_unix_s = 0;  // the date that templates write: one for all of a run
  bool front = true;  // a text that opens an episode begins with what the tokenizer puts in front
};

// One episode of a ticket's group.
struct EpisodeOrder {
  std::shared_ptr<const EpisodeTask> task;
  std::uint32_t index = 0;  // in the group
  SamplingSpec sampling;
  core::Version version_min = 0;
  std::uint32_t losses = 0;  // EpisodeStart::losses
};

EpisodeStart start_of(const EpisodeOrder& order);

// The number by which the controller knows the session of an episode.
std::uint64_t session_number(const EpisodeOrder& order);

// What it came to.
struct EpisodeEnd {
  sessions::SessionTree tree;
  sessions::EpisodeRewards rewards;
  std::uint64_t turns = 0;
  std::uint64_t forked_by_template = 0;
  bool out_of_room = false;  // a limit ended it
  std::string extras;        // the environment's last numbers, JSON
};

class EpisodeRun {
 public:
  // The arguments outlive the run.
  EpisodeRun(const RoleContext& context,
             const dialects::ServedModel& model,
             const EpisodeSettings& settings,
             Environment& environment,
             EpisodeOrder order);

  // Errors: those of the environment and of the calls; kDeadline (episode_timeout_s).
  static async::task<core::Result<EpisodeEnd>> run(EpisodeRun* self);
  // After an error: how the environment was lost.
  Loss loss() const noexcept { return loss_; }

 private:
  struct Asked {  // a call ready to be made
    sessions::CallPrompt prompt;
    std::int32_t room = 0;  // tokens that may be drawn
  };
  async::task<core::Result<void>> go_on();
  core::Failure failed(const core::Error& error);
  async::task<core::Result<std::optional<PolicyTurn>>> one_turn();
  void take_in(const EnvironmentTurn& turn, bool opening);
  core::Result<Asked> prepare();
  // An error where the template writes nothing of the environment's tools, which no message names.
  core::Result<void> check_tools_written() const;
  core::Result<PolicyTurn> keep(Asked asked, Completed completed);
  Complete request_of(const Asked& asked) const;
  // Offers the environment's tools, a JSON list, or else the row's; and the row's variables.
  void offer_tools(const std::string& tools);
  async::Deadline turn_deadline() const;

  const RoleContext& context_;
  const dialects::ServedModel& model_;
  const EpisodeSettings& settings_;
  Environment& environment_;
  const EpisodeOrder order_;
  const std::uint64_t session_;
  std::unique_ptr<Episode> episode_;
  // The dialogue so far; or, in an episode of plain text, what follows the last call's tokens.
  nlohmann::ordered_json messages_;
  dialects::GenerateRequest request_;      // its tools, and what was rendered last
  std::vector<std::int32_t> opening_ids_;  // where the row's prompt is the opening
  std::string text_;
  bool is_dialogue_ = false;
  bool own_tools_ = false;  // the environment names tools
  bool over_ = false;
  std::optional<double> score_;      // the environment's last
  double rewards_ = 0;               // of turns, so far
  std::optional<std::size_t> last_;  // the last call
  EpisodeEnd end_;
  Loss loss_ = Loss::kNone;
};

}  // namespace troupe::actors::environment
