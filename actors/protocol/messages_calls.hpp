// The messages of episodes, as messages.hpp: what an environment asks the data role, and the calls
// of the model that it asks the controller for, and the controller a generator.
#pragma once

#include "runtime/engine/types.hpp"
#include "runtime/experience/finish_reason.hpp"
#include "runtime/experience/ticket.hpp"
#include "runtime/experience/version_runs.hpp"

#include <cstdint>
#include <string>
#include <vector>

namespace troupe::actors {

struct EpisodeTask {
  experience::Ticket ticket;
  std::uint64_t row = 0;     // index of the row in its dataset
  std::int32_t samples = 0;  // episodes
  std::uint64_t seed = 0;
  std::vector<std::int32_t> tokens;  // the row's prompt
  std::string text;                  // the prompt as text
  std::string messages;              // JSON list of chat messages; "": the row has none
  std::string label;
  std::string columns;  // the row as JSON
};

struct EpisodeTasks {
  std::vector<EpisodeTask> tasks;  // in the order asked
};

// What the episodes of these groups begin with.
struct FetchEpisodes {
  using Reply = EpisodeTasks;
  std::vector<experience::Ticket> tickets;
};

using engine::LogitBias;

// engine::SamplingParams, but for what only a server asks for.
struct CallSampling {
  float temperature = 1, top_p = 1, min_p = 0;
  std::int32_t top_k = 0, max_new_tokens = 16, min_new_tokens = 0;
  bool ignore_eos = false;
  std::vector<std::int32_t> stop_tokens;
  std::vector<std::string> stop_strings;
  float repetition_penalty = 1, presence_penalty = 0, frequency_penalty = 0;
  std::vector<LogitBias> logit_bias;
  bool raw_logprobs = false;
  std::int32_t top_logprobs = 0;
  bool kept_mass = false;
};

// What was drawn for one call; one entry per token, but for top_*: [tokens][top_logprobs].
struct Completed {
  std::vector<std::int32_t> tokens;
  std::vector<float> behaviour;
  experience::VersionRuns versions;
  experience::FinishReason finish = experience::FinishReason::kEos;
  std::vector<float> raw_logprobs;
  std::vector<std::int32_t> top_tokens;
  std::vector<float> top_logprobs;
  experience::TokenFacts facts;
  std::string guide_error;  // why the grammar ended the answer; empty: it did not
};

// One call of the model, for one sample. Ticket, session and number name it: what answers it once
// answers it with the same bits again.
struct Complete {
  using Reply = Completed;
  experience::Ticket ticket;
  std::uint64_t session = 0;
  std::uint64_t number = 0;
  std::vector<std::int32_t> prompt;
  CallSampling sampling;
  std::uint64_t seed = 0;
  core::Version version_min = 0;
  std::string grammar;  // what the answer must match (guide::text_of); empty: any text
};

}  // namespace troupe::actors
