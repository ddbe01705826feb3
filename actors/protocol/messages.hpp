// The messages between roles, as plain values. Each request struct names its reply type; the codec
// turns both into envelopes and back (frames.hpp). Nothing here uses Cap'n Proto. Value types;
// bound: wire::limits::kMessage_bytes_max.
#pragma once

#include "runtime/config/key_types.hpp"
#include "runtime/core/ids.hpp"
#include "runtime/experience/group.hpp"
#include "runtime/weights/weight_location.hpp"

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

namespace troupe::actors {
using config::Float, config::Texts;  // of rows of keys
struct Ack {};

// ---- to the data role --------------------------------------------------------------------------

struct Tickets {
  std::vector<experience::Ticket> tickets;  // by slot
  std::vector<std::uint64_t> rows{};        // by ticket: the row of its prompt in the dataset
  std::uint64_t prompts = 0;                // rows of that dataset
};

// The tickets of an update: new ones, or the open ones when asked again.
struct IssueTickets {
  using Reply = Tickets;
  std::uint64_t update = 0;  // or an evaluation, which takes held-out prompts in file order
  std::uint32_t groups = 0;
  std::int32_t samples = 0;       // 0 = the run's group size
  core::Version version_min = 0;  // a delivered token from older weights is an error
};

struct PromptTask {
  experience::Ticket ticket;
  std::uint64_t prompt = 0;  // index of the row in its dataset
  std::vector<std::int32_t> tokens;
  std::int32_t samples = 0;
  std::uint64_t seed = 0;
};

struct PromptTasks {
  std::vector<PromptTask> tasks;  // in the order asked
};

struct FetchPrompts {
  using Reply = PromptTasks;
  std::vector<experience::Ticket> tickets;
};

struct PutGroup {
  using Reply = Ack;
  experience::Ticket ticket;
  std::vector<experience::Trajectory> samples{};
  bool cut = false;            // a straggler: fewer samples than asked for, at least two
  std::uint32_t too_long = 0;  // samples left out because together they exceed kGroup_bytes_max
  std::vector<std::int32_t> prompt{};  // what all rows begin with; empty: the dataset's prompt
  std::string modules{};               // of an environment, as in Scores
};

// The ticket failed at every generator that tried it: its group counts as failed.
struct SetAside {
  using Reply = Ack;
  experience::Ticket ticket;
  std::string cause;
};

struct GroupStatus {
  experience::Ticket ticket;
  experience::GroupState state = experience::GroupState::kIssued;
  std::string cause;  // why it failed
  std::uint32_t samples = 0;
  std::uint64_t tokens = 0;
  double mean_score = 0;
  bool filtered = false;        // failed because its scores teach nothing
  std::uint32_t missing = 0;    // samples of the slot without a score, those of replaced groups too
  std::uint64_t row = 0;        // of its prompt in the dataset
  std::uint32_t truncated = 0;  // samples that ended at the limit of their length
  bool ready() const { return state == experience::GroupState::kReady; }
};

struct GroupStatuses {
  std::vector<GroupStatus> groups;       // by slot
  std::vector<std::uint64_t> staleness;  // tokens of the ready groups; index: age in updates
  std::uint64_t crossed = 0;             // samples with tokens of more than one version
  std::vector<std::pair<std::string, double>> rewards;  // mean of each reward of the set
  std::vector<std::pair<std::string, double>> extras;   // mean of each extra value of rewards
  std::vector<std::pair<std::string, double>> lengths;  // correlations of score and length, by name
  std::uint64_t prompts = 0;                            // rows of the dataset of these prompts
};

// Progress of the groups that a run waits for; counted by the data role, shown to the user.
struct GroupCounts {
  std::uint64_t groups = 0;   // of the update, or of the evaluation
  std::uint64_t sampled = 0;  // groups that came from a generator, or failed
  std::uint64_t scored = 0;   // groups that have all their scores, or failed
};

// Answers once every group is ready, or as soon as one has failed. `starts`: version of the weights
// at the start of each of the newest updates, the update's own last; token ages follow from it.
struct AwaitGroups {
  using Reply = GroupStatuses;
  std::uint64_t update = 0;
  std::vector<core::Version> starts;
};

// Asks for a fresh attempt, with another prompt, for the slot of each of these failed groups.
struct ReissueTickets {
  using Reply = Tickets;
  std::vector<experience::Ticket> tickets;
};

struct ExperiencePage {
  std::vector<experience::Group> groups;  // at least one, from the first slot asked for on
};

// Asks for groups of a ready update by slot. The reply has as many as fit a page.
struct FetchExperience {
  using Reply = ExperiencePage;
  std::uint64_t update = 0;
  std::vector<std::uint32_t> slots;
};

// Has the data role write the update's rollouts and forget the update.
struct CommitUpdate {
  using Reply = Ack;
  std::uint64_t update = 0;
  std::uint64_t after_step = 0;  // updates done with it; names rollout and eval files
};

// ---- to a generator ----

struct SamplingSpec {
#define KEYS "actors/protocol/sampling_keys.def"
#include "runtime/config/fill.def"
};

struct Generated {
  std::uint64_t samples = 0;
  std::uint64_t tokens = 0;  // sampled
  std::uint64_t prompt_tokens = 0;
  double seconds = 0;
};

// Answers once every group has been delivered to the data role. No token is drawn before the engine
// holds weights of `version_min` or newer.
struct Generate {
  using Reply = Generated;
  std::vector<experience::Ticket> tickets;
  SamplingSpec sampling;
  core::Version version_min = 0;
};

// Sent when the straggler timeout is over. The generator aborts these groups and delivers the
// samples that have ended (marked `cut`) if there are two or more. The Generate that asked for them
// ends.
struct CutGroups {
  using Reply = Ack;
  std::vector<experience::Ticket> tickets;
};

// Answers when the engine computes with that version or a newer one.
struct UpdateWeights {
  using Reply = Ack;
  core::Version version = 0;
  weights::WeightLocation source;
  bool recompute_kv = false;  // else running samples keep their keys and values
};

// ---- to the reference role ----
struct Logprobs {
  std::vector<std::vector<float>> samples;  // one value per target
};

struct ScoreLogprobs {
  using Reply = Logprobs;
  std::vector<std::int32_t> prompt;
  std::vector<std::vector<std::int32_t>> responses;  // the ids after the prompt
  float temperature = 1;
  // For each response, the ascending places of the ids whose log-probs are wanted; empty, or an
  // empty entry: all.
  std::vector<std::vector<std::uint32_t>> targets{};

