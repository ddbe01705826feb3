// Supervises a company's roles once they are started: those that are lost, sick, left
// alone by their gang or no longer wanted are taken down, and may start again. Holds the placement,
// whether the run goes on, and the meetings of gangs (ADR 0026). Owned by the company, used on its
// strand; its coroutines are children of the role's scope.
#pragma once

#include "actors/company/arrivals.hpp"
#include "actors/company/company_port.hpp"
#include "actors/company/gang_meetings.hpp"
#include "actors/company/role_placement.hpp"
#include "actors/protocol/role_shell.hpp"

#include <string>
#include <vector>

namespace troupe::actors::company {

class RoleSupervisor {
 public:
  // `changed` is notified when something happens to a role. All outlive the object.
  RoleSupervisor(const RoleContext& context,
                 CompanyPort& port,
                 const CompanyOptions& options,
                 LocalProcesses& processes,
                 Arrivals& arrivals,
                 async::Notifier& changed);

  RolePlacement& placement() noexcept { return placement_; }
  const RolePlacement& placement() const noexcept { return placement_; }

  // A role ended, or its start failed.
  void lose(const std::string& role, std::uint64_t epoch, const core::Error& cause);
  // Like `lose`, but also for a role that a guest brought.
  void gone(const std::string& role, std::uint64_t epoch, const core::Error& cause);
  // Nothing is asked of this life of a guest's role any more, and another process may have its
  // name.
  void release(const std::string& role, std::uint64_t epoch, const core::Error& cause);
  // No role is wanted at that node alone any more.
  void drop_bound(const std::string& node);
  void restart(const std::string& role, std::uint64_t epoch, const core::Error& cause) {
    context_.scope->spawn("restart " + role, stop(role, epoch, cause));
  }
  // The rest of a stop that the placement knows of.
  async::task<void> take_down(std::string role, std::uint64_t epoch, core::Error cause);

  // Takes down what is left of gangs, and tells the run when one may have all of its ranks again.
  void tend_gangs();
  // Says it when a gang starts with other than all of its ranks.
  void note_size(const PlacedRole& placed) const;
  async::task<core::Result<GangMet>> on(MeetGang request);

  // Ends the run if a role was lost too often.
  void look_for_worn();
  // The run cannot go on.
  void fail(const core::Error& error);
  bool failed() const noexcept { return failed_; }
  bool may_start() const noexcept { return !resting_ && !failed_; }
  bool resting() const noexcept { return resting_; }
  // The run is over: nothing is started any more.
  void close() { resting_ = failed_ = true; }

  async::task<core::Result<void>> await_up(std::vector<std::string> kinds,
                                           async::Deadline deadline) const;
  async::task<void> end_run();
  void begin_run() { resting_ = false; }

 private:
  async::task<void> stop(std::string role, std::uint64_t epoch, core::Error cause);
  void end_rank(const std::string& role, std::uint64_t epoch);
  void look_for_room();

  const RoleContext& context_;
  CompanyPort& port_;
  LocalProcesses& processes_;
  Arrivals& arrivals_;
  async::Notifier& changed_;
  RolePlacement placement_;
  GangMeetings meetings_;
  bool resting_ = false;  // start no role: roles end on request
  bool failed_ = false;   // the run cannot go on, or is over: start nothing any more
  std::string room_;      // what `regroup` was told last
};

}  // namespace troupe::actors::company
