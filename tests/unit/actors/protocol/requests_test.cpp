// Each request has a role that takes it; those that go to several roles are taken by all of them.
// A handler that is missing, private or hidden by a derived class does not compile here.
#include "actors/company/company.hpp"
#include "actors/controller/controller.hpp"
#include "actors/critic/critic_role.hpp"
#include "actors/data/data_role.hpp"
#include "actors/environment/environment_role.hpp"
#include "actors/generator/generator_role.hpp"
#include "actors/node/node_role.hpp"
#include "actors/policy/policy_role.hpp"
#include "actors/protocol/dispatch.hpp"
#include "actors/reference/reference_role.hpp"
#include "actors/reward/reward_role.hpp"
#include "actors/supervised/rows_role.hpp"
#include "actors/supervised/step_controller.hpp"
#include "actors/supervised/supervised_role.hpp"

namespace troupe::actors {

template <class Message>
concept IsRequest = requires {
  typename Message::Reply;
};

template <class Request, class... Roles>
constexpr bool taken_by_any = (Takes<Roles, Request> || ...);
template <class Role, class... Requests>
constexpr bool takes_all = (Takes<Role, Requests> && ...);

#define MESSAGE(Name, arm)                                                                 \
  static_assert(                                                                           \
      !IsRequest<Name> ||                                                                  \
          taken_by_any<Name, company::Company, controller::Controller, critic::CriticRole, \
                       data::DataRole, generator::GeneratorRole, node::NodeRole,           \
                       policy::PolicyRole, reference::ReferenceRole, reward::RewardRole,   \
                       supervised::RowsRole, supervised::SupervisedRole>,                  \
      "no role has an on(" #Name ")");
#include "schema/messages.inc"
#undef MESSAGE

static_assert(takes_all<policy::PolicyRole, SaveState, LoadState, SaveModel>);
static_assert(takes_all<supervised::SupervisedRole, TrainUpdate, SaveState, LoadState, SaveModel>);
static_assert(takes_all<supervised::RowsRole, SaveState, LoadState>);
static_assert(takes_all<supervised::StepController, QueryStatus>);
static_assert(takes_all<critic::CriticRole, SaveState, LoadState, SaveModel>);
static_assert(takes_all<data::DataRole, SaveState, LoadState>);
static_assert(takes_all<environment::EnvironmentRole, Generate, CutGroups>);
static_assert(takes_all<generator::GeneratorRole, Generate, CutGroups, Complete>);
static_assert(takes_all<controller::Controller, Complete>);
static_assert(takes_all<company::Company, AttachReward, ReweightReward, DetachReward, QueryStatus>);
static_assert(
    takes_all<controller::Controller, AttachReward, ReweightReward, DetachReward, QueryStatus>);

}  // namespace troupe::actors