  // The log-probs wanted of a response.
  std::size_t wanted(std::size_t response) const {
    return response < targets.size() && !targets[response].empty() ? targets[response].size()
                                                                   : responses[response].size();
  }
};

// ---- to the policy ----

struct Trained {
  core::Version version = 0;
  std::vector<std::pair<std::string, double>> metrics;
};

struct TrainUpdate {
  using Reply = Trained;
  std::uint64_t update = 0;
  std::uint32_t groups = 0;
};

struct Published {
  core::Version version = 0;
  weights::WeightLocation source;
};

// Takes a snapshot of the current weights and offers it in the weight channel. The answer has the
// version that the policy had after `updates` updates; where it has learned from more, its newest
// weights are offered. Error kInvalidArgument: the policy no longer knows that version.
struct PublishWeights {
  using Reply = Published;
  std::uint64_t updates = 0;
};

// ---- to data role, policy and critic ----

// Has the role write its state into the existing folder of a checkpoint that is being made.
struct SaveState {
  using Reply = Ack;
  std::string folder;
};

// What a role that holds learned state holds: it can answer requests about the updates in
// [`from`, `updates`) again, and learns from update `updates` next.
struct Loaded {
  std::uint64_t from = 0;
  std::uint64_t updates = 0;
};

// Has the role load its state as of `updates` updates from the folder of a checkpoint; without a
// folder the state is that of the initial model. Policy and critic load nothing when they hold
// state of this run already: the answer says which.
struct LoadState {
  using Reply = Loaded;
  std::string folder;
  std::uint64_t updates = 0;
};

// Has policy or critic save its current weights as a Hugging Face folder.
struct SaveModel {
  using Reply = Ack;
  std::string folder;
};

}  // namespace troupe::actors
