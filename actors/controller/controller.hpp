// The controller: the order of a run. It names tickets to the generator, ready updates to the policy
// and new versions to the generator; it sees ids, versions and counts, never a token. Runs as one
// coroutine on its strand; the plan decides, the listener hears.
// When a role fails, the run ends with that role's error; what was committed stays.
#pragma once

#include <string>

#include "actors/controller/run_listener.hpp"
#include "actors/controller/run_plan.hpp"
#include "actors/protocol/role_shell.hpp"

namespace troupe::actors {

struct CompanyPeers {
  std::string data = "data/0";
  std::string generator = "generator/0";
  std::string policy = "policy/0";
};

class Controller {
 public:
  Controller(RoleContext context, RunPlan plan, CompanyPeers peers, RunListener& listener);

  // The whole run. Error kInterrupted after a stop was asked for; a checkpoint is written first.
  async::task<core::Result<void>> run();

  // Puts the roles into the state of a checkpoint. Before `run`.
  async::task<core::Result<void>> load(std::string folder);

 private:
  async::task<core::Result<void>> one_update(std::uint64_t update);
  async::task<core::Result<GroupStatuses>> collect(std::uint64_t update, Generated& totals);
  async::task<core::Result<Generated>> generate(std::vector<core::Ticket> tickets,
                                                SamplingSpec sampling);
  async::task<core::Result<void>> publish();
  async::task<core::Result<void>> evaluate(std::uint64_t done, bool greedy);
  async::task<core::Result<void>> save(std::uint64_t done);

  RoleContext context_;
  RunPlan plan_;
  CompanyPeers peers_;
  RunListener& listener_;
};

}  // namespace troupe::actors
