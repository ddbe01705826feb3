// The nodes of a company: takes them in, watches that they are heard of, starts and ends the
// processes of this host, and gives up what is lost, with all that it ran. Owned by the company,
// used on its strand; its coroutines are children of the role's scope.
#pragma once

#include "actors/company/admission.hpp"
#include "actors/company/drains.hpp"
#include "actors/company/lost_nodes.hpp"
#include "actors/company/membership.hpp"
#include "actors/company/role_supervisor.hpp"

#include <string>
#include <vector>

namespace troupe::actors::company {

class NodeRegistry {
 public:
  // All outlive the object.
  NodeRegistry(const RoleContext& context,
               CompanyPort& port,
               const CompanyOptions& options,
               Admission& admission,
               LocalProcesses& processes,
               Arrivals& arrivals,
               RoleSupervisor& roles,
               async::Notifier& changed)
      : context_(context),
        port_(port),
        options_(options),
        admission_(admission),
        processes_(processes),
        arrivals_(arrivals),
        roles_(roles),
        changed_(changed),
        membership_(options.arithmetic, options.build) {}

  // Takes a node in; from one that was told to go and is back it takes the roles. Errors: those of
  // Membership::join, kNotFound (it belongs to another run), kUnsupported (it is of no use to this
  // one), kPeerLost (the run has ended).
  core::Result<void> take_in(Join& request);
  core::Result<Ack> beat(const Beat& request);
  core::Result<Ack> keep_log(PutLog request);

  // Looks at the processes of this host and at who is silent. Called every kLookEvery.
  void look();
  // A node's link broke: gives the node up, unless another process has its name.
  void lost(const std::string& node, std::uint64_t epoch, const core::Error& cause) {
    context_.scope->spawn("lost " + node, give_up_soon(node, epoch, cause));
  }
  // The node has left or is lost, with all roles that it ran.
  void give_up(const std::string& node, const core::Error& cause);
  // Asks a node to end. One that does not answer is given up later, for its silence.
  async::task<core::Result<void>> dismiss(std::string node);
  async::task<void> dismiss_all(async::Deadline deadline, bool over);
  bool dismissing() const noexcept { return dismissing_; }

  const std::map<std::string, Member>& members() const noexcept { return membership_.members(); }
  const Member* find(const std::string& node) const { return membership_.find(node); }
  Drains& drains() noexcept { return drains_; }
  const Drains& drains() const noexcept { return drains_; }
  const LostNodes& lost_nodes() const noexcept { return lost_nodes_; }

 private:
  core::Result<void> check(const Join& request) const;
  void tend_processes();
  void look_at_silence();
  async::task<void> give_up_soon(std::string node, std::uint64_t epoch, core::Error cause);
  void note_end(const Member& member, const core::Error& cause);

  const RoleContext& context_;
  CompanyPort& port_;
  const CompanyOptions& options_;
  Admission& admission_;
  LocalProcesses& processes_;
  Arrivals& arrivals_;
  RoleSupervisor& roles_;
  async::Notifier& changed_;
  Membership membership_;
  Drains drains_;
  LostNodes lost_nodes_;
  bool no_room_ = false;     // the disk is too full to start a process
  bool dismissing_ = false;  // nodes end because they were asked to
};

}  // namespace troupe::actors::company
