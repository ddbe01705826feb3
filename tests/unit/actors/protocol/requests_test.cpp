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

#define MESSAGE(Name, arm)                                                                       \
  static_assert(                                                                                 \
      !IsRequest<Name> ||                                                                        \
          taken_by_any<Name, Company, Controller, CriticRole, DataRole, GeneratorRole, NodeRole, \
                       PolicyRole, ReferenceRole, RewardRole, RowsRole, SupervisedRole>,         \
      "no role has an on(" #Name ")");
#include "schema/messages.inc"
#undef MESSAGE

static_assert(takes_all<PolicyRole, SaveState, LoadState, SaveModel>);
static_assert(takes_all<SupervisedRole, TrainUpdate, SaveState, LoadState, SaveModel>);
static_assert(takes_all<RowsRole, SaveState, LoadState>);
static_assert(takes_all<StepController, QueryStatus>);
static_assert(takes_all<CriticRole, SaveState, LoadState, SaveModel>);
static_assert(takes_all<DataRole, SaveState, LoadState>);
static_assert(takes_all<EnvironmentRole, Generate, CutGroups>);
static_assert(takes_all<GeneratorRole, Generate, CutGroups, Complete>);
static_assert(takes_all<Controller, Complete>);
static_assert(takes_all<Company, AttachReward, ReweightReward, DetachReward, QueryStatus>);
static_assert(takes_all<Controller, AttachReward, ReweightReward, DetachReward, QueryStatus>);

}  // namespace troupe::actors
