// Starts a company's roles on nodes, and takes over those that nodes kept from an earlier head,
// until each is up: it has introduced itself and computes in the policy's class of arithmetic.
// Owned by the company, used on its strand; its coroutines are children of the role's scope.
#pragma once

#include "actors/company/admission.hpp"
#include "actors/company/adoption.hpp"
#include "actors/company/arithmetic_classes.hpp"
#include "actors/company/role_supervisor.hpp"

#include <string>
#include <vector>

namespace troupe::actors::company {

class RoleStarter {
 public:
  // All outlive the object.
  RoleStarter(const RoleContext& context,
              CompanyPort& port,
              const CompanyOptions& options,
              Admission& admission,
              const LocalProcesses& processes,
              const Arrivals& arrivals,
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
        adoption_(options.run_id, options.generation, options.config) {}

  // Starts all that can be started now.
  void start_due();
  // A node joins: admits and wants the roles that it brings, takes over what fits of those that it
  // has run since an earlier head, and returns their names.
  std::vector<std::string> take_in(const Join& join);
  // Starts again what earlier heads left but does not go together: generators with weights of a
  // policy that is gone.
  void end_leftovers();

  // A role has introduced itself there. Roles whose class was found out before the policy's are
  // looked at once that is there.
  void note_class(const wire::Hello& hello, const std::string& where);
  const ArithmeticClasses& classes() const noexcept { return classes_; }

 private:
  async::task<void> start(PlacedRole placed);
  async::task<void> see_up(PlacedRole placed, bool kept);
  void not_started(const PlacedRole& placed, const core::Error& error);
  async::task<void> refuse_class(PlacedRole placed);

  const RoleContext& context_;
  CompanyPort& port_;
  const CompanyOptions& options_;
  Admission& admission_;
  const LocalProcesses& processes_;
  const Arrivals& arrivals_;
  RoleSupervisor& roles_;
  async::Notifier& changed_;
  Adoption adoption_;
  ArithmeticClasses classes_;
};

}  // namespace troupe::actors::company
