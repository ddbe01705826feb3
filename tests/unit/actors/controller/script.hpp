// What happens in a scripted run of a company on virtual time: how fast roles are, how long
// samples, which groups fail. Weights grow by two versions an update, so the age of a token of
// version w in an update u is u - w / 2.
#pragma once

#include "actors/controller/run_plan.hpp"
#include "actors/data/data_role.hpp"
#include "tests/sim/sim_network.hpp"

#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

namespace troupe::actors::testing {

using namespace std::chrono_literals;

struct Script {
  std::uint64_t seed = 1;
  controller::RunPlan plan;
  std::map<std::string, core::Duration> token_time = {{"generator/0", 1ms}};  // by generator
  core::Duration train_time = 50ms;
  core::Duration push_time = 5ms;   // of weights into a generator
  core::Duration score_time = 3ms;  // of a group
  // Length of a sample; 0: it never ends.
  std::function<std::uint64_t(const experience::Ticket&, std::size_t sample)> length =
      [](const experience::Ticket&, std::size_t) { return std::uint64_t{20}; };
  // Whether a group cannot be scored, and how long finding out takes.
  std::function<bool(const experience::Ticket&)> fails = [](const experience::Ticket&) {
    return false;
  };
  // Whether a group's mean score is outside the range that is kept.
  std::function<bool(const experience::Ticket&)> filtered = [](const experience::Ticket&) {
    return false;
  };
  std::uint64_t prompts_max = 0;  // of the dataset; 0 = no end
  // Rows of the dataset, which tickets take in turn; 0: each ticket has a row of its own.
  std::uint64_t rows = 0;
  std::function<bool(std::uint64_t)> bad_row = [](std::uint64_t) { return false; };  // no score
  bool critic = false;
  std::optional<std::uint64_t> train_fails;  // the update whose step fails
  core::ErrorCode train_code = core::ErrorCode::kNumeric;
  int commits_full = 0;   // first commits for which the disk is full
  bool half_way = false;  // the policy has no whole state to save
  // Which error a generator answers its n-th call with, by name; nothing: it works.
  using Sickness = std::function<std::optional<core::ErrorCode>(const std::string&, std::size_t)>;
  Sickness sick_tickets = [](const auto&, auto) { return std::nullopt; };
  Sickness sick_weights = sick_tickets;
  std::function<bool(const experience::Ticket&)> poison = [](const auto&) {
    return false;
  };  // fails all
  core::ErrorCode poison_code = core::ErrorCode::kNumeric;
  std::set<std::string> late;  // generators that are not there from the start
  cluster::sim::Faults faults;
};

// One line of what happened, in the order in which it did.
using Events = std::vector<std::string>;

inline std::string text_of(const experience::Ticket& ticket) {
  const bool evaluation = experience::is_evaluation(ticket.update);
  return (evaluation ? "e" : "u") +
         std::to_string(evaluation ? ticket.update - experience::kFirstEvaluation : ticket.update) +
         "." + std::to_string(ticket.slot) + "." + std::to_string(ticket.attempt);
}

}  // namespace troupe::actors::testing
